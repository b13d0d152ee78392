"""The verdict on a step, from the rounds or nights of base and contender."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto

from history.comparison.exact import ExactRule, exact_interval, pairs_apart
from history.comparison.intervals import Intervals
from history.comparison.pairs import StepPairs
from history.counts import counted
from history.stats.contrary_evidence import LESS, MORE, SAME, Doubt
from history.stats.estimators import MINIMUM_REPETITIONS, Interval, geometric_mean, mean
from history.stats.layouts import MIN_LAYOUTS
from history.stats.selection import size_after_selection
from suites.metrics import METRICS, OVERLOADED, Better, Metric


class Verdict(StrEnum):
    """The result for one step, at a threshold and a confidence."""

    REGRESSION = "regression"
    """The whole interval is on the bad side of 1 and the estimate is beyond the threshold."""

    IMPROVEMENT = "improvement"
    """The mirror of a regression."""

    UNCHANGED = "unchanged"
    """The whole interval is within the threshold around 1: not merely no difference found."""

    INCONCLUSIVE = "inconclusive"
    """The interval allows more than one of the above, or the rounds contradict it: more are needed."""


class Tone(Enum):
    """How good the news in a cell of a table is."""

    PLAIN = auto()
    GOOD = auto()
    BAD = auto()
    QUIET = auto()
    OPEN = auto()
    """Nothing could be decided."""


@dataclass(frozen=True)
class VerdictTraits:
    """How a verdict is displayed, and what follows from it."""

    plural: str
    """The word for several steps with it; the word for one is the verdict's value."""

    tone: Tone
    exit_code: int
    """Exit code of `compare` when a step has this verdict; of several, 1 wins over 2 and 2 over 0."""

    is_open: bool = False
    """Whether further rounds may replace it by another verdict."""


TRAITS: Mapping[Verdict, VerdictTraits] = {
    Verdict.REGRESSION: VerdictTraits("regressions", Tone.BAD, exit_code=1),
    Verdict.IMPROVEMENT: VerdictTraits("improvements", Tone.GOOD, exit_code=0),
    Verdict.UNCHANGED: VerdictTraits("unchanged", Tone.QUIET, exit_code=0),
    Verdict.INCONCLUSIVE: VerdictTraits("inconclusive", Tone.OPEN, exit_code=2, is_open=True),
}
"""One entry for every verdict, in the order in which they are counted."""


TRADE = "trade"
"""The word for an improvement of a step that is worse in something else; its exit code is 1."""


class MetricChange(StrEnum):
    """How a metric moved from base to contender, at a threshold and a confidence, whether good or bad."""

    MORE = "more"
    """The whole interval is above 1 and the estimate is beyond the threshold."""

    LESS = "less"
    """The mirror of more."""

    SAME = "same"
    """The whole interval is within the threshold around 1, or every value of both versions is zero."""

    UNKNOWN = "unknown"
    """The interval allows more than one of the above, or there is none."""


_DIRECTIONS = {MetricChange.LESS: LESS, MetricChange.SAME: SAME, MetricChange.MORE: MORE}

REASONS = {
    Doubt.DRIFTING: "the ratios of all steps drift from {rounds} to {rounds}",
    Doubt.ONE_SIDED: "one version has slow {rounds}s that the other has not",
    Doubt.FEW_PASSES: "a count may have two levels, so a change needs {most} counted passes",
    Doubt.TWO_LEVELS: "the count has two levels or more",
}
"""Why a step is inconclusive although its interval is narrow enough for a verdict."""


class Gap(StrEnum):
    """Why a step has no verdict."""

    TOO_FEW = "too few"
    """Fewer paired rounds than an interval needs."""

    FAILED = "failed"
    """No pair at all, and at least one run failed or was interrupted."""

    MISSING = "missing"
    """No pair at all: a version has no run of the step, or the metric was not recorded."""

    NO_RATIO = "no ratio"
    """A value is not above zero."""

    DISAGREE = "disagree"
    """The ratios of counted passes differ by more than counts do."""

    OVERLOADED = "overloaded"
    """A server did not keep up with the rate at which transactions arrived."""

    NO_DIRECTION = "not judged"
    """The metric has no better direction."""


