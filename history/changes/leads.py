"""Leads: where the series of a branch look as if they had changed, with hindsight, over all of their points.

A lead is no change: it says between which points more commits are worth measuring, and which two are worth
measuring against each other.
"""

from dataclasses import dataclass, replace

import numpy as np

from history.changes.detection import rule_of
from history.series.matrix import SeriesMatrix
from history.stats.change_points import ChangePoint, find_changes_many
from suites.metrics import METRICS

FALSE_LEADS = 0.3
"""The mean number of leads in quiet series of a branch; each costs a few sessions, and nobody's time."""


@dataclass(frozen=True)
class Lead:
    """A place at which series look changed; positions are columns of the matrix."""

    first: int
    """The last point that surely has the old level."""

    index: int
    """The first point that has the new level, as estimated: the likeliest place is just before it."""

    last: int
    """The first point that surely has the new level."""

    steps: tuple[str, ...]
    """The steps whose series look changed, the most conspicuous first."""

    by_counts: bool
    """Whether only counted metrics look changed, so that counting again can tell."""


def find_leads(matrix: SeriesMatrix, least: float) -> tuple[Lead, ...]:
    """Return the leads in the series of a matrix, the most conspicuous first.

    `least` is the practical threshold as a fraction; as for a suspect, a lead differs by at least half of it,
    or as its metric's row says.
    """
    found = []
    limit = FALSE_LEADS / max(1, len(matrix.series))
    for row, points in enumerate(find_changes_many(matrix.log_ratios())):
        _, step, metric = matrix.series[row]
        _, distance = rule_of(metric).suspect(metric, 1.0, least)
        found += [
            (_strength(point), step, metric, point)
            for point in points
            if abs(point.size) > distance and 1 - point.confidence <= limit
        ]
    leads: list[Lead] = []
    for _, step, metric, point in sorted(found, key=lambda finding: -finding[0]):
        same = next((n for n, lead in enumerate(leads) if overlap(lead, point)), None)
        is_counted = METRICS[metric].is_counted
        if same is None:
            leads.append(Lead(point.first, point.index, point.last, (step,), is_counted))
        else:
            steps = tuple(dict.fromkeys((*leads[same].steps, step)))
            leads[same] = replace(leads[same], steps=steps, by_counts=leads[same].by_counts and is_counted)
    return tuple(leads)


def overlap(lead: Lead, point: ChangePoint) -> bool:
    """Return whether a change of a series can be at the same place as a lead."""
    return lead.first < point.last and point.first < lead.last


def _strength(point: ChangePoint) -> float:
    """Return the size of a change over the half width of its interval."""
    return abs(point.size) / max((point.high - point.low) / 2, np.finfo(np.float64).tiny)
