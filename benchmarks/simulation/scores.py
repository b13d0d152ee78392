"""Scores of reported changes: the share of false ones, delays, and F1 against the true steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.detection_series import CENSORED

TOLERANCE = 10
"""Nights between a step and the position that a finished series' change may have to be its."""

TIMELY = 30
"""Nights, the step's first one included, within which an alert has to come to be the step's."""

Report = tuple[int, int]
"""A change: its position, and the night at which it was reported."""

Reports = Sequence[Sequence[Report]]
"""The changes of each of some series, in the order of their nights."""


@dataclass(frozen=True)
class Score:
    """Counts over all series: steps found, reports that are no step's, steps not found."""

    found: int
    false: int
    missed: int

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, 0 to 1; 0 where nothing was found."""
        return 2 * self.found / max(2 * self.found + self.false + self.missed, 1)


def false_share(reports: Reports) -> float:
    """Return the percentage of series with a report, none of which has a step."""
    return 100 * float(np.mean([len(changes) > 0 for changes in reports]))


def finished_score(steps: Sequence[Sequence[int]], reports: Reports) -> Score:
    """Return the score for finished series: a report matches a step at most TOLERANCE nights away."""
    return _score(steps, reports, lambda step, _, report: abs(report[0] - step) <= TOLERANCE)


def nightly_score(steps: Sequence[Sequence[int]], reports: Reports) -> Score:
    """Return the score of alerts: one matches a step if it follows within TIMELY nights."""
    return _score(steps, reports, lambda step, end, report: step <= report[1] < min(step + TIMELY, end))


def _score(
    steps: Sequence[Sequence[int]], reports: Reports, fits: Callable[[int, float, Report], bool]
) -> Score:
    """One-to-one matching: steps in order each take the fitting report that is nearest and not yet taken."""
    found = false = missed = 0
    for nights, reported in zip(steps, reports, strict=True):
        free = list(reported)
        taken = 0
        for step, end in zip(nights, [*nights[1:], float("inf")], strict=True):
            fitting = [report for report in free if fits(step, end, report)]
            if fitting:
                free.remove(min(fitting, key=lambda report: abs(report[0] - step)))
                taken += 1
        found, false, missed = found + taken, false + len(free), missed + len(nights) - taken
    return Score(found, false, missed)


@dataclass(frozen=True)
class Delay:
    """Nights with the new level until the alert: 1 when the first of them raises it; CENSORED at most."""

    mean: float
    median: float
    timely: float
    """Percent seen within TIMELY nights."""

    series: int
    """Number of series that count: those without an alert before the step."""


def delay_of(steps: Sequence[Sequence[int]], reports: Reports) -> Delay:
    """Return the delay over series with one step, omitting those with an alert before the step."""
    delays = []
    for (step,), reported in zip(steps, reports, strict=True):
        nights = [night for _, night in reported]
        if not nights or min(nights) >= step:
            delays.append(min([night - step + 1 for night in nights] + [CENSORED]))
    if not delays:
        return Delay(float("nan"), float("nan"), 0.0, 0)
    seen = 100 * float(np.mean([delay <= TIMELY for delay in delays]))
    return Delay(float(np.mean(delays)), float(np.median(delays)), seen, len(delays))
