"""Whether one of two versions has more of an event that is rare or absent, from counts of the same rounds.

Given the events of both versions together, those of one are binomial if both occur at the same rate per
exposure (Przyborowski & Wilenski, Biometrika 31, 1940). This is exact for Poisson counts, also where
one version has none. Counts of rounds scatter more than that: events come in groups, and their rate moves
from round to round. All counts are therefore divided by the dispersion (McCullagh & Nelder, Generalized
Linear Models, section 4.5). Three rounds cannot show that one pause of a server delays all clients at once,
so that callers give the size of such a group.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from history.stats.distributions import binomial_tail, student_tail
from history.stats.estimators import mean, variance
from history.stats.noise_model import Noise
from history.stats.repeated_intervals import moderated

ROUND_SCATTER = 0.2
"""The least coefficient of variation of the rate from round to round, which few rounds cannot show."""


RATIO_SCATTER = Noise(sd=0.3, df=8.0)
"""How far log ratios of two equal builds' counts are expected to move from round to round, as simulated
sessions whose rates move by 30 % do (docs/decisions/0075-tails-and-onset.md)."""


@dataclass(frozen=True)
class Events:
    """The events of one version in each round, and what they were counted in, such as transactions."""

    counts: Sequence[float]
    exposures: Sequence[float]

    @property
    def total(self) -> float:
        """The events of all rounds."""
        return sum(self.counts)

    @property
    def exposure(self) -> float:
        """What they were counted in, of all rounds."""
        return sum(self.exposures)


def chance_of_more(events: Events, others: Events, ratio: float = 1.0, group: float = 1.0) -> float:
    """Return the probability of so many of all events on the side of `events`, if its rate were no higher.

    That is no higher than `ratio` times the rate of `others`. It is 1 without an event. One cause may bring
    up to `group` events. Raises ValueError without an exposure on either side.
    """
    return _chance(events, others, ratio, group)


def chance_of_poisson(events: Events, others: Events) -> float:
    """Return the same probability of counts that scatter as Poisson counts do: the least that it can be.

    Raises ValueError without an exposure on either side.
    """
    return _chance(events, others, ratio=1.0, group=None)


def _chance(events: Events, others: Events, ratio: float, group: float | None) -> float:
    if events.exposure <= 0 or others.exposure <= 0:
        raise ValueError("events need an exposure on both sides")
    if not events.total:
        return 1.0
    share = ratio * events.exposure / (ratio * events.exposure + others.exposure)
    scale = 1.0 if group is None else dispersion((events, others), group)
    return binomial_tail(events.total / scale, others.total / scale, share)


def chance_by_scatter(events: Events, others: Events) -> float:
    """Return the probability of so much higher rates, if log ratios of rounds scatter around none.

    It is Student's t test of the paired rounds, whose variance is moderated by RATIO_SCATTER (Smyth 2004),
    and needs no model of the counts: what came in one round of several, in groups or with a disturbance, is
    no evidence. Half an event is added to each count (Haldane, Annals of Human Genetics 20, 1956). Raises
    ValueError without a round.
    """
    sides = [zip(side.counts, side.exposures, strict=True) for side in (events, others)]
    logs = [
        math.log((count + 0.5) / exposure * other_exposure / (other + 0.5))
        for (count, exposure), (other, other_exposure) in zip(*sides, strict=True)
        if exposure > 0 and other_exposure > 0
    ]
    if not logs:
        raise ValueError("events need a round with an exposure on both sides")
    own = variance(logs) if len(logs) > 1 else 0.0
    spread, df = moderated(own, len(logs) - 1, RATIO_SCATTER)
    return student_tail(mean(logs) / math.sqrt(spread / len(logs)), df)


def dispersion(sides: Sequence[Events], group: float = 1.0) -> float:
    """Return how many times the variance of Poisson counts the counts of rounds have, at least `group`.

    It is Pearson's statistic over its degrees of freedom, each side with a rate of its own, and at least what
    ROUND_SCATTER makes of the largest mean of a side. Events that come `group` at a time have a variance of
    `group` times their mean.
    """
    statistic, freedom, least = 0.0, 0, group
    for side in sides:
        if not side.total:
            continue
        rate = side.total / side.exposure
        expected = [rate * exposure for exposure in side.exposures]
        pairs = zip(side.counts, expected, strict=True)
        statistic += sum((count - mean) ** 2 / mean for count, mean in pairs if mean > 0)
        freedom += len(side.counts) - 1
        least = max(least, group + ROUND_SCATTER**2 * side.total / len(side.counts))
    return max(least, statistic / freedom if freedom else 1.0)
