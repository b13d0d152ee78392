"""Other tools' change points: a program of the rivals' own environment, which has nothing of Tidemark.

Reads a JSON list of jobs from standard input and writes the list of their answers to standard output. A job
is {"tool", "parameter", "series", "start", "stop_early"}: `series` is a list of series, each a list of
numbers with null for a gap; `start` is null for a look at the finished series, else a list of the night of
each series from which on the tool looks again every night. The answer is a list for each series of [index,
night] pairs: positions in the series, `night` being the last one of the series that the tool had seen. What
was there at the look before `start` is known, and so is what lies within REPEATED nights of something known.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

REPEATED = 10
"""Nights between two positions up to which a nightly look treats them as the same change."""

SHORTEST = 10
"""Minimum number of nights of a series; no tool is applied to a shorter one."""

Series = list[float | None]
Finder = Callable[[list[float], float], list[int]]


def otava(values: list[float], parameter: float) -> list[int]:
    """Apache Otava's t tests in windows of 50; `parameter` is the p-value, by default 0.001."""
    from otava.analysis import compute_change_points

    points, _ = compute_change_points(list(values), window_len=50, max_pvalue=parameter)
    return [int(point.index) for point in points]


def kernel_linear(values: list[float], parameter: float) -> list[int]:
    """KernelCPD of ruptures for means; the penalty is `parameter` * log(n) variances of the noise."""
    return _kernel("linear", values, parameter * math.log(len(values)) * _deviation(values) ** 2)


def kernel_rbf(values: list[float], parameter: float) -> list[int]:
    """KernelCPD of ruptures, Gaussian kernel with its width by the median; penalty `parameter` * log(n)."""
    return _kernel("rbf", values, parameter * math.log(len(values)))


def _kernel(kernel: str, values: list[float], penalty: float) -> list[int]:
    import numpy as np
    import ruptures

    signal = np.array(values)
    found = ruptures.KernelCPD(kernel=kernel, min_size=2).fit(signal).predict(pen=penalty)
    return [int(index) for index in found[:-1]]


def _deviation(values: list[float]) -> float:
    """Return the standard deviation of the noise from differences of neighbours, robust against steps."""
    import numpy as np

    return float(np.median(np.abs(np.diff(values)))) / 0.6745 / math.sqrt(2)


def potts(values: list[float], parameter: float) -> list[int]:
    """asv's Potts segmentation, least absolute deviations; beta is `parameter` * log(n)/n, by default 4."""
    from asv.step_detect import solve_potts_autogamma

    n = len(values)
    right, *_ = solve_potts_autogamma(list(values), [1.0] * n, beta=parameter * math.log(n) / n)
    return [int(index) for index in right[:-1]]


TOOLS: dict[str, Finder] = {
    "otava": otava,
    "kernel-linear": kernel_linear,
    "kernel-rbf": kernel_rbf,
    "potts": potts,
}


def positions(find: Finder, series: Series, parameter: float) -> list[int]:
    """Return the positions of changes in `series`, ignoring gaps."""
    there = [i for i, value in enumerate(series) if value is not None]
    if len(there) < SHORTEST:
        return []
    return [there[i] for i in find([value for value in series if value is not None], parameter)]


def nightly(find: Finder, series: Series, parameter: float, start: int) -> Iterator[tuple[int, int]]:
    """Yield position and night of every change that is first reported at night `start` or later."""
    known = positions(find, series[:start], parameter)
    for night in range(start, len(series)):
        if series[night] is None:
            continue
        for index in positions(find, series[: night + 1], parameter):
            if all(abs(index - other) > REPEATED for other in known):
                known.append(index)
                yield index, night


def answer(job: dict[str, Any]) -> list[list[tuple[int, int]]]:
    """Return the changes that the tool of a job reports for each of its series."""
    find, parameter = TOOLS[job["tool"]], job["parameter"]
    if job["start"] is None:
        return [
            [(index, len(series) - 1) for index in positions(find, series, parameter)]
            for series in job["series"]
        ]
    found = []
    for series, start in zip(job["series"], job["start"], strict=True):
        alerts = nightly(find, series, parameter, start)
        first = next(alerts, None) if job["stop_early"] else None
        found.append(([first] if first else []) if job["stop_early"] else list(alerts))
    return found


if __name__ == "__main__":
    json.dump([answer(job) for job in json.load(sys.stdin)], sys.stdout)
