"""A second look before a change is raised: would other noise explain its nights as well as a step does?

Two explanations compete with the step. The noise may have become larger: then nights far away say nothing
about the level, and they lie on both sides of it. And the noise may have tails that no Student's t has:
skewed, of few values, or with bad nights among good ones. The first is weighed by the likelihood of the
latest nights under larger noise from some night on, a mixture over scales and first nights; the second by the
share of the series' own nights that were as far from the level.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.baseline import NEAR
from history.stats.distributions import student_quantile, student_tail

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LARGER = (1.4, 2.0)
"""Factors by which the noise may have grown."""

GROWN_WITHIN = 64
"""Latest nights at one of which it may have grown, each as probable as the others."""

STEP_IN_LARGER = 3e-4
"""Weight of a step in noise that has grown, against a step in the usual noise: it is raised as well, if the
evidence is about as much as the usual threshold."""

OVER_LARGER = 1.0
"""Nats by which a step of two nights has to be more likely than noise that grew with it or before it."""

OVER_EACH = 0.1
"""Nats more for each further night, because a step tells itself from noise better the longer it lasts,"""

OVER_NIGHTS = 6
"""up to so many further nights."""

SHORT_FADES = 0.7
"""Share of what is asked for in addition of a step of two nights that is gone after OVER_NIGHTS further ones:
what larger noise makes look like a step is mostly two to four nights long."""

LONGEST = 32
"""Latest nights at one of which the step may have been. A step that took longer is left to the usual rule."""

OWN_LONGEST = 12
"""The same for the series' own tails: they decide about the few nights that are far away, not about many."""

OWN_WIDTH = 0.25
"""Scales by which a past night may have been nearer than the present one and still counts as equally far:
the level of values that repeat moves a little."""

MIN_OWN = 0.5
"""Scales from the level up to which a night counts as what it is, whatever the tails."""

MAX_OWN = 30.0
"""Scales from which on a night counts as so far: the tail beyond is too small a number to divide by."""

OWN_PRIOR = 30.0
"""Nights that the tails of Student's t count beside the series' own."""

OWN_MARGIN = 1.0
"""Nats by which the evidence may fall short of what was asked for when the series' own tails are counted."""


@dataclass(frozen=True)
class BaselineNoise:
    """The noise of some series as their baseline has it, all [series]; `nights` are those of the level."""

    scale: Array
    degrees: Array
    strongest: Array
    correlation: Array
    innovation: Array
    deviation: Array
    nights: Array

    def of(self, some: Mask) -> "BaselineNoise":
        """Return that of some of the series."""
        return BaselineNoise(*(var[some] for var in vars(self).values()))


@dataclass(frozen=True)
class WatchedSteps:
    """The steps that are watched for in the direction in which a change is about to be raised."""

    sizes: Array
    """In standard deviations, ascending, [sizes]; the largest stands for larger ones, too."""

    handicaps: Array
    """Nats that each has to bring in addition, [sizes]."""


def still_steps(
    residuals: Array,
    runs: Array,
    asked: Array,
    noise: BaselineNoise,
    steps: WatchedSteps,
    stricter: tuple[float, float],
) -> Mask:
    """Return which series have a step that neither larger noise nor their own tails explain, [series].

    `residuals` [nights, series] are the latest nights less the present level, the last one first, nan for a
    gap, positive in the direction of the step. `runs` [series] are the nights that the step seems to have
    lasted, `asked` [sizes, series] the nats that each size of step has to bring. Beyond OVER_LARGER they are
    asked for `stricter` nats: the first of every step, the second of one of two nights, less of longer ones.
    """
    there = np.isfinite(residuals)
    relative = np.where(there, residuals / noise.scale, 0.0)
    nights = relative.copy()
    nights[:-1] -= noise.correlation * np.clip(relative[1:], -NEAR, NEAR)
    nights = np.where(there, nights / noise.innovation, 0.0)
    held = _more_likely_than_larger_noise(nights, there, noise, steps, stricter)
    held |= runs > LONGEST
    some = held & (runs <= OWN_LONGEST)
    if some.any():
        own = _by_own_tails(relative[:, some], there[:, some], runs[some], noise.of(some))
        nights = nights[: len(own), some] * own
        ahead = _evidence(nights, there[:, some], noise.of(some), steps) - asked[:, None, some]
        held[some] = _most(ahead, there[:, some]) >= -OWN_MARGIN
    return held


