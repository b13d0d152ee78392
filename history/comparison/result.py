"""What a comparison holds, and how its steps are judged."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from build.errors import TidemarkError
from build.version import Engine, Version
from history.comparison.explanation import (
    Explanation,
    Variation,
    beside_imported,
    explained_by,
    explanation,
    variation,
)
from history.comparison.intervals import Intervals
from history.comparison.pairs import Failure, StepPairs
from history.comparison.verdict import Gap, Judgement, Ratio, Verdict, judge_step, ratio
from history.stats.estimators import geometric_mean
from history.stats.repeated_intervals import FAMILY_CONFIDENCE, Noise
from history.store.records import CalibratedNoise, DroppedRound, Session, SessionStatus
from suites.metrics import METRICS, PRIMARY, Metric, beside_verdict

if TYPE_CHECKING:
    from history.comparison.profile_diff import FunctionChange

THRESHOLD = 2.0
"""Percent: changes of this size or less are not worth a person's time."""

CONFIDENCE = 100 * FAMILY_CONFIDENCE
"""Percent, for all steps of a contender together, and all looks."""


class ComparisonError(TidemarkError):
    """The history does not hold what is to be compared."""


@dataclass(frozen=True)
class CompareOptions:
    """Which session and steps to compare, and how to judge them. None and () leave the choice open."""

    suite: str | None = None
    profile: str | None = None
    machine: str | None = None
    """The host name of a box."""

    session: str | None = None
    """The uid of a session; else the latest that holds both versions."""

    steps: tuple[str, ...] = ()
    metric: str = PRIMARY
    threshold_percent: float = THRESHOLD
    confidence_percent: float = CONFIDENCE
    since: datetime | None = None
    """Compare over all nights from this moment on, instead of in the latest session."""


@dataclass(frozen=True)
class StepComparison:
    """One step: the judged metric, what is said of it, and the metrics beside it."""

    step: str
    judged: Ratio
    judgement: Judgement
    beside: tuple[Ratio, ...]
    """Of suites.metrics.beside_verdict those that are not the judged one."""

    smallest_visible: float | None = None
    """The smallest worsening of the judged metric, as a fraction, that the step's rounds are likely to flag.

    By the latest calibration of the machine; None where there is none."""

    base_drift: float | None = None
    """QPS of the base in the last paired round over that in the first; None below two rounds."""

    gained: "tuple[FunctionChange, ...]" = ()
    """Of a regressed step that was profiled: the functions whose CPU time per query grew most."""

    group: str = ""
    """The group of steps that it belongs to, if its suite has such."""

    trend: tuple[float | None, ...] = ()
    """Contender over base of the judged metric in the last nights up to this one; None in a gap."""

    @property
    def metrics(self) -> tuple[Ratio, ...]:
        """The judged metric and those beside it."""
        return (self.judged, *self.beside)

    @property
    def explained_by(self) -> tuple[str, ...] | None:
        """The costs that explain the verdict; None where there is nothing to be explained, or no cost."""
        return explained_by(self.judged.metric, self.judgement.verdict, self.beside)

    @property
    def is_unexplained(self) -> bool:
        """Whether throughput changed, and neither a cost nor the profile explains it or may explain it."""
        return self.explanation is Explanation.NONE

    @property
    def explanation(self) -> Explanation | None:
        """Whether the verdict is explained; None where there is nothing to be explained, or no cost."""
        return explanation(self.explained_by, self.beside, self.gained)

    @property
    def variation(self) -> Variation:
        """How the throughput's variation within the step changed."""
        return variation(self.metrics)


@dataclass(frozen=True)
class NightGap:
    """Nights in which a branch has no value of a step, for one reason."""

    branch: str
    step: str
    """Empty when it is all of them."""

    reason: str
    nights: tuple[datetime, ...]


@dataclass(frozen=True)
class Nights:
    """What a comparison over nights rests on: all of one box, suite and configuration."""

    configuration: str
    started_at: tuple[datetime, ...]
    """Of each night that holds both, in order."""

    bases: Mapping[str, int]
    """Versions of the base, and in how many nights each was measured."""

    contenders: Mapping[str, int]
    gaps: tuple[NightGap, ...]


@dataclass(frozen=True)
class Mean:
    """The geometric mean of the ratios of several steps."""

    group: str
    """Empty when it is over all steps."""

    steps: int
    ratios: Mapping[str, float | None]
    """By metric; None where one of the steps has no such ratio."""