@dataclass(frozen=True)
class Judged:
    """One metric of one step in base and contender, over the same pairs: its ratio, and the verdict on it."""

    metric: str
    base: float | None
    contender: float | None
    """The means of both in the metric's unit; None when it was not recorded. They are geometric means, whose
    quotient is the ratio, or arithmetic means without a ratio, when a value is not above zero."""

    value: float | None
    """The ratio contender / base; None when there is none."""

    interval: Interval | None
    change: MetricChange
    pairs: int
    """The number of pairs that have the metric."""

    threshold: float
    """The fraction beyond which it has changed: that by which it was judged."""

    observed: str
    """What a pair is: `round`, `pass` or `night`."""

    verdict: Verdict | None = None
    gap: Gap | None = None
    """Why there is no verdict; None with one."""

    reason: str = ""
    """What is missing in case of a gap, and how much more is needed; or what the rounds hold against the
    interval."""

    doubts: tuple[Doubt, ...] = ()
    """Why the verdict that the interval alone would give is not given."""

    @property
    def row(self) -> Metric:
        """The metric's row in the registry."""
        return METRICS[self.metric]

    @property
    def unit(self) -> str:
        """The metric's unit."""
        return self.row.unit

    @property
    def better(self) -> Better:
        """The direction in which the metric improves."""
        return self.row.better

    @property
    def may_be_worse(self) -> bool:
        """Whether its interval allows that it is worse by more than its threshold."""
        if self.better is Better.NEITHER:
            return False
        if self.interval is None:
            return self.change is not MetricChange.SAME
        ends = self.interval.low, self.interval.high
        return min(self.better.gain(end - 1) for end in ends) < -self.threshold

    @property
    def is_open(self) -> bool:
        """Whether there is no verdict, or one that further pairs may replace."""
        return self.verdict is None or TRAITS[self.verdict].is_open


def judge_step(step: StepPairs, metric: Metric, threshold: float, intervals: Intervals) -> Judged:
    """Return the verdict on one step; `threshold` is a fraction. An overloaded step has none."""
    judged = judge_beside(step, metric.name, threshold, intervals)
    overloaded = sum(map(any, zip(*step.values(OVERLOADED), strict=True)))
    if not overloaded:
        return judged
    rounds = f"{intervals.round_name}s"
    reason = f"a version did not keep up with the rate in {overloaded} of {len(step.pairs)} {rounds}"
    return without_verdict(judged, Gap.OVERLOADED, reason)


def without_verdict(judged: Judged, gap: Gap, reason: str) -> Judged:
    """Return a judged metric whose values say nothing of the versions; its interval is left out."""
    return replace(judged, verdict=None, gap=gap, reason=reason, interval=None, doubts=())


def judge_beside(step: StepPairs, metric: str, threshold: float, intervals: Intervals) -> Judged:
    """Return a metric's means over the step's pairs, with their ratio, its interval and the verdict on it.

    `threshold` is a fraction, and no difference counts that is negligible for the metric. Whether a server
    kept up with its rate does not count.
    """
    base, contender = step.values(metric)
    pairs, observed = len(base), intervals.observed(metric)
    old, new = geometric_mean(base), geometric_mean(contender)
    negligible = METRICS[metric].negligible
    if old is not None:
        threshold = METRICS[metric].threshold_at(old, threshold)
    interval = intervals.of(step, metric)
    doubts = () if interval is None else doubts_of(interval, threshold)
    change = MetricChange.UNKNOWN if interval is None else change_of(interval, threshold)
    shown = interval and as_reported(interval, change, threshold)
    if shown is not None and doubts:
        shown = with_objection(shown, base, contender)
    value = None
    if old is not None and new is not None:
        # The interval ignores stalled rounds, so that its estimate can differ from the quotient of the means.
        value = new / old if shown is None else shown.estimate
    elif pairs:
        old, new = mean(base), mean(contender)
        if (
            pairs >= min(MINIMUM_REPETITIONS, intervals.needed_for(metric))
            and max(*base, *contender) <= negligible
        ):
            change = MetricChange.SAME
    found = Judged(metric, old, new, value, shown, change, pairs, threshold, observed)
    if interval is None:
        gap, reason = _why_no_interval(step, metric, pairs, intervals)
        return replace(found, gap=gap, reason=reason)
    if found.better is Better.NEITHER:
        return replace(found, gap=Gap.NO_DIRECTION, reason=f"{metric} has no better direction")
    rule = intervals.rule_of(metric)
    most = 0 if rule is None else rule.most
    reason = "; ".join(REASONS[doubt].format(rounds=observed, most=most) for doubt in doubts)
    return replace(found, verdict=verdict_of(change, found.better), reason=reason, doubts=doubts)


def change_of(interval: Interval, threshold: float) -> MetricChange:
    """Return how a metric moved according to an interval; `threshold` is a fraction.

    A change that the rounds hold something against is unknown.
    """
    return MetricChange.UNKNOWN if doubts_of(interval, threshold) else _by_ends(interval, threshold)


def doubts_of(interval: Interval, threshold: float) -> tuple[Doubt, ...]:
    """Return why the change that an interval shows is not called; nothing if it is, or if it shows none."""
    shown = _DIRECTIONS.get(_by_ends(interval, threshold))
    return tuple(objection.doubt for objection in interval.objections if shown in objection.against)


