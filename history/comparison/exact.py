"""The interval of a ratio of counts, which repeat to a fraction of a per cent: what pairs of passes allow.

Pass i of the one version and pass i of the other run the same statements at the same time, and what moves
counts from pass to pass moves both alike: they are a pair. Log ratios of pairs agree to `agreement`; two
builds of the same source, each with data that it loaded itself, to `allowance` (docs/instructions.md has the
figures of both).

A count may have two levels, of which each pass takes one by chance. No number of pairs rules that out, but
chance gives MAX_PASSES pairs the same change in less than one step of a hundred: a pair has the upper level
on a given side only with a probability of at most 1/4, so that it is at most 2 / 4**MAX_PASSES = 0.8 %. With
two pairs it would be one in eight.

What a server writes into its log for fixed work has no such levels: one pair shows that nothing changed, and
a second one whether a change is repeated.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from build.version import Engine
from history.stats.contrary_evidence import LESS, MORE, SAME, Doubt, Objection
from history.stats.estimators import Interval, mean
from suites.counting.engines import COUNTED
from suites.metrics import METRICS, CountedBy

MIN_PASSES = 2
"""The pairs of passes that a verdict needs: the second shows whether the first can be trusted."""

MAX_PASSES = 4
"""The pairs of passes that a change needs, and that are counted where pairs disagree."""

MIN_SHOWN = 0.85
"""The share of the mean change that each pair shows at least where pairs disagree and it is called all the
same."""


@dataclass(frozen=True)
class ExactRule:
    """How much counts of equal code differ, as fractions, and how many pairs of passes decide."""

    agreement: float
    """Between the ratios of two pairs of passes; beyond that, at least one pass counted something else."""

    allowance: float
    """Between two builds of the same source."""

    least: int = MIN_PASSES
    """The pairs that an interval needs."""

    most: int = MAX_PASSES
    """The pairs that a change needs."""


PROOF_RULE = ExactRule(agreement=0.005, allowance=0.003, least=1, most=2)
"""Of what is counted in proofs of equal work."""


def exact_rule(metric: str, engines: Collection[Engine]) -> ExactRule:
    """Return the rule of a counted metric for versions of these engines.

    For instructions it is that of the engine whose counts agree least.
    """
    if METRICS[metric].counted_by is CountedBy.PROOF:
        return PROOF_RULE
    entries = [COUNTED[engine] for engine in engines]
    return ExactRule(max(entry.agreement for entry in entries), max(entry.allowance for entry in entries))


def is_exact(metric: str) -> bool:
    """Whether a metric is counted for fixed work, and so judged by passes and a threshold of its own."""
    return METRICS[metric].is_counted


def pairs_apart(base: Sequence[float], contender: Sequence[float]) -> float:
    """Return the distance of the largest and the smallest log ratio of pairs; values are above zero."""
    logs = _log_ratios(base, contender)
    return max(logs) - min(logs)


def exact_interval(base: Sequence[float], contender: Sequence[float], rule: ExactRule) -> Interval | None:
    """Return the interval of contender over base; None with too few pairs, or when they disagree.

    `base[i]` and `contender[i]` are the counts of a pair. On the scale of logarithms the interval is from the
    smallest ratio of a pair to the largest, with the allowance beyond both; the estimate is their mean. With
    fewer pairs than a change needs by the rule, none may be called. Ratios that disagree have no interval,
    unless each of so many pairs shows the change: its size is in doubt then, not the change.
    """
    if len(base) < rule.least or min(*base, *contender) <= 0:
        return None
    logs = _log_ratios(base, contender)
    middle, low, high = mean(logs), min(logs), max(logs)
    is_few = len(logs) < rule.most
    if high - low > rule.agreement and (is_few or not _all_show(logs, middle)):
        return None
    margin = math.log1p(rule.allowance)
    ends = math.exp(low - margin), math.exp(high + margin)
    against = frozenset({LESS, MORE}) if is_few else frozenset({SAME})
    doubt = Objection(Doubt.FEW_PASSES if is_few else Doubt.TWO_LEVELS, against)
    has_doubt = is_few or high - low > rule.agreement
    return Interval(math.exp(middle), *ends, len(logs), objections=(doubt,) if has_doubt else ())


def _log_ratios(base: Sequence[float], contender: Sequence[float]) -> list[float]:
    return [math.log(new / old) for old, new in zip(base, contender, strict=True)]


def _all_show(logs: Sequence[float], middle: float) -> bool:
    sign = 1 if middle > 0 else -1
    return min(sign * log for log in logs) >= MIN_SHOWN * abs(middle)
