"""Comparison of a base with contenders, step by step, within one session each or over common nights."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from build.version import Engine, Version
from history.comparison.beside.build_differences import build_differences
from history.comparison.beside.clients import waiting_clients
from history.comparison.beside.remedies import no_session
from history.comparison.beside.shipped_settings import other_settings
from history.comparison.beside.work_done import same_rows
from history.comparison.exact import is_exact
from history.comparison.explanation import imported_stand_ins
from history.comparison.finding import Finding
from history.comparison.findings.sources import with_findings
from history.comparison.intervals import Intervals, looks_of
from history.comparison.judging import choose_steps, judge_all
from history.comparison.kinds import KindComparison, compare_kinds
from history.comparison.nights.recent_nights import trends
from history.comparison.options import CompareOptions, Instructions
from history.comparison.pairs import WORK_METRICS, Failure, StepPairs, pair_steps
from history.comparison.result import Comparison, ContenderComparison, StepComparison
from history.comparison.rounds.background import background_shares, bursts_left_out
from history.comparison.rounds.disk_bound import bound_by_disk
from history.comparison.rounds.onset import onsets
from history.comparison.rounds.stalls import stalls
from history.comparison.rounds.steadiness import steadiness
from history.comparison.verdict import TRAITS, Verdict
from history.comparison.warnings import comparison_warnings, warnings_of_lookup
from history.errors import ComparisonError
from history.series.series import commit_in, with_commit
from history.stats.noise_model import Noise
from history.store.reader import Reader
from history.store.records import Run, Session
from history.store.session_lookup import Name, SessionFilter, resolve_name
from suites.metrics import (
    BUFFER_POOL,
    EVENTS,
    IN_ROUNDS,
    MEMORY_GROWTH,
    METRICS,
    OVER_LIMIT,
    OVERLOADED,
    PRIMARY,
    PROVED_ROWS,
    STALLED_SECONDS,
    STATEMENT_SECONDS,
    Role,
    beside_verdict,
)

NAMED_FUNCTIONS = 3
"""The functions that are named for a regressed step; `./tidemark profile diff` shows all."""


def compare(
    history: Reader,
    base: Version,
    contenders: Sequence[Version],
    options: CompareOptions | None = None,
    branches: Sequence[Version] = (),
) -> Comparison:
    """Compare each contender with the base, in the latest session that has both.

    A name that was never measured as a version, but is the branch of a night, stands for the version of that
    branch in the session; names in `branches` always do. Over nights a contender may have several tables,
    one for each box, suite and configuration.

    Raises ComparisonError for an unknown metric, when there is no such session, or when it lacks a requested
    step.
    """
    options = options or CompareOptions()
    if options.metric not in METRICS:
        raise ComparisonError(f"unknown metric '{options.metric}'", hint=f"metrics: {', '.join(METRICS)}")
    if base in (*contenders, *branches):
        raise ComparisonError(f"{base} cannot be its own contender")
    with history.database.reading() as connection:
        base_name = resolve_name(connection, base)
        names = [resolve_name(connection, version) for version in dict.fromkeys(contenders)]
    names += [Name(version, is_branch=True) for version in dict.fromkeys(branches)]
    compare_name = _compare_in_session if options.since is None else _compare_nights
    comparisons = tuple(
        comparison for name in names for comparison in compare_name(history, base_name, options, name)
    )
    return Comparison(base, comparisons, as_judged(options, comparisons), history.where)


def as_judged(options: CompareOptions, comparisons: Sequence[ContenderComparison]) -> CompareOptions:
    """Return the options with the metric that was judged, which a session without QPS chooses."""
    judged = {step.judged.metric for contender in comparisons for step in contender.steps}
    return replace(options, metric=judged.pop()) if len(judged) == 1 else options


def exit_code(comparison: Comparison) -> int:
    """Return 1 for any regression, else 2 if anything is missing, failed or unknown, else 0.

    A regression is a verdict, a finding that is worse, and more instructions where the options say so. A
    metric is unknown if its interval allows that it is worse by more than its threshold.
    """
    verdicts = comparison.verdicts()
    codes = {TRAITS[verdict].exit_code for verdict in verdicts if verdict is not None}
    steps = list(_steps(comparison))
    if any(is_regression(step, comparison.options.instructions) for step in steps):
        return 1
    complete = all(contender.is_complete for contender in comparison.contenders)
    return 0 if complete and codes <= {0} and not any(step.unknown for step in steps) else 2


def is_regression(step: StepComparison, instructions: Instructions = Instructions.UNDECIDED) -> bool:
    """Return whether a step makes the exit code 1: by its verdict, a finding, or more instructions."""
    if step.is_worse:
        return True
    if not step.has_more_instructions or instructions is Instructions.NEVER:
        return False
    return instructions is Instructions.ALWAYS or step.is_open


def _steps(comparison: Comparison) -> Iterator[StepComparison]:
    yield from (step for contender in comparison.contenders for step in contender.steps)


def _compare_in_session(
    history: Reader, base_name: Name, options: CompareOptions, name: Name
) -> tuple[ContenderComparison, ...]:
    asked = options.suite, options.profile, options.session, options.machine
    limits = SessionFilter(*asked, steps=options.steps)
    match = history.latest_of((base_name, name), limits)
    if match is None:
        raise no_session(history, base_name, name, limits)
    session, (base, contender) = match
    if options.metric == PRIMARY:
        options = replace(options, metric=session.judged_by)
    runs = history.runs(session.id, (base, contender), _metrics(options, session))
    if not runs:
        raise _pruned(history, session, base, contender)
    bursts = history.bursts(session)
    found = pair_steps(runs, str(base), str(contender), bursts)
    paired = [replace(step, clients=waiting_clients(session, step.step)) for step in found]
    chosen = choose_steps(paired, options.steps, f"session {session.uid}")
    names = {step.step for step in chosen}
    measured = [run for run in runs if run.step in names]
    known = history.noise(session, options.metric).items()
    calibrated = {step: by_step for step, by_step in known if step in names}
    noise = {step: by_step.noise for step, by_step in calibrated.items()}
    engines = {base.engine, contender.engine}
    intervals = _intervals(history, session, paired, chosen, options, engines)
    judged = judge_all(chosen, options, intervals, noise, session, engines)
    with history.database.reading() as connection:
        nights = trends(connection, session, str(base), str(contender), options.metric)
    sampled = _with_samples(history, session, judged, base, contender)
    steps = tuple(
        replace(_with_instructions(history, session, step, base, contender), trend=nights.get(step.step, ()))
        for step in sampled
    )
    return (
        with_findings(
            ContenderComparison(
                base,
                contender,
                session,
                steps,
                failures=_failures(history, session, chosen),
                warnings=(
                    *warnings_of_lookup(session, history.passed_over((base_name, name), limits, session)),
                    *comparison_warnings(session, base, contender, measured),
                    *(text for step in steps for text in _step_warnings(step, session)),
                ),
                looks=intervals.looks,
                dropped=tuple(dropped for dropped in history.dropped(session.id) if dropped.step in names),
                calibrations=tuple(calibrated.values()),
                kinds=_kinds(history, session, measured, (base, contender), options, bursts),
                same_rows=same_rows(measured, (base, contender)),
                builds=_builds(history, session, measured, (base, contender)),
                other_settings=other_settings(
                    session, (base, contender), steps, history.settings(session.id, (base, contender))
                ),
                within_rounds=_within(
                    history, session, measured, chosen, (str(base), str(contender)), intervals
                ),
                paired=tuple(chosen),
            ),
            intervals,
        ),
    )


def _with_samples(
    history: Reader, session: Session, steps: Sequence[StepComparison], base: Version, contender: Version
) -> list[StepComparison]:
    """Return the steps: those that regressed with the functions that gained most, and those whose throughput
    changed with what clients did."""
    profiled, sampled, _ = history.profiled_steps(session.id)
    named = (
        _with_functions(history, session, step, base, contender) if step.step in profiled else step
        for step in steps
    )
    return [
        _with_client_time(history, session, step, base, contender) if step.step in sampled else step
        for step in named
    ]


def _with_client_time(
    history: Reader, session: Session, step: StepComparison, base: Version, contender: Version
) -> StepComparison:
    """Return a step whose throughput changed with what clients did, if that was sampled of both versions."""
    is_rate = step.judged.row.role is Role.THROUGHPUT
    if not is_rate or step.judged.verdict not in (Verdict.REGRESSION, Verdict.IMPROVEMENT):
        return step
    from history.comparison.profile_diff import client_time  # loaded only when a step changed

    rounds = [history.wait_profiles(session.id, step.step, version) for version in (base, contender)]
    return replace(step, client_time=client_time(*rounds)) if all(rounds) else step


def _builds(
    history: Reader,
    session: Session,
    runs: Sequence[Run],
    versions: tuple[Version, Version],
) -> tuple[str, ...]:
    """Return the commits of two builds, and what differs in how they were compiled if one is an install."""
    commits = [text for version in versions for text in _commits(runs, str(version))]
    if versions[0].engine is not versions[1].engine or not any(version.is_install for version in versions):
        return tuple(commits)
    manifests = history.manifests(session.id, versions)
    differences = build_differences(*(manifests.get(str(version), {}) for version in versions))
    return (*commits, *differences)


def _commits(runs: Sequence[Run], version: str) -> list[str]:
    """Return a version with each commit that it was, of a build from git or as an imported file names it."""
    commits = sorted({commit_in(run.source_digest) for run in runs if run.version == version})
    return [text for commit in commits if (text := with_commit(version, commit)) != version]


def _within(
    history: Reader,
    session: Session,
    runs: Sequence[Run],
    chosen: Sequence[StepPairs],
    versions: tuple[str, str],
    intervals: Intervals,
) -> tuple[Finding, ...]:
    """Return what is found within the rounds of the steps of these runs; their seconds are read where
    needed."""
    finished = {(run.step, run.version, run.repetition): run.id for run in runs if run.values}

    def seconds(name: str) -> list[tuple[Sequence[float], Sequence[float]]]:
        found = history.samples(session.id, name)
        base, contender = (
            {
                number: found[run]
                for (step, of, number), run in finished.items()
                if step == name and of == version and run in found
            }
            for version in versions
        )
        return [(base[number], contender[number]) for number in sorted(base.keys() & contender.keys())]

    steps = {run.step for run in runs}
    changes = (onset.finding for onset in onsets(intervals, steps, seconds))
    has_stalls = any(run.values.get(STALLED_SECONDS) for run in runs)
    is_long = session.is_long
    disk = session.declared.disk
    found = history.activities(session.id) if has_stalls or is_long or disk else {}
    stalled = stalls(found, finished, versions) if has_stalls else ()
    left_out = list(bursts_left_out(chosen, session.judged_by)) if is_long else []
    uneven = [finding.step for finding in left_out]
    shares = background_shares(found, finished, versions, seconds, uneven) if is_long else ()
    bound = bound_by_disk(found, finished, versions, seconds, disk) if disk else ()
    return (*changes, *steadiness(intervals, steps, seconds), *stalled, *left_out, *shares, *bound)


def _metrics(options: CompareOptions, session: Session) -> Set[str]:
    """Return the metrics that a comparison within a session reads."""
    beside = {*beside_verdict(primary=session.primary), *imported_stand_ins().values(), PROVED_ROWS}
    events = {*EVENTS, *(METRICS[name].counted_in for name in EVENTS)}
    judged = {*events, *IN_ROUNDS, MEMORY_GROWTH, BUFFER_POOL}
    return {options.metric, PRIMARY, OVERLOADED, *WORK_METRICS, *judged, *beside}


def _failures(history: Reader, session: Session, steps: Sequence[StepPairs]) -> tuple[Failure, ...]:
    """Return the failures of steps, with the versions of the session that were over the limit of a query."""
    failures = tuple(failure for step in steps for failure in step.failures)
    over: defaultdict[str, dict[str, float]] = defaultdict(dict)
    took: dict[tuple[str, str], float] = {}
    for run in history.runs(session.id, (), {OVER_LIMIT, STATEMENT_SECONDS}) if failures else ():
        if OVER_LIMIT in run.values:
            over[run.step][run.version] = run.values[OVER_LIMIT]
        elif STATEMENT_SECONDS in run.values:
            took[run.step, run.version] = run.values[STATEMENT_SECONDS]
    return tuple(
        replace(
            failure,
            over_limit=frozenset(over[failure.step]),
            limit_seconds=max(over[failure.step].values(), default=0.0),
            took_seconds=took.get((failure.step, failure.version)) if over[failure.step] else None,
        )
        for failure in failures
    )


def _kinds(
    history: Reader,
    session: Session,
    runs: Sequence[Run],
    versions: tuple[Version, Version],
    options: CompareOptions,
    bursts: Collection[int],
) -> tuple[KindComparison, ...]:
    values = history.kinds(session.id, versions)
    threshold, confidence = options.threshold_percent / 100, options.confidence_percent / 100
    names = (str(versions[0]), str(versions[1]))
    if not values:
        return ()
    return compare_kinds(runs, values, names, threshold, confidence, session.layouts, bursts)


def _compare_nights(
    history: Reader, base_name: Name, options: CompareOptions, name: Name
) -> tuple[ContenderComparison, ...]:
    from history.comparison.nights.over_nights import compare_nights  # loaded only when nights are compared

    return compare_nights(history, base_name, options, name)


def _with_functions(
    history: Reader, session: Session, step: StepComparison, base: Version, contender: Version
) -> StepComparison:
    """Return a regressed step with the functions that gained most, if both versions have profiles of it."""
    if step.judged.verdict is not Verdict.REGRESSION:
        return step
    from history.comparison.profile_diff import differential  # loaded only when a step regressed

    rounds = [history.profiles(session.id, step.step, version) for version in (base, contender)]
    return replace(step, gained=differential(*rounds).gained(NAMED_FUNCTIONS)) if all(rounds) else step


def _with_instructions(
    history: Reader, session: Session, step: StepComparison, base: Version, contender: Version
) -> StepComparison:
    """Return a step with more instructions with the functions that gained most, if both were profiled."""
    judged = is_exact(step.judged.metric) and step.judged.verdict is Verdict.REGRESSION
    if not (judged or step.has_more_instructions):
        return step
    from history.comparison.profile_diff import differential  # loaded only when a step regressed

    rounds = [history.counted_profiles(session.id, step.step, version) for version in (base, contender)]
    if not all(rounds):
        return step
    return replace(step, gained_instructions=differential(*rounds).gained(NAMED_FUNCTIONS))


def _intervals(
    history: Reader,
    session: Session,
    paired: Sequence[StepPairs],
    chosen: Sequence[StepPairs],
    options: CompareOptions,
    engines: Set[Engine],
) -> Intervals:
    """Return the intervals of a session, as they decided when it stopped.

    In a session that stopped by its verdicts, steps that were not chosen share the error too. Calibrations
    that began later are ignored, so that they change no verdict.
    """
    looks = looks_of(session)

    def calibrated(metric: str) -> Mapping[str, Noise]:
        noise_by_step = history.noise(session, metric, until=session.started_at)
        return {step: step_noise.noise for step, step_noise in noise_by_step.items()}

    steps = chosen if looks is None else paired
    return Intervals(
        steps,
        options.confidence_percent / 100,
        looks,
        calibrated,
        exact=engines,
        layouts=session.layouts,
        counted=f"paired {session.round_name}",
        in_turn=session.is_long,
    )


def _step_warnings(step: StepComparison, session: Session) -> list[str]:
    pairs, exact = step.judged.pairs, is_exact(step.judged.metric)
    planned = session.counted_passes if exact else session.repetitions
    what = "passes" if exact else f"{session.round_name}s"
    if step.judged.verdict and pairs < planned:
        return [f"{step.step}: judged from {pairs} of {planned} {what}"]
    return []


def _pruned(history: Reader, session: Session, base: Version, contender: Version) -> ComparisonError:
    return ComparisonError(
        f"the rounds of session {session.uid}, which had {base} and {contender}, were pruned",
        where=history.where,
        hint="compare nights with --since, or restore the rounds from an earlier backup: "
        "./tidemark history merge FILE",
    )