def needs_more_passes(
    base: Sequence[float], contender: Sequence[float], rule: ExactRule, threshold: float
) -> bool:
    """Return whether pairs of counted passes disagree, or are too few for the change that they show.

    Below the least number of pairs nothing is known, and at the most no more are counted. `threshold` is a
    fraction, `base[i]` and `contender[i]` are a pair.
    """
    if not rule.least <= len(base) < rule.most:
        return False
    interval = exact_interval(base, contender, rule)
    return interval is None or bool(doubts_of(interval, threshold))


def as_reported(interval: Interval, change: MetricChange, threshold: float) -> Interval:
    """Return the interval with the estimate that is shown, corrected if a change is called because of it.

    It stays within the interval, which holds for every session, whether it calls a change or not.
    """
    if change not in (MetricChange.MORE, MetricChange.LESS) or not interval.error:
        return interval
    sign = 1 if change is MetricChange.MORE else -1
    least = max(interval.last_margin, sign * math.log1p(sign * threshold))
    size = size_after_selection(sign * math.log(interval.estimate), interval.error, least)
    return replace(interval, estimate=min(max(math.exp(sign * size), interval.low), interval.high))


def with_objection(interval: Interval, base: Sequence[float], contender: Sequence[float]) -> Interval:
    """Return the interval beside a verdict that is withheld; `base[i]` and `contender[i]` are a pair.

    What the rounds hold against a change may be all there is to it: no change and the ratio of every round
    are possible, and an interval without them would contradict the objection.
    """
    ratios = [new / old for old, new in zip(base, contender, strict=True) if old > 0]
    return replace(interval, low=min(interval.low, 1.0, *ratios), high=max(interval.high, 1.0, *ratios))


def _by_ends(interval: Interval, threshold: float) -> MetricChange:
    if 1 - threshold <= interval.low and interval.high <= 1 + threshold:
        return MetricChange.SAME
    if interval.high < 1 and interval.estimate < 1 - threshold:
        return MetricChange.LESS
    if interval.low > 1 and interval.estimate > 1 + threshold:
        return MetricChange.MORE
    return MetricChange.UNKNOWN


def judge(interval: Interval, better: Better, threshold: float) -> Verdict:
    """Return the verdict on a metric with a better direction. Raises ValueError for NEITHER."""
    return verdict_of(change_of(interval, threshold), better)


def verdict_of(change: MetricChange, better: Better) -> Verdict:
    """Return the verdict on a change of a metric with a better direction. Raises ValueError for NEITHER."""
    if better is Better.NEITHER:
        raise ValueError("a metric without a better direction has no verdict")
    if change is MetricChange.SAME:
        return Verdict.UNCHANGED
    if change is MetricChange.UNKNOWN:
        return Verdict.INCONCLUSIVE
    good = MetricChange.MORE if better.gain(1) > 0 else MetricChange.LESS
    return Verdict.IMPROVEMENT if change is good else Verdict.REGRESSION


def _why_no_interval(step: StepPairs, metric: str, pairs: int, intervals: Intervals) -> tuple[Gap, str]:
    needed, what = intervals.needed_for(metric), intervals.counted
    if (rule := intervals.rule_of(metric)) is not None:
        what = "counted pass"
        base, contender = step.values(metric)
        if pairs >= needed and min(*base, *contender) > 0:
            apart = math.expm1(pairs_apart(base, contender))
            said = f"the ratios of {pairs} counted passes are {100 * apart:.1f} % apart"
            most = f"{100 * rule.agreement:g} %"
            if pairs >= rule.most:
                return Gap.DISAGREE, f"{said}, more than {most}: the count has two levels or more"
            return Gap.DISAGREE, f"{said}, more than {most}: count {rule.most}"
    if intervals.layouts and (met := intervals.layouts_met(step, metric)) < MIN_LAYOUTS:
        return Gap.TOO_FEW, f"rounds of {met} layouts: a verdict needs {MIN_LAYOUTS}"
    if pairs >= needed:
        return Gap.NO_RATIO, f"{metric} is not above zero in every {what.split()[-1]}"
    if pairs:
        return Gap.TOO_FEW, f"{counted(pairs, what)}: a verdict needs {needed}, run {needed - pairs} more"
    if METRICS[metric].at_equal_work and step.has_unequal_work:
        return Gap.MISSING, "recorded at unequal work, as older versions of Tidemark did: measure again"
    if step.pairs:
        return Gap.MISSING, f"{metric} was not recorded"
    if step.failures:
        return Gap.FAILED, f"no {intervals.round_name} finished in both versions"
    return Gap.MISSING, f"no {intervals.round_name} was run with both versions"
