"""What the evidence of the latest nights says tonight, long before it would raise a change.

Where a suspicion is measured again the same night, a false one costs an hour of a machine. So far less
evidence is asked for than of a change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.change_point import ChangePoint, Known
from history.stats.change_points.online_cusum import FALSE_SHARE, Watchers
from history.stats.change_points.watch import taken

Array = NDArray[np.float64]

SUSPECTED = 1.2
"""Nats for which suspicions become rarer by the factor e."""

AT_LEAST = 0.01
"""The probability up to which evidence is described: nobody asks for less."""

YEAR = 365


@dataclass(frozen=True)
class StepEvidence:
    """The evidence for a step in the latest nights of a series."""

    probability: float
    """The share of quiet nights in which as much evidence comes up for the first time."""

    first: int
    """The last night that surely had the old level."""

    size: float
    """By how much the level rose, in the units of the values."""


def evidence_tonight(matrix: Array, known: Sequence[Known] = ()) -> list[StepEvidence | None]:
    """Return the evidence in each row of `matrix` [series, nights] after its last night.

    None where there is little, or none can be told yet. `known` are as those of watch_many.
    """
    watchers = Watchers(len(matrix))
    raised: dict[int, ChangePoint] = {}
    for changes in taken(watchers, matrix, known):
        raised = changes
    found: list[StepEvidence | None] = [None] * len(matrix)
    for column, excess in enumerate(watchers.excess.tolist()):
        change = raised.get(column) or (watchers.describe(column) if chance_of(excess) <= AT_LEAST else None)
        if change is not None:
            chance = chance_of(0.0) if column in raised else chance_of(excess)
            found[column] = StepEvidence(chance, change.first, change.size)
    return found


def chance_of(excess: float) -> float:
    """Return the share of quiet nights with evidence that exceeds what a change has to bring by so much."""
    return min(FALSE_SHARE / YEAR * math.exp(min(-excess / SUSPECTED, 50.0)), 1.0)