@dataclass(frozen=True)
class ContenderComparison:
    """A contender against the base, both of one session; or of the same nights."""

    base: Version
    contender: Version
    session: Session
    """Over nights the last one."""

    steps: tuple[StepComparison, ...]
    """In suite order, one for each step that either version has a run of."""

    failures: tuple[Failure, ...]
    warnings: tuple[str, ...]
    """What a person should know before believing the verdicts."""

    looks: tuple[int, int] | None = None
    """Rounds at the first and the last look at the verdicts; None when the number of rounds was fixed."""

    dropped: tuple[DroppedRound, ...] = ()
    """Rounds of these steps that were disturbed and measured again."""

    calibrations: tuple[CalibratedNoise, ...] = ()
    """What the smallest visible worsenings rest on: one for each of these steps that was calibrated."""

    nights: Nights | None = None
    """Of a comparison over nights; None within one session."""

    @property
    def engines(self) -> frozenset[Engine]:
        """Of base and contender."""
        return frozenset({self.base.engine, self.contender.engine})

    @cached_property
    def has_visible(self) -> bool:
        """Whether of any step the smallest worsening is known that it is likely to flag."""
        return any(step.smallest_visible is not None for step in self.steps)

    @cached_property
    def has_trends(self) -> bool:
        """Whether any step has a ratio in the last nights."""
        return any(step.trend for step in self.steps)

    @property
    def judged_steps(self) -> int:
        """Steps with an interval: those that share the confidence."""
        return sum(step.judgement.interval is not None for step in self.steps)

    @property
    def is_complete(self) -> bool:
        """Whether every planned round of every step finished in both versions and could be judged.

        Over nights: whether every step could be judged. That a night has a gap is no trouble of the others.
        """
        judged = all(step.judgement.gap in (None, Gap.NO_DIRECTION) for step in self.steps)
        if self.nights is not None:
            return bool(self.steps) and judged
        return (
            self.session.status is SessionStatus.FINISHED
            and bool(self.steps)
            and not self.failures
            and all(step.judgement.pairs >= self.session.repetitions for step in self.steps)
            and judged
        )

    def geometric_means(self) -> tuple[int, dict[str, float | None]]:
        """How many steps have a judged ratio, and over these the mean ratio by metric, the judged one first.

        None where one of those steps has no such ratio, and everywhere when there are no such steps.
        """
        mean = self._mean("", self.steps)
        return mean.steps, dict(mean.ratios)

    def group_means(self) -> tuple[Mean, ...]:
        """The mean of each group that has at least two steps with a judged ratio, in suite order."""
        groups = dict.fromkeys(step.group for step in self.steps if step.group)
        means = [self._mean(each, [step for step in self.steps if step.group == each]) for each in groups]
        return tuple(mean for mean in means if mean.steps > 1)

    def _mean(self, group: str, steps: Sequence[StepComparison]) -> Mean:
        counted = [step.metrics for step in steps if step.judged.value is not None]
        names = [each.metric for each in self.steps[0].metrics]
        ratios = {
            name: _mean_ratio([metrics[place] for metrics in counted]) for place, name in enumerate(names)
        }
        return Mean(group, len(counted), ratios)


@dataclass(frozen=True)
class Comparison:
    """A base against each of its contenders."""

    base: Version
    """As it was asked for: a version, or the branch that each contender's base is the latest version of."""

    contenders: tuple[ContenderComparison, ...]
    options: CompareOptions
    history: str
    """Where the history lies."""

    @property
    def metric(self) -> Metric:
        """The judged metric."""
        return METRICS[self.options.metric]

    def verdicts(self) -> tuple[Verdict | None, ...]:
        """Of all steps of all contenders."""
        return tuple(step.judgement.verdict for each in self.contenders for step in each.steps)


def judge_all(
    chosen: Sequence[StepPairs],
    options: CompareOptions,
    intervals: Intervals,
    known: Mapping[str, Noise],
    session: Session,
    engines: Collection[Engine],
) -> tuple[StepComparison, ...]:
    """Judge the chosen steps of a session, whose groups they belong to.

    `known` is the machine's noise; `engines` are those of base and contender.
    """
    metric = METRICS[options.metric]
    threshold = options.threshold_percent / 100
    recorded = {name for step in chosen for pair in step.pairs for name in (*pair.base, *pair.contender)}
    shown = beside_imported(recorded, engines) if session.is_imported else beside_verdict(engines)
    beside = [name for name in shown if name != metric.name]
    groups = groups_of(session)
    return tuple(
        StepComparison(
            step.step,
            ratio(step, metric.name, threshold, intervals),
            judge_step(step, metric, threshold, intervals),
            tuple(ratio(step, name, threshold, intervals) for name in beside),
            intervals.smallest_visible(step, metric, threshold, known.get(step.step)),
            _base_drift(step),
            group=groups.get(step.step, ""),
        )
        for step in chosen
    )


def groups_of(session: Session) -> Mapping[str, str]:
    """Step -> the group that it belonged to when the session began; sessions of older Tidemarks have none."""
    groups = session.options.get("groups")
    return groups if isinstance(groups, dict) else {}


def choose_steps(paired: Sequence[StepPairs], steps: Sequence[str], where: str) -> Sequence[StepPairs]:
    """The steps that were asked for, else all. Raises ComparisonError for one that `where` does not have."""
    known = [each.step for each in paired]
    unknown = [step for step in steps if step not in known]
    if unknown:
        raise ComparisonError(
            f"{where} has no step {', '.join(unknown)}", hint=f"its steps: {', '.join(known)}"
        )
    return [each for each in paired if not steps or each.step in steps]


def _base_drift(step: StepPairs) -> float | None:
    rates, _ = step.values(PRIMARY)
    return rates[-1] / rates[0] if len(rates) > 1 and rates[0] > 0 else None


def _mean_ratio(ratios: Sequence[Ratio]) -> float | None:
    values = [each.value for each in ratios if each.value is not None]
    return geometric_mean(values) if len(values) == len(ratios) else None
