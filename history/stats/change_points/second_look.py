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
from history.stats.change_points.parameters import WatchParameters
from history.stats.distributions import student_quantile, student_tail

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LARGER = (1.4, 2.0)
"""Factors by which the noise may have grown."""

GROWN_WITHIN = 64
"""Latest nights at one of which it may have grown, each as probable as the others."""

LONGEST = 32
"""Latest nights at one of which the step may have been. A step that took longer is left to the usual rule."""

OWN_LONGEST = 12
"""The same for the series' own tails: they decide about the few nights that are far away, not about many."""

MIN_OWN = 0.5
"""Scales from the level up to which a night counts as what it is, whatever the tails."""

MAX_OWN = 30.0
"""Scales from which on a night counts as so far: the tail beyond is too small a number to divide by."""


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

    parameters: WatchParameters
    """What is asked of them; its handicaps are [sizes]."""


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
    lasted, `asked` [sizes, series] the nats that each size of step has to bring. Beyond what
    the parameters ask for they are asked for `stricter` nats: the first of every step, the second of one of
    two nights, less of longer ones.
    """
    parameters = steps.parameters
    there = np.isfinite(residuals)
    relative = np.where(there, residuals / noise.scale, 0.0)
    nights = relative.copy()
    nights[:-1] -= noise.correlation * np.clip(relative[1:], -NEAR, NEAR)
    nights = np.where(there, nights / noise.innovation, 0.0)
    held = _more_likely_than_larger_noise(nights, there, noise, steps, stricter)
    held |= runs > LONGEST
    some = held & (runs <= OWN_LONGEST)
    if some.any():
        own = _by_own_tails(relative[:, some], there[:, some], runs[some], noise.of(some), parameters)
        nights = nights[: len(own), some] * own
        ahead = _evidence(nights, there[:, some], noise.of(some), steps) - asked[:, None, some]
        held[some] = _most(ahead, there[:, some]) >= -parameters.own_margin
    return held


def _more_likely_than_larger_noise(
    nights: Array, there: Mask, noise: BaselineNoise, steps: WatchedSteps, stricter: tuple[float, float]
) -> Mask:
    parameters = steps.parameters
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
        np.logaddexp.reduce(stepped) + math.log(parameters.step_in_larger),
    )
    longer = np.minimum(np.cumsum(there[:LONGEST], axis=0) - 2, parameters.over_nights)
    always, short = stricter
    over = parameters.over_larger + always + parameters.over_each * longer
    over = over + short * (1 - parameters.short_fades * longer / parameters.over_nights)
    ahead = step - np.logaddexp.reduce(grown) - np.array(parameters.handicaps)[:, None, None] - over
    return np.asarray(_most(ahead, there) >= 0)


def _by_own_tails(
    relative: Array, there: Mask, runs: Array, noise: BaselineNoise, parameters: WatchParameters
) -> Array:
    """Return by what to multiply the latest nights so that they are as far away as they are rare.

    [nights, series]; the nights before those of the step tell how rare.
    """
    past = np.where(there & (np.arange(len(relative))[:, None] >= runs), relative, -np.inf)
    known, prior = np.isfinite(past).sum(axis=0), parameters.own_prior
    factors = np.ones((min(OWN_LONGEST, len(relative)), relative.shape[1]))
    for night, factor in zip(relative, factors, strict=False):
        seen = (past >= night - parameters.own_width).sum(axis=0)
        for series in np.flatnonzero(night > MIN_OWN):
            far, degrees = min(float(night[series]), MAX_OWN), float(noise.degrees[series])
            expected = student_tail(far - parameters.own_width, degrees)
            share = (seen[series] + prior * expected) / ((known[series] + prior) * expected)
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
