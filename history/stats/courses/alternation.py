"""Whether a finished series alternates: between the same two levels, there and back several times."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from history.stats.change_points.change_point import ChangePoint

MIN_SWITCHES = 4
"""Switches from one level to the other from which on a series alternates: a step, its end, and both again."""

SAME_LEVEL = 0.3
"""The share of the distance between two levels by which the nights of one of them may differ."""


@dataclass(frozen=True)
class Alternation:
    """A series between two levels; positions count its nights from 0, gaps included."""

    switches: tuple[ChangePoint, ...]
    """The changes from one level to the other, in order."""

    before: float
    """The level before the first switch, in the units of the values."""

    after: float
    """The other level."""

    @property
    def first(self) -> int:
        """The last night that is surely before the first switch."""
        return self.switches[0].first

    @property
    def last(self) -> int:
        """The first night that is surely after the last switch."""
        return self.switches[-1].last

    @property
    def size(self) -> float:
        """The other level less the one before the first switch."""
        return self.after - self.before

    @property
    def margin(self) -> float:
        """The half-width of the interval of the size, that of a single switch on average."""
        return float(np.mean([(switch.high - switch.low) / 2 for switch in self.switches]))


def find_alternation(changes: Sequence[ChangePoint]) -> Alternation | None:
    """Return the longest run of changes between the same two levels, of MIN_SWITCHES or more.

    None if there is more than one other change for each MIN_SWITCHES of them: among many levels some follow
    each other again by chance.
    """
    found: Alternation | None = None
    for start in range(len(changes)):
        for end in range(len(changes), start + MIN_SWITCHES - 1, -1):
            run = _alternation(changes[start:end])
            if run is not None and (found is None or len(run.switches) > len(found.switches)):
                found = run
    if found is not None and len(changes) - len(found.switches) > len(found.switches) / MIN_SWITCHES:
        return None
    return found


def _alternation(changes: Sequence[ChangePoint]) -> Alternation | None:
    levels = [changes[0].before, *(change.after for change in changes)]
    before, after = float(np.median(levels[::2])), float(np.median(levels[1::2]))
    allowed = SAME_LEVEL * abs(after - before)
    is_same = all(
        abs(level - (after if number % 2 else before)) <= allowed for number, level in enumerate(levels)
    )
    return Alternation(tuple(changes), before, after) if is_same else None
