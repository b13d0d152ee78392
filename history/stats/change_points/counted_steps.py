"""Steps in values that hardly scatter, such as counts: by size alone, as soon as one is repeated.

Evidence need not add up over nights where a single value already shows what there is. What a single value
cannot show is that it is right: a count can be of something else than it should be. So a step is raised when
further values agree with the first: those of the next nights here, or passes of the same night
(history/changes/confirmation/decide.py).
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.change_point import ChangePoint, Known
from history.stats.distributions import student_tail
from history.stats.estimators import MAD_TO_DEVIATION

Array = NDArray[np.float64]

RAISING_NIGHTS = 3
"""The nights that agree by which a step is raised: two wrong counts in a row may agree by chance."""

MIN_LEVEL = 2
"""The nights that show a level, before a step from it is raised: one alone may be the wrong one."""

LEVEL_NIGHTS = 30
"""The latest nights of a level, whose median it is: small steps of a toolchain move it along."""

SCATTERS = 4.0
"""The standard deviations that a step has at least, where the series has scattered more than values do."""

OWN_NIGHTS = 8
"""The nights of a level from which on its own scatter counts, if it is larger than usual."""

AGREEING = 4.0
"""The standard deviations by which two values of one new level differ at most."""

FREEDOM = 5.0
"""The degrees of freedom of Student's t by which improbable values are judged."""

NIGHTS_A_YEAR = 365


@dataclass(frozen=True)
class StepRule:
    """What counts as a step; both as differences of logarithms."""

    threshold: float
    """The smallest step."""

    scatter: float
    """The usual standard deviation of a value."""


class _Level:
    """The present level of one series, and the nights off it that may be the next one."""

    def __init__(
        self,
        rule: StepRule,
        values: Sequence[float],
        last: int,
        scatter: float = 0.0,
        *,
        is_sure: bool = False,
    ) -> None:
        self.rule = rule
        self.scatter = max(rule.scatter, scatter)
        """The standard deviation of values: what the level before had, until this one has enough nights."""
        self.is_sure = is_sure
        """Whether more than one value has shown it; one alone may be of something else."""
        self.values: deque[float] = deque(values, LEVEL_NIGHTS)
        self.last = last
        """The last night with it."""
        self.off: list[tuple[int, float]] = []
        """The nights after that, with their values, which lie off it and agree."""
        self._estimate()

    def take(self, night: int, value: float) -> ChangePoint | None:
        """Take in the value of a night; return the change that it raises, if any."""
        distance = value - self.middle
        if abs(distance) < self.limit:
            self.values.append(value)
            self.last = night
            self.off.clear()
            self._estimate()
            return None
        if self.off and abs(value - median(other for _, other in self.off)) > AGREEING * self.scatter:
            self.off.clear()
        self.off.append((night, value))
        if len(self.off) < RAISING_NIGHTS:
            return None
        change = self._change() if self.is_sure or len(self.values) >= MIN_LEVEL else None
        self._begin_anew()
        return change

    def _estimate(self) -> None:
        self.middle = median(self.values)
        if len(self.values) >= OWN_NIGHTS:
            own = MAD_TO_DEVIATION * median(abs(value - self.middle) for value in self.values)
            self.scatter = max(self.rule.scatter, own)
        self.limit = max(self.rule.threshold, SCATTERS * self.scatter)

    def _change(self) -> ChangePoint:
        (first, _), (raised, _) = self.off[0], self.off[-1]
        values = [value for _, value in self.off]
        after, before, count = median(values), self.middle, len(self.values)
        margin = 2 * self.scatter * math.sqrt(1 / len(values) + 1 / count)
        nearest = min(abs(number - before) for number in values)
        chance = 2 * student_tail(nearest / self.scatter, FREEDOM)
        return ChangePoint(
            index=first,
            first=self.last,
            last=first,
            before=before,
            after=after,
            low=after - before - margin,
            high=after - before + margin,
            confidence=1 - min(1.0, NIGHTS_A_YEAR * chance ** len(values)),
            raised=raised,
        )

    def _begin_anew(self) -> None:
        """Go on at the level of the nights that lie off the present one."""
        self.values = deque((value for _, value in self.off), LEVEL_NIGHTS)
        self.last, self.is_sure = self.off[-1][0], True
        self.off.clear()
        self._estimate()


def watch_steps(matrix: Array, rule: StepRule, known: Sequence[Known] = ()) -> list[tuple[ChangePoint, ...]]:
    """Return the changes in each row of `matrix` [series, nights], as raised night by night; nan for gaps.

    `known` changes are not raised: from their nights on the series goes on at their levels.
    """
    return [_watched(values, rule, _of_row(known, row))[0] for row, values in enumerate(matrix)]


def step_probabilities(matrix: Array, rule: StepRule, known: Sequence[Known] = ()) -> Array:
    """Return the two-sided probability of the last night of each row of `matrix` [series, nights].

    nan in a gap, and for a series without an earlier night.
    """
    found = np.full(len(matrix), np.nan)
    for row, values in enumerate(matrix):
        level = _watched(values[:-1], rule, _of_row(known, row))[1]
        if level is not None and math.isfinite(values[-1]):
            distance = abs(float(values[-1]) - level.middle) / level.scatter
            found[row] = 2 * student_tail(distance, FREEDOM)
    return found


def _of_row(known: Sequence[Known], row: int) -> dict[int, float]:
    return {entry.night: entry.level for entry in known if entry.row == row}


def _watched(
    values: Array, rule: StepRule, known: dict[int, float]
) -> tuple[tuple[ChangePoint, ...], _Level | None]:
    """Return the changes of one series, and the level after its last night; None without a night."""
    found: list[ChangePoint] = []
    level: _Level | None = None
    for night, value in enumerate(values.tolist()):
        if night in known:
            level = _Level(rule, [known[night]], night, 0.0 if level is None else level.scatter, is_sure=True)
        if not math.isfinite(value):
            continue
        if level is None:
            level = _Level(rule, [value], night)
        elif (change := level.take(night, value)) is not None:
            found.append(change)
    return tuple(found), level
