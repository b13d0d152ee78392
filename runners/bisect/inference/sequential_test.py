"""Whether bad differs from good at all: a sequential test, valid at every round.

The ratio of the evidence for a change to that for none, averaged over sizes of change and of noise, exceeds
1 / a with a probability of at most a when there is none, however often it is looked at (Ville 1939; Robbins
1970 on mixtures; Pérez-Ortiz and others 2022 on unknown noise). So the odds below bound the false positive
rate. No change is reported when the measured bad differs by less than the threshold with all but a share of
its posterior, from a flat prior. A difference that is known to be about the threshold would be neither for a
long time; it is a change, of which no more rounds are needed.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from runners.bisect.domain.rules import Rules
from runners.bisect.inference.level_likelihood import Levels, quantiles, total
from runners.bisect.inference.posterior import priors

CLAIMED_SHARE = 0.1
"""The share of the allowed error that may be spent on reporting a change where there is none."""

DISMISSED_SHARE = 0.1
"""The share of the allowed error that may lie beyond the threshold when no change is reported."""

KNOWN_SHARE = 0.3
"""The width of the interval of bad, as a share of the threshold, up to which it tells all that is needed."""


@dataclass(frozen=True)
class SequentialResult:
    """The result of the test on the rounds of bad."""

    state: Literal["open", "change", "none", "swapped"]
    probability: float
    """Of a change, with even prior odds; of less than the threshold; of no change while it is open."""


def confirm(levels: Levels, bad: int, rules: Rules) -> SequentialResult:
    """Test the rounds of position `bad`."""
    if levels.rounds(bad) < rules.least_rounds:
        return SequentialResult("open", 0.5)
    prior = priors(levels.grid, rules)
    logs = levels.likelihood(bad) + levels.scale_prior[:, None]
    none = float(total(logs + prior.before))
    asked = float(total(logs + prior.after)) - none
    opposite = float(total(logs + prior.opposite)) - none if rules.sign else -np.inf
    claimed = -np.log(CLAIMED_SHARE * (1 - rules.confidence))
    weights = np.exp(np.array([0.0, asked, opposite]) - max(0.0, asked, opposite))
    shares = weights / weights.sum()
    if max(asked, opposite) >= claimed:
        swapped = opposite > asked
        return SequentialResult("swapped" if swapped else "change", float(shares[2 if swapped else 1]))
    limit, weights = float(np.log1p(rules.threshold)), levels.distribution(bad)
    left = float(weights[np.abs(levels.grid.values) >= limit].sum())
    if left <= DISMISSED_SHARE * (1 - rules.confidence):
        return SequentialResult("none", 1 - left)
    middle, low, high = quantiles(levels.grid.values, weights, rules.confidence)
    if high - low <= KNOWN_SHARE * limit and (low <= limit <= high or low <= -limit <= high):
        swapped = middle * rules.sign < 0
        return SequentialResult("swapped" if swapped else "change", rules.confidence)
    return SequentialResult("open", float(shares[0]))
