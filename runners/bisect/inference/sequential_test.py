"""Whether bad differs from good at all: a sequential test, which may be looked at after every round.

The ratio of the evidence for a change to that for none, averaged over sizes of change and of noise, exceeds
1 / a with a probability of at most a when there is none, however often it is looked at (Ville 1939; Robbins
1970 on mixtures; Pérez-Ortiz and others 2022 on unknown noise). So the odds below bound the share of ranges
without a change in which one is claimed. There is none when bad, as it was measured, differs by less than the
threshold with all but a share of its posterior, from a flat prior.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from runners.bisect.domain.rules import Rules
from runners.bisect.inference.level_likelihood import Levels, total
from runners.bisect.inference.posterior import priors

LEAST_ROUNDS = 3
"""Before anything is said: two rounds can stall alike."""

CLAIMED_SHARE = 0.1
"""Of the error that the rules allow, what may go to a change where there is none."""

DISMISSED_SHARE = 0.1
"""Of the same error, what may be left beyond the threshold on both sides when there is said to be none."""


@dataclass(frozen=True)
class SequentialResult:
    """What the rounds of bad say."""

    state: Literal["open", "change", "none", "swapped"]
    probability: float
    """Of a change, with even odds beforehand; of less than the threshold; of no change while it is open."""


def confirm(levels: Levels, bad: int, rules: Rules) -> SequentialResult:
    """Look at the rounds of position `bad`."""
    if levels.rounds(bad) < LEAST_ROUNDS:
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
    beyond = np.abs(levels.grid.values) >= np.log1p(rules.threshold)
    left = float(levels.distribution(bad)[beyond].sum())
    if left <= DISMISSED_SHARE * (1 - rules.confidence):
        return SequentialResult("none", 1 - left)
    return SequentialResult("open", float(shares[0]))
