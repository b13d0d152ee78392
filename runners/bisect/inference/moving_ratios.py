"""The evidence that ratios move while the search goes on, so that no commit need be to blame.

The data of a server grow old, a disk fills up, a clock slows down: then rounds of a position differ more the
later they are measured, and what was measured late looks like the other side of a change. Two things may move
against good: bad alone, all other positions being as good is; or every position alike. Either moves from the
level of good to another one, along a straight line during a part of the search. A change of a commit, in
contrast, is there from the first round of a position on.
"""

import math
from collections.abc import Sequence

import numpy as np

from runners.bisect.inference.level_likelihood import NEVER, Array, Levels, student, total

COURSES = ((0.0, 1.0), (0.0, 0.5), (0.0, 0.25), (0.0, 0.125), (0.25, 0.75), (0.5, 1.0))
"""The shares of the rounds so far at which the ratios may begin to move, and at which they are at the end.

A move that was over within the first rounds is as a change that was there from the beginning. As the search
goes on, the shortest one becomes longer, so that it is told apart sooner or later."""

COARSE = 4
"""Every so many levels of the grid are used for the level that ratios move to."""


def moving_evidence(levels: Levels, positions: Sequence[int], near: Array, far: Array) -> tuple[Array, float]:
    """Return (scales,) log-evidence of ratios that move, averaged over both ways and all courses.

    And the mean level, a log ratio, that they move to. positions: the measured ones, bad as the last. near
    and far: (levels,) log-priors of the level of good, and of the one that bad moves to; NEVER for impossible
    ones.
    """
    where, ratios = levels.timeline
    places = np.flatnonzero(far > NEVER / 2)[::COARSE]
    ends, prior = levels.grid.values[places], far[places]
    prior = prior - total(prior)
    others = near
    for position in positions[:-1]:
        others = others + levels.likelihood(position)
    at_good = total(np.broadcast_to(others, (len(levels.scales), len(near))), axis=1)
    time = np.linspace(0.0, 1.0, len(ratios)) if len(ratios) > 1 else np.zeros(len(ratios))
    of_bad = where == positions[-1]
    logs = []
    for begins, is_over in COURSES:
        way = np.clip((time - begins) / (is_over - begins), 0.0, 1.0)
        by_round = student(ratios[:, None] - way[:, None] * ends, levels.scales)
        logs.append(by_round[of_bad].sum(axis=0) + prior + at_good[:, None])
        logs.append(by_round.sum(axis=0) + prior)
    every = np.stack(logs) - math.log(len(logs))
    densities = np.exp(every - every.max()).sum(axis=(0, 1))
    return total(total(every, axis=2), axis=0), float(densities @ ends / densities.sum())
