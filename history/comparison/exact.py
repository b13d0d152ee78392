"""The interval of a ratio of counts, which repeat to a fraction of a per cent: what two passes allow.

A count has no noise that more rounds would average out. Passes of one build agree to `agreement`; two builds
of the same source, each with data that it loaded itself, to `allowance` (docs/instructions.md has the figures
of both). The interval is as wide as the allowance and what the passes differ by.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from build.version import Engine
from history.stats.estimators import Interval, mean
from suites.counting.engines import COUNTED
from suites.metrics import METRICS

MIN_PASSES = 2
"""The passes that a verdict needs: the second shows whether the first can be trusted."""


@dataclass(frozen=True)
class ExactRule:
    """How much counts of equal code differ, as fractions."""

    agreement: float
    """Between two passes of one build; beyond that, at least one of them counted something else."""

    allowance: float
    """Between two builds of the same source."""


def exact_rule(engines: Collection[Engine]) -> ExactRule:
    """Return the rule for versions of these engines: that of the engine whose counts agree least."""
    entries = [COUNTED[engine] for engine in engines]
    return ExactRule(max(entry.agreement for entry in entries), max(entry.allowance for entry in entries))


def is_exact(metric: str) -> bool:
    """Whether a metric is counted for fixed work, and so judged by passes and a threshold of its own."""
    return METRICS[metric].is_counted


def agree(values: Collection[float], agreement: float) -> bool:
    """Whether passes, whose values are above zero, differ by no more than `agreement`."""
    return math.log(max(values) / min(values)) <= agreement


def agreeing(values: Sequence[float], agreement: float) -> tuple[float, ...]:
    """Return the passes that agree: all, else the two closest ones of at least three; empty without such."""
    logs = sorted(math.log(value) for value in values)
    if len(logs) < MIN_PASSES:
        return ()
    if agree(values, agreement):
        return tuple(logs)
    closest = min(pairwise(logs), key=lambda pair: pair[1] - pair[0])
    return closest if len(logs) > MIN_PASSES and closest[1] - closest[0] <= agreement else ()


def exact_interval(base: Sequence[float], contender: Sequence[float], rule: ExactRule) -> Interval | None:
    """Return the interval of contender over base; None with too few passes, or when they disagree.

    `base` and `contender` are the counts of their passes, in any order. The margin on the scale of logarithms
    is the allowance plus half of what the passes of either differ by.
    """
    if min((*base, *contender), default=0.0) <= 0:
        return None
    old, new = agreeing(base, rule.agreement), agreeing(contender, rule.agreement)
    if not old or not new:
        return None
    middle = mean(new) - mean(old)
    margin = math.log1p(rule.allowance) + (max(old) - min(old) + max(new) - min(new)) / 2
    low, high = math.exp(middle - margin), math.exp(middle + margin)
    return Interval(math.exp(middle), low, high, min(len(base), len(contender)))
