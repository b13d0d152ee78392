"""From the repetitions of one step to a verdict."""

from dataclasses import dataclass
from enum import StrEnum

from history.pairing import StepPairs
from history.statistics import MINIMUM_REPETITIONS, Interval, geometric_mean, ratio_interval
from suites.measurement import Better, Metric


class Verdict(StrEnum):
    """What the repetitions say about one step, at a threshold and a confidence."""

    REGRESSION = "regression"
    """The whole interval is on the bad side of 1 and the estimate is beyond the threshold."""

    IMPROVEMENT = "improvement"
    """The mirror of a regression."""

    UNCHANGED = "unchanged"
    """The whole interval is within the threshold around 1: not merely no difference found."""

    INCONCLUSIVE = "inconclusive"
    """The interval allows more than one of the above: more repetitions are needed."""


class Gap(StrEnum):
    """Why a step has no verdict."""

    TOO_FEW = "too few"
    """Fewer than MINIMUM_REPETITIONS paired repetitions."""

    FAILED = "failed"
    """No pair at all, and at least one run failed or was interrupted."""

    MISSING = "missing"
    """No pair at all: a version has no run of the step, or the metric was not recorded."""

    NO_RATIO = "no ratio"
    """A value is not above zero."""

    NO_DIRECTION = "not judged"
    """Neither direction of the metric is the good one."""


@dataclass(frozen=True)
class Ratio:
    """One metric of one step in base and contender: geometric means over the same paired repetitions."""

    metric: str
    base: float | None
    contender: float | None
    """In the metric's unit; None when it was not recorded or is not above zero in some repetition."""

    @property
    def value(self) -> float | None:
        """contender / base."""
        return None if self.base is None or self.contender is None else self.contender / self.base


@dataclass(frozen=True)
class Judgement:
    """A verdict, or why there is none."""

    verdict: Verdict | None
    gap: Gap | None
    reason: str
    """Of a gap: what is missing, and how much more is needed."""

    interval: Interval | None
    pairs: int
    """Paired repetitions that have the metric."""


def ratio(step: StepPairs, metric: str) -> Ratio:
    """The metric's geometric means over the step's pairs."""
    base, contender = map(geometric_mean, step.values(metric))
    return Ratio(metric, base, contender)


def has_interval(step: StepPairs, metric: str) -> bool:
    """Whether the step has enough usable pairs for an interval, whatever its confidence."""
    return ratio_interval(*step.values(metric), confidence=0.5) is not None


def judge_step(step: StepPairs, metric: Metric, threshold: float, confidence: float) -> Judgement:
    """The verdict on one step; `threshold` and `confidence` are fractions, the confidence this step's own."""
    base, contender = step.values(metric.name)
    pairs = len(base)
    interval = ratio_interval(base, contender, confidence)
    if interval is None:
        gap, reason = _why_no_interval(step, metric.name, pairs)
        return Judgement(None, gap, reason, None, pairs)
    if metric.better is Better.NEITHER:
        return Judgement(None, Gap.NO_DIRECTION, f"{metric.name} has no better direction", interval, pairs)
    return Judgement(judge(interval, metric.better, threshold), None, "", interval, pairs)


def judge(interval: Interval, better: Better, threshold: float) -> Verdict:
    """The verdict on the ratio of a metric that has a better direction. Raises ValueError for NEITHER."""
    if better is Better.NEITHER:
        raise ValueError("a metric without a better direction has no verdict")
    if 1 - threshold <= interval.low and interval.high <= 1 + threshold:
        return Verdict.UNCHANGED
    higher_is_better = better is Better.HIGHER
    if interval.high < 1 and interval.estimate < 1 - threshold:
        return Verdict.REGRESSION if higher_is_better else Verdict.IMPROVEMENT
    if interval.low > 1 and interval.estimate > 1 + threshold:
        return Verdict.IMPROVEMENT if higher_is_better else Verdict.REGRESSION
    return Verdict.INCONCLUSIVE


def _why_no_interval(step: StepPairs, metric: str, pairs: int) -> tuple[Gap, str]:
    if pairs >= MINIMUM_REPETITIONS:
        return Gap.NO_RATIO, f"{metric} is not above zero in every repetition"
    if pairs:
        more = MINIMUM_REPETITIONS - pairs
        counted = "1 paired repetition" if pairs == 1 else f"{pairs} paired repetitions"
        return Gap.TOO_FEW, f"{counted}: a verdict needs {MINIMUM_REPETITIONS}, run {more} more"
    if step.pairs:
        return Gap.MISSING, f"{metric} was not recorded"
    if step.failures:
        return Gap.FAILED, "no repetition finished in both versions"
    return Gap.MISSING, "no repetition was run with both versions"
