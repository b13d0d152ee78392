"""Chooses the numbers of history/stats/change_points/parameters.toml anew, by pattern search (Hooke & Jeeves,
Journal of the ACM 8, 1961).

Each number in turn is tried by a share of itself lower and higher, with all others as they are. Another value
is taken if the false changes stay within their limits and steps are found sooner (the nightly watch) or more
often (finished series). When nothing more is taken, the share becomes smaller. All trials get the same
series, which are used for nothing else: their seeds are (SEEDS["choose"], kind, and what they are for).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from benchmarks.output.figures import Figure
from benchmarks.simulation.detection_series import (
    KINDS,
    NIGHTS,
    Array,
    Kind,
    Stepped,
    one_step,
    several_steps,
    step_in_the_middle,
)
from benchmarks.simulation.finished_series import DRIFTS, LARGE_SIZE, SIZE
from benchmarks.simulation.odd_noise import TUNED_ON
from benchmarks.simulation.scores import Reports, delay_of, false_share, finished_score
from history.stats.change_points import FALSE_SHARE, find_changes_many, watch_many
from history.stats.change_points.parameters import (
    PARTITION,
    SEEDS,
    TABLE,
    WATCH,
    PartitionParameters,
    WatchParameters,
)

Parameters = TypeVar("Parameters", WatchParameters, PartitionParameters)

SHARES = (0.1, 0.05, 0.025)
"""By how much of itself a number is changed, one after the other."""

MIN_GAIN = 0.002
"""What a value has to win to be taken: the loss is a mean of logarithms of nights, or of shares."""

QUIET_SERIES = 4_000
"""Years without a step of each kind: the standard error of a share of 2 % is 0.2 %."""

STEPPED_SERIES = 500
SIZES = (1.5, 2.0, 3.0)
LENGTHS = (100, 150)
JUDGED_SHARE = 0.0125
"""What the judge asks the watch for with 40 series: half a false change a year in all of them together."""

MARGIN = 0.95
"""The share of what is promised that false changes may reach: on other series there are a few more."""

MAX_FALSE = 0.02
MAX_FALSE_ODD = 0.03

ALL_KINDS: dict[str, Kind] = {**KINDS, **DRIFTS, **TUNED_ON}


def choose_figures() -> Iterator[Figure]:
    """Choose all numbers anew, rewrite the table, and yield how many changed and what was won."""
    text = TABLE.read_text(encoding="utf-8")
    watch = choose(WATCH, watch_loss, watch_excess)
    yield from _compared("watch", WATCH, watch, watch_loss, watch_excess)
    partition = choose(PARTITION, partition_loss, partition_excess)
    yield from _compared("partition", PARTITION, partition, partition_loss, partition_excess)
    TABLE.write_text(rewritten(rewritten(text, watch), partition), encoding="utf-8")


def choose(
    start: Parameters, loss: Callable[[Parameters], float], excess: Callable[[Parameters], float]
) -> Parameters:
    """Return the parameters of the least `loss` whose `excess` over the limits is 0, near `start`.

    If that of `start` is not 0, it is made smaller first, at whatever loss.
    """
    best, least, over = start, loss(start), excess(start)
    print(f"loss {least:.4f}, false changes {100 * over:.1f} % over their limit", flush=True)
    for share in SHARES:
        moved = True
        while moved:
            moved = False
            for name, place in _numbers(best):
                for factor in (1 - share, 1 + share):
                    tried = _changed(best, name, place, factor)
                    found = loss(tried)
                    if not over and found > least - MIN_GAIN:
                        continue
                    beyond = excess(tried)
                    if beyond < over or (not over and not beyond):
                        print(f"{name} = {getattr(tried, name)}: loss {found:.4f}", flush=True)
                        best, least, over, moved = tried, found, beyond, True
    return best


def _numbers(parameters: Parameters) -> list[tuple[str, int | None]]:
    """Return the name of each number, with its place if there are several under one name; those of 0 stay."""
    found: list[tuple[str, int | None]] = []
    for name, value in vars(parameters).items():
        if isinstance(value, Sequence):
            found += [(name, place) for place, element in enumerate(value) if element]
        else:
            found.append((name, None))
    return found


def _changed(parameters: Parameters, name: str, place: int | None, factor: float) -> Parameters:
    value: Any = getattr(parameters, name)
    if place is not None:
        value = [_rounded(old * factor) if number == place else old for number, old in enumerate(value)]
    elif isinstance(value, int):
        step = max(round(value * abs(factor - 1)), 1)
        value += step if factor > 1 else -step
    else:
        value = _rounded(value * factor)
    return replace(parameters, **{name: value})


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def rewritten(text: str, parameters: WatchParameters | PartitionParameters) -> str:
    """Return the text of the table with these values; comments stay."""
    values = {field.name: getattr(parameters, field.name) for field in fields(parameters)}
    lines = text.splitlines(keepends=True)
    for place, line in enumerate(lines):
        name = line.partition(" = ")[0]
        if name in values:
            lines[place] = f"{name} = {values[name]}\n"
    return "".join(lines)


def _compared(
    name: str,
    before: Parameters,
    after: Parameters,
    loss: Callable[[Parameters], float],
    excess: Callable[[Parameters], float],
) -> Iterator[Figure]:
    changed = [
        field.name for field in fields(before) if getattr(before, field.name) != getattr(after, field.name)
    ]
    yield Figure(f"{name}: numbers that changed", len(changed), "", note=", ".join(changed))
    yield Figure(f"{name}: loss before", loss(before), "")
    yield Figure(f"{name}: loss", loss(after), "")
    yield Figure(f"{name}: false changes over their limit", 100 * excess(after), "%", at_most=0.0)


# --- the nightly watch


def watch_loss(parameters: WatchParameters, series: int = STEPPED_SERIES) -> float:
    """Return the mean logarithm of the nights until a step is raised, over kinds and sizes.

    Those in Gaussian noise are looked at with the judge's share, too.
    """
    looks = [(name, FALSE_SHARE) for name in KINDS] + [("gaussian", JUDGED_SHARE)]
    delays = []
    for name, share in looks:
        for size in SIZES:
            stepped = _one_step(name, size, series)
            delays.append(delay_of(stepped.steps, _raised(stepped.values, share, parameters)).mean)
    return float(np.mean(np.log(delays)))


def watch_excess(parameters: WatchParameters, series: int = QUIET_SERIES) -> float:
    """Return by what share of their limit false changes exceed it in the worst kind of noise, at least 0."""
    limits = [(name, share, share) for name in KINDS for share in (FALSE_SHARE, JUDGED_SHARE)]
    limits += [(name, JUDGED_SHARE, MAX_FALSE_ODD) for name in TUNED_ON]
    worst = 0.0
    for name, share, limit in limits:
        raised = _raised(_quiet(name, NIGHTS, series), share, parameters)
        worst = max(worst, false_share(raised) / 100 / (limit * MARGIN) - 1)
    return worst


def _raised(values: Array, share: float, parameters: WatchParameters) -> Reports:
    found = watch_many(values, share, parameters=parameters)
    return [[(change.index, change.raised or 0) for change in changes] for changes in found]


# --- finished series


def partition_loss(parameters: PartitionParameters) -> float:
    """Return the mean share of steps that are missed.

    They are small ones, large ones on top of a drift, and several in a series, for which it is 1 - F1.
    """
    missed = []
    for name in (*KINDS, *DRIFTS):
        for nights in LENGTHS:
            made = _in_the_middle(name, nights, SIZE if name in KINDS else LARGE_SIZE)
            score = finished_score(made.steps, _found(made.values, parameters))
            missed.append(score.missed / STEPPED_SERIES)
    for name in KINDS:
        several = _several(name)
        missed.append(1 - finished_score(several.steps, _found(several.values, parameters)).f1)
    return float(np.mean(missed))


def partition_excess(parameters: PartitionParameters) -> float:
    """Return by what share of their limit false changes exceed it, as `watch_excess`."""
    worst = 0.0
    for name in (*KINDS, *DRIFTS):
        for nights in (*LENGTHS, NIGHTS):
            false = false_share(_found(_quiet(name, nights, QUIET_SERIES), parameters)) / 100
            worst = max(worst, false / (MAX_FALSE * MARGIN) - 1)
    return worst


def _found(values: Array, parameters: PartitionParameters) -> Reports:
    last = values.shape[1] - 1
    return [[(change.index, last) for change in found] for found in find_changes_many(values, parameters)]


# --- series


@cache
def _quiet(name: str, nights: int, series: int) -> Array:
    return ALL_KINDS[name](np.random.default_rng(_seed(name, 0, nights)), (series, nights))


@cache
def _one_step(name: str, size: float, series: int) -> Stepped:
    return one_step(ALL_KINDS[name], _seed(name, 1, round(100 * size)), series, size)


@cache
def _in_the_middle(name: str, nights: int, size: float) -> Stepped:
    return step_in_the_middle(ALL_KINDS[name], _seed(name, 2, nights), (STEPPED_SERIES, nights), size)


@cache
def _several(name: str) -> Stepped:
    return several_steps(ALL_KINDS[name], _seed(name, 3), STEPPED_SERIES)


def _seed(name: str, *purpose: int) -> tuple[int, ...]:
    return (SEEDS["choose"], list(ALL_KINDS).index(name), *purpose)