def _more_likely_than_larger_noise(
    nights: Array, there: Mask, noise: BaselineNoise, steps: WatchedSteps, stricter: tuple[float, float]
) -> Mask:
    nights, there = nights[:GROWN_WITHIN], there[:GROWN_WITHIN]
    usual = np.log(noise.degrees + nights * nights)
    grown, stepped = [], []
    for factor in LARGER:
        scaled = nights / factor
        ratio = (noise.degrees + 1) / 2 * (usual - np.log(noise.degrees + scaled * scaled))
        ratio = np.clip(ratio - math.log(factor), -noise.strongest, noise.strongest) * there
        since = np.cumsum(ratio, axis=0)
        # From each night on, or any before it: rows are the step's first night.
        since = np.logaddexp.accumulate(since[::-1], axis=0)[::-1][:LONGEST]
        grown.append(since)
        stepped.append(_evidence(scaled[:LONGEST], there, noise, steps) + since)
    step = np.logaddexp(
        _evidence(nights[:LONGEST], there, noise, steps),
        np.logaddexp.reduce(stepped) + math.log(STEP_IN_LARGER),
    )
    longer = np.minimum(np.cumsum(there[:LONGEST], axis=0) - 2, OVER_NIGHTS)
    always, short = stricter
    over = OVER_LARGER + always + OVER_EACH * longer + short * (1 - SHORT_FADES * longer / OVER_NIGHTS)
    ahead = step - np.logaddexp.reduce(grown) - steps.handicaps[:, None, None] - over
    return np.asarray(_most(ahead, there) >= 0)


def _by_own_tails(relative: Array, there: Mask, runs: Array, noise: BaselineNoise) -> Array:
    """Return by what to multiply the latest nights so that they are as far away as they are rare.

    [nights, series]; the nights before those of the step tell how rare.
    """
    past = np.where(there & (np.arange(len(relative))[:, None] >= runs), relative, -np.inf)
    known = np.isfinite(past).sum(axis=0)
    factors = np.ones((min(OWN_LONGEST, len(relative)), relative.shape[1]))
    for night, factor in zip(relative, factors, strict=False):
        seen = (past >= night - OWN_WIDTH).sum(axis=0)
        for series in np.flatnonzero(night > MIN_OWN):
            far, degrees = min(float(night[series]), MAX_OWN), float(noise.degrees[series])
            expected = student_tail(far - OWN_WIDTH, degrees)
            share = (seen[series] + OWN_PRIOR * expected) / ((known[series] + OWN_PRIOR) * expected)
            tail = min(float(share) * student_tail(far, degrees), 0.5)
            factor[series] = -student_quantile(degrees, tail) / night[series]
    return factors


def _evidence(nights: Array, there: Mask, noise: BaselineNoise, steps: WatchedSteps) -> Array:
    """Log-likelihood ratio of each step from each of the `nights` on, over none, [sizes, nights, series]."""
    there = there[: len(nights)]
    unit = steps.sizes[:, None, None] * noise.deviation / noise.innovation
    going_on = _ratio(nights, unit * (1 - noise.correlation), noise) * there
    evidence = np.cumsum(going_on, axis=1) - going_on + _ratio(nights, unit, noise)
    return evidence / (1 + np.cumsum(there, axis=0) / noise.nights)


def _ratio(nights: Array, step: Array, noise: BaselineNoise) -> Array:
    left = nights - step
    np.minimum(left[-1], 0.0, out=left[-1])
    ratio = np.log(noise.degrees + nights * nights) - np.log(noise.degrees + left * left)
    return np.asarray(np.clip((noise.degrees + 1) / 2 * ratio, -noise.strongest, noise.strongest))


def _most(ahead: Array, there: Mask) -> Array:
    """Return the most of any size over any two nights or more, [series]."""
    there = there[: ahead.shape[1]]
    able = there & (np.cumsum(there, axis=0) > 1)
    return np.asarray(np.where(able, ahead, -np.inf).max(axis=(0, 1)))
