"""The result of a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from build.version import Engine, Version
from history.comparison.exact import is_exact
from history.comparison.explanation import (
    Explanation,
    Variation,
    explained_by,
    explanation,
    variation,
)
from history.comparison.finding import Finding, has_left_more
from history.comparison.options import CompareOptions
from history.comparison.pairs import Failure, StepPairs
from history.comparison.query_time import QueryTime, query_time
from history.comparison.verdict import (
    Gap,
    Judged,
    MetricChange,
    Verdict,
    without_verdict,
)
from history.stats.estimators import geometric_mean
from history.store.records import (
    CalibratedNoise,
    DroppedRound,
    Session,
    SessionStatus,
)
from suites.metrics import INSTRUCTIONS, METRICS, PRIMARY, Metric, Role

if TYPE_CHECKING:
    from history.comparison.kinds import KindComparison
    from history.comparison.profile_diff import ClientTime, FunctionChange


@dataclass(frozen=True)
class StepComparison:
    """A step by the metric that was asked for, and by those beside it."""

    step: str
    judged: Judged
    beside: tuple[Judged, ...]
    """The metrics of suites.metrics.beside_verdict, without the judged one."""

    smallest_visible: float | None = None
    """The smallest worsening of the judged metric, as a fraction, that the step's rounds are likely to flag.

    It follows from the latest calibration of the machine; None without one."""

    base_drift: float | None = None
    """The base's median QPS in the last third of the paired rounds over that in the first; None below two."""

    gained: "tuple[FunctionChange, ...]" = ()
    """The functions of a regressed, profiled step whose CPU time per query grew most."""

    gained_instructions: "tuple[FunctionChange, ...]" = ()
    """The functions of a step with more instructions whose counted instructions grew most."""

    client_time: "ClientTime | None" = None
    """What clients did with the time of a query, of a step whose throughput changed and was sampled so."""

    group: str = ""
    """The group of steps that it belongs to; empty without one."""

    clients: int | None = None
    """The clients of each version, each of which waits for its answers; None if that is not known."""

    cores: int = 0
    """The cores of the machine; 0 if they are not known."""

    trend: tuple[float | None, ...] = ()
    """The ratio of the judged metric in the last nights up to this one; None in a gap."""

    findings: tuple[Finding, ...] = ()
    """What is certain beside the verdict (history/comparison/findings/)."""

    @property
    def is_worse(self) -> bool:
        """Whether it regressed by its verdict, or by a finding."""
        return self.judged.verdict is Verdict.REGRESSION or any(found.is_worse for found in self.findings)

    @property
    def is_trade(self) -> bool:
        """Whether it is faster, or its reset costs less and leaves more, and it is worse in something."""
        is_better = self.judged.verdict is Verdict.IMPROVEMENT or has_left_more(self.findings)
        return is_better and self.is_worse and self.judged.verdict is not Verdict.REGRESSION

    @property
    def unknown(self) -> tuple[Judged, ...]:
        """The judged metrics of which it is not known whether they are worse, that of the verdict first.

        A faster step may have paid with some of them. None of them are instructions, of which the options say
        what more mean, and what one reset of long mode leaves, as no further block has another.
        """
        known = {found.metric for found in self.findings}
        is_faster = self.judged.verdict is Verdict.IMPROVEMENT
        # Before there are enough rounds for a verdict, nothing beside it is known either.
        is_begun = self.judged.gap is not Gap.TOO_FEW
        beside = (
            judged
            for judged in (self.beside if is_begun else ())
            if judged.row.judged and judged.pairs and judged.metric not in known and judged.may_be_worse
            if judged.metric != INSTRUCTIONS
            if not (judged.row.role is Role.RESET and judged.gap is Gap.TOO_FEW)
        )
        open_verdict = [self.judged] if self.is_open and self.judged.gap is not Gap.NO_DIRECTION else []
        return (*open_verdict, *(judged for judged in beside if not (is_faster and judged.row.buys_speed)))

    @property
    def metrics(self) -> tuple[Judged, ...]:
        """The judged metric and those beside it."""
        return (self.judged, *self.beside)

    def by(self, metric: str) -> Judged | None:
        """Return the step as a metric judges it; None for one that was not recorded.

        A step that was overloaded is judged by none.
        """
        found = next((candidate for candidate in self.metrics if candidate.metric == metric), None)
        if found is None or found is self.judged or self.judged.gap is not Gap.OVERLOADED:
            return found if found is self.judged or (found is not None and found.pairs) else None
        return without_verdict(found, Gap.OVERLOADED, self.judged.reason)

    @property
    def exact(self) -> Judged | None:
        """The counted instructions beside the verdict; None when they were not counted or are judged."""
        return next((cost for cost in self.beside if cost.metric == INSTRUCTIONS and cost.pairs), None)

    @property
    def has_more_instructions(self) -> bool:
        """Whether the contender certainly executes more instructions per query, beside its verdict."""
        return self.exact is not None and self.exact.change is MetricChange.MORE

    @property
    def is_open(self) -> bool:
        """Whether it has no verdict, or one that further rounds may replace."""
        return self.judged.is_open

    @property
    def explained_by(self) -> tuple[str, ...] | None:
        """The costs that explain the verdict; None when nothing is to be explained, or without a cost."""
        return explained_by(self.judged.metric, self.judged.verdict, self.beside)

    @property
    def is_unexplained(self) -> bool:
        """Whether throughput changed, and neither costs nor the profile explain most of it, or may do so."""
        return self.explanation in (Explanation.NONE, Explanation.PARTLY)

    @property
    def query_time(self) -> QueryTime | None:
        """How much longer a query takes, and how far CPU time explains it; None where that is not known."""
        return query_time(self.metrics, self.clients, self.cores)

    @property
    def explanation(self) -> Explanation | None:
        """Whether the verdict is explained; None where there is nothing to be explained, or no cost."""
        names = frozenset() if self.client_time is None else self.client_time.waits
        waits = [event for event in self.moved_events if event.name in names]
        return explanation(self.explained_by, self.beside, self.gained, waits, self.query_time)

    @property
    def moved_events(self) -> "tuple[FunctionChange, ...]":
        """The wait events and stages that moved the way that the throughput did."""
        if self.client_time is None:
            return ()
        return self.client_time.moved(longer=self.judged.verdict is Verdict.REGRESSION)

    @property
    def variation(self) -> Variation:
        """How the throughput's variation within the step changed."""
        return variation(self.metrics)


