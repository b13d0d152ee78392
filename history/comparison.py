"""A base and its contenders, step by step, from one session each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from build.errors import TidemarkError
from build.version import Version
from history.differential import FunctionChange, differential
from history.doubts import doubts
from history.explaining import BESIDE, Variation, explained_by, variation
from history.intervals import Intervals, looks_of
from history.judging import Gap, Judgement, Ratio, Verdict, judge_step, ratio
from history.pairing import Failure, StepPairs, pair_steps
from history.records import CalibratedNoise, DroppedRound, Session, SessionStatus
from history.sequential import FAMILY_CONFIDENCE, Noise
from history.statistics import geometric_mean
from history.store import Store
from suites.measurement import METRICS, Metric

THRESHOLD = 2.0
"""Percent: changes of this size or less are not worth a person's time."""

CONFIDENCE = 100 * FAMILY_CONFIDENCE
"""Percent, for all steps of a contender together, and all looks."""


NAMED_FUNCTIONS = 3
"""Of a regressed step; `./tidemark profile diff` shows all."""


class ComparisonError(TidemarkError):
    """The history does not hold what is to be compared."""


@dataclass(frozen=True)
class CompareOptions:
    """Which session and steps to compare, and how to judge them. None and () leave the choice open."""

    suite: str | None = None
    profile: str | None = None
    session: str | None = None
    """The uid of a session; else the latest that holds both versions."""

    steps: tuple[str, ...] = ()
    metric: str = "qps"
    threshold_percent: float = THRESHOLD
    confidence_percent: float = CONFIDENCE


@dataclass(frozen=True)
class StepComparison:
    """One step: the judged metric, what is said of it, and the metrics beside it."""

    step: str
    judged: Ratio
    judgement: Judgement
    beside: tuple[Ratio, ...]
    """Of history.explaining.BESIDE those that are not the judged one."""

    smallest_visible: float | None = None
    """The smallest worsening of the judged metric, as a fraction, that the step's rounds are likely to flag.

    By the latest calibration of the machine; None where there is none."""

    base_drift: float | None = None
    """QPS of the base in the last paired round over that in the first; None below two rounds."""

    gained: tuple[FunctionChange, ...] = ()
    """Of a regressed step that was profiled: the functions whose CPU time per query grew most."""

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
        """Whether throughput changed and no cost explains it."""
        return self.explained_by == ()

    @property
    def variation(self) -> Variation:
        """How the throughput's variation within the step changed."""
        return variation(self.metrics)


@dataclass(frozen=True)
class ContenderComparison:
    """A contender against the base, both of one session."""

    contender: Version
    session: Session
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

    @property
    def judged_steps(self) -> int:
        """Steps with an interval: those that share the confidence."""
        return sum(step.judgement.interval is not None for step in self.steps)

    @property
    def is_complete(self) -> bool:
        """Whether every planned round of every step finished in both versions and could be judged."""
        return (
            self.session.status is SessionStatus.FINISHED
            and bool(self.steps)
            and not self.failures
            and all(step.judgement.pairs >= self.session.repetitions for step in self.steps)
            and all(step.judgement.gap in (None, Gap.NO_DIRECTION) for step in self.steps)
        )

    def geometric_means(self) -> tuple[int, dict[str, float | None]]:
        """How many steps have a judged ratio, and over these the mean ratio by metric, the judged one first.

        None where one of those steps has no such ratio, and everywhere when there are no such steps.
        """
        counted = [step.metrics for step in self.steps if step.judged.value is not None]
        names = [each.metric for each in self.steps[0].metrics]
        return len(counted), {
            name: _mean_ratio([metrics[place] for metrics in counted]) for place, name in enumerate(names)
        }


@dataclass(frozen=True)
class Comparison:
    """A base against each of its contenders."""

    base: Version
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


def compare(
    store: Store, base: Version, contenders: Sequence[Version], options: CompareOptions | None = None
) -> Comparison:
    """Compare each contender with the base of the same session: the latest that holds both.

    Raises ComparisonError when there is no such session, or it does not have a step that was asked for.
    """
    options = options or CompareOptions()
    if options.metric not in METRICS:
        raise ComparisonError(f"unknown metric '{options.metric}'", hint=f"one of: {', '.join(METRICS)}")
    if base in contenders:
        raise ComparisonError(f"{base} cannot be its own contender")
    one = partial(_compare_one, store, base, options)
    return Comparison(base, tuple(map(one, dict.fromkeys(contenders))), options, store.where)


def exit_code(comparison: Comparison) -> int:
    """1 for any regression; else 2 when anything is missing, failed or inconclusive; else 0, as diff(1)."""
    verdicts = comparison.verdicts()
    if Verdict.REGRESSION in verdicts:
        return 1
    complete = all(contender.is_complete for contender in comparison.contenders)
    return 0 if complete and Verdict.INCONCLUSIVE not in verdicts else 2