@dataclass(frozen=True)
class NightGap:
    """Nights in which a branch has no value of a step, for one reason."""

    branch: str
    step: str
    """Empty for all steps."""

    reason: str
    nights: tuple[datetime, ...]


@dataclass(frozen=True)
class Nights:
    """The nights of a comparison over nights, all of one box, suite and configuration."""

    configuration: str
    started_at: tuple[datetime, ...]
    """The place of each night with both versions, in order: its start, or the date of a past commit."""

    bases: Mapping[str, int]
    """The number of nights by version of the base."""

    contenders: Mapping[str, int]
    """The number of nights by version of the contender."""

    gaps: tuple[NightGap, ...]
    past: int = 0
    """How many of the nights are past commits, measured later than their dates."""


@dataclass(frozen=True)
class Mean:
    """The geometric mean of the ratios of several steps."""

    group: str
    """Empty for the mean over all steps."""

    steps: int
    ratios: Mapping[str, float | None]
    """The mean ratio by metric; None when one of the steps has no such ratio."""


@dataclass(frozen=True)
class OtherSetting:
    """A setting with which a version was measured, and which its release ships with another value."""

    version: Version
    name: str
    value: str
    released: str


@dataclass(frozen=True)
class ContenderComparison:
    """The comparison of a contender with the base, within one session or over common nights."""

    base: Version
    contender: Version
    session: Session
    """The session; over nights that of the last night."""

    steps: tuple[StepComparison, ...]
    """The steps of which either version has a run, in suite order."""

    failures: tuple[Failure, ...]
    warnings: tuple[str, ...]
    """Reasons to treat the verdicts with caution."""

    looks: tuple[int, int] | None = None
    """The rounds of the first and the last look; None when the number of rounds was fixed."""

    dropped: tuple[DroppedRound, ...] = ()
    """The rounds of these steps that were disturbed and measured again."""

    calibrations: tuple[CalibratedNoise, ...] = ()
    """The noise on which the smallest visible worsenings are based, one for each calibrated step."""

    nights: Nights | None = None
    """The nights of a comparison over nights; None within one session."""

    kinds: "tuple[KindComparison, ...]" = ()
    """The kinds of transactions of the steps, where the suite tells kinds apart."""

    same_rows: Mapping[str, int] = field(default_factory=dict)
    """By step: the rows that both hold alike after the transactions of a counted pass and a crash."""
    builds: tuple[str, ...] = ()
    """The commits of both, and how they were compiled differently if one is an install."""

    other_settings: tuple[OtherSetting, ...] = ()
    """Settings of both that are not those of their releases and can matter in the steps."""

    within_rounds: tuple[Finding, ...] = ()
    """What was found in the seconds of rounds: changes that began within them, and variation."""

    paired: tuple[StepPairs, ...] = ()
    """The paired values of the steps; empty over nights."""

    @property
    def engines(self) -> frozenset[Engine]:
        """The engines of base and contender."""
        return frozenset({self.base.engine, self.contender.engine})

    @cached_property
    def has_visible(self) -> bool:
        """Whether the smallest visible worsening is known for any step."""
        return any(step.smallest_visible is not None for step in self.steps)

    @cached_property
    def unrecorded(self) -> frozenset[str]:
        """The metrics without a column, because no pair of any step has them."""
        beside = [ratio for step in self.steps for ratio in step.beside]
        recorded = {ratio.metric for ratio in beside if ratio.pairs}
        return frozenset({ratio.metric for ratio in beside} - recorded)

    @cached_property
    def unmoved(self) -> frozenset[str]:
        """The metrics beside the verdict that are the same in every step that has them, but instructions."""
        beside = [judged for step in self.steps for judged in step.beside if judged.pairs]
        moved = {judged.metric for judged in beside if judged.change is not MetricChange.SAME}
        return frozenset({judged.metric for judged in beside} - moved - {INSTRUCTIONS})

    @cached_property
    def has_trends(self) -> bool:
        """Whether any step has a trend."""
        return any(step.trend for step in self.steps)

    @cached_property
    def judged_metrics(self) -> tuple[str, ...]:
        """The metrics that judge its steps: the one asked for, then those beside it that are followed for
        changes over nights and were recorded."""
        beside = (
            followed
            for step in self.steps
            for followed in step.beside
            if followed.pairs and followed.row.judged
        )
        judged = (step.judged for step in self.steps)
        return tuple(dict.fromkeys(entry.metric for entry in (*judged, *beside)))

    @property
    def judged_steps(self) -> int:
        """The number of steps with an interval, which share the confidence."""
        return sum(step.judged.interval is not None for step in self.steps)

    @property
    def planned(self) -> int:
        """The rounds of each step that were to have the judged metric; 1 where nobody planned any."""
        if self.session.is_imported:
            return 1
        judged = self.steps[0].judged.metric if self.steps else PRIMARY
        return self.session.counted_passes if is_exact(judged) else self.session.repetitions

    @property
    def is_complete(self) -> bool:
        """Whether every planned round of every step finished in both versions and could be judged.

        Over nights it is whether every step could be judged; a gap in one night does not affect the others.
        """
        judged = all(step.judged.gap in (None, Gap.NO_DIRECTION) for step in self.steps)
        if self.nights is not None:
            return bool(self.steps) and judged
        return (
            self.session.status is SessionStatus.FINISHED
            and bool(self.steps)
            and not self.failures
            and all(step.judged.pairs >= self.planned for step in self.steps)
            and judged
        )

    def geometric_means(self) -> tuple[int, dict[str, float | None]]:
        """Return the number of steps with a judged ratio, and their mean ratio by metric, judged one first.

        A mean is None when one of these steps has no such ratio, or when there are no such steps.
        """
        mean = self._mean("", self.steps)
        return mean.steps, dict(mean.ratios)

    def group_means(self) -> tuple[Mean, ...]:
        """Return the means of the groups with at least two steps with a judged ratio, in suite order."""
        groups = dict.fromkeys(step.group for step in self.steps if step.group)
        means = [self._mean(group, [step for step in self.steps if step.group == group]) for group in groups]
        return tuple(mean for mean in means if mean.steps > 1)

    def _mean(self, group: str, steps: Sequence[StepComparison]) -> Mean:
        counted = [step.metrics for step in steps if step.judged.value is not None]
        names = [ratio.metric for ratio in self.steps[0].metrics]
        ratios = {
            name: _mean_ratio([metrics[position] for metrics in counted])
            for position, name in enumerate(names)
        }
        return Mean(group, len(counted), ratios)


@dataclass(frozen=True)
class Comparison:
    """A base against each of its contenders."""

    base: Version
    """The requested base: a version, or a branch, whose version may differ by contender."""

    contenders: tuple[ContenderComparison, ...]
    options: CompareOptions
    history: str
    """The path or URL of the history, without its password."""

    @property
    def metric(self) -> Metric:
        """The judged metric."""
        return METRICS[self.options.metric]

    @property
    def threshold_percent(self) -> float:
        """The threshold of the judged metric, in percent."""
        exact = self.metric.is_counted
        return self.options.exact_threshold_percent if exact else self.options.threshold_percent

    def verdicts(self) -> tuple[Verdict | None, ...]:
        """Return the verdicts of all steps of all contenders."""
        return tuple(step.judged.verdict for contender in self.contenders for step in contender.steps)


def groups_of(session: Session) -> Mapping[str, str]:
    """Return the groups by step as of the session; sessions of older releases of Tidemark have none."""
    groups = session.options.get("groups")
    return groups if isinstance(groups, dict) else {}


def _mean_ratio(ratios: Sequence[Judged]) -> float | None:
    values = [ratio.value for ratio in ratios if ratio.value is not None]
    return geometric_mean(values) if len(values) == len(ratios) else None