def _compare_one(
    store: Store, base: Version, options: CompareOptions, contender: Version
) -> ContenderComparison:
    session = store.latest_session(
        (base, contender), suite=options.suite, profile=options.profile, uid=options.session
    )
    if session is None:
        raise _no_session(store, base, contender, options)
    runs = store.runs(session.id, (base, contender), {options.metric, "qps", *BESIDE})
    paired = pair_steps(runs, str(base), str(contender))
    chosen = _chosen(paired, options.steps, session)
    names = {step.step for step in chosen}
    known = {step: noise for step, noise in store.noise(session, options.metric).items() if step in names}
    intervals = _intervals(store, session, paired, chosen, options)
    noise = {step: each.noise for step, each in known.items()}
    judged = _judge_all(chosen, options, intervals, noise)
    steps = tuple(_with_functions(store, session, step, base, contender) for step in judged)
    return ContenderComparison(
        contender,
        session,
        steps,
        failures=tuple(failure for step in chosen for failure in step.failures),
        warnings=(
            *doubts(session, base, contender, [run for run in runs if run.step in names]),
            *(text for step in steps for text in _step_warnings(step, session)),
        ),
        looks=intervals.looks,
        dropped=tuple(each for each in store.dropped(session.id) if each.step in names),
        calibrations=tuple(known.values()),
    )


def _judge_all(
    chosen: Sequence[StepPairs],
    options: CompareOptions,
    intervals: Intervals,
    known: Mapping[str, Noise],
) -> tuple[StepComparison, ...]:
    metric = METRICS[options.metric]
    threshold = options.threshold_percent / 100
    beside = [name for name in BESIDE if name != metric.name]
    return tuple(
        StepComparison(
            step.step,
            ratio(step, metric.name, threshold, intervals),
            judge_step(step, metric, threshold, intervals),
            tuple(ratio(step, name, threshold, intervals) for name in beside),
            intervals.smallest_visible(step, metric, threshold, known.get(step.step)),
            _base_drift(step),
        )
        for step in chosen
    )


def _with_functions(
    store: Store, session: Session, step: StepComparison, base: Version, contender: Version
) -> StepComparison:
    """A regressed step with the functions that its profiles blame, if both versions have one."""
    if step.judgement.verdict is not Verdict.REGRESSION:
        return step
    rounds = [store.profiles(session.id, step.step, version) for version in (base, contender)]
    return replace(step, gained=differential(*rounds).gained(NAMED_FUNCTIONS)) if all(rounds) else step


def _intervals(
    store: Store,
    session: Session,
    paired: Sequence[StepPairs],
    chosen: Sequence[StepPairs],
    options: CompareOptions,
) -> Intervals:
    """Steps that were not chosen still share the error of a session that stopped by its verdicts.

    What decided then decides now: a calibration that came later changes no verdict.
    """
    looks = looks_of(session)

    def calibrated(metric: str) -> Mapping[str, Noise]:
        found = store.noise(session, metric, until=session.started_at)
        return {step: each.noise for step, each in found.items()}

    steps = chosen if looks is None else paired
    return Intervals(steps, options.confidence_percent / 100, looks, calibrated)


def _base_drift(step: StepPairs) -> float | None:
    rates, _ = step.values("qps")
    return rates[-1] / rates[0] if len(rates) > 1 and rates[0] > 0 else None


def _chosen(paired: Sequence[StepPairs], steps: Sequence[str], session: Session) -> Sequence[StepPairs]:
    known = [each.step for each in paired]
    unknown = [step for step in steps if step not in known]
    if unknown:
        raise ComparisonError(
            f"session {session.uid} has no step {', '.join(unknown)}", hint=f"its steps: {', '.join(known)}"
        )
    return [each for each in paired if not steps or each.step in steps]


def _step_warnings(step: StepComparison, session: Session) -> list[str]:
    pairs = step.judgement.pairs
    if step.judgement.verdict and pairs < session.repetitions:
        return [f"{step.step}: judged from {pairs} of {session.repetitions} rounds"]
    return []


def _mean_ratio(ratios: Sequence[Ratio]) -> float | None:
    values = [each.value for each in ratios if each.value is not None]
    return geometric_mean(values) if len(values) == len(ratios) else None


def _no_session(store: Store, base: Version, contender: Version, options: CompareOptions) -> ComparisonError:
    wanted = {"suite": options.suite, "profile": options.profile, "session": options.session}
    limits = "".join(f", {name} {value}" for name, value in wanted.items() if value)
    seen = store.sightings()
    lines = [
        f"\n    {each.version}  {each.suite} {each.profile}  {each.started_at:%Y-%m-%d %H:%M} UTC"
        f"  session {each.session_uid}"
        for each in seen
    ]
    suite = options.suite or (seen[0].suite if seen else "write-heavy")
    profile = options.profile or (seen[0].profile if seen else "short")
    return ComparisonError(
        f"no session holds both {base} and {contender}{limits}"
        f"\n  last runs in the history:{''.join(lines) or ' none'}",
        where=store.where,
        hint=f"./tidemark run --suite {suite} --profile {profile} {base} {contender}",
    )
