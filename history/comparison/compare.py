"""A base and its contenders, step by step, from one session each, or over the nights that hold both."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from build.version import Version
from history.comparison.intervals import Intervals, looks_of
from history.comparison.pairs import StepPairs, pair_steps
from history.comparison.recent_nights import trends
from history.comparison.result import (
    CONFIDENCE,
    THRESHOLD,
    CompareOptions,
    Comparison,
    ComparisonError,
    ContenderComparison,
    StepComparison,
    choose_steps,
    judge_all,
)
from history.comparison.verdict import Verdict
from history.comparison.warnings import comparison_warnings
from history.stats.repeated_intervals import Noise
from history.store.reader import Reader
from history.store.records import Session
from history.store.session_lookup import Name, SessionFilter, resolve_name
from suites.metrics import METRICS, PRIMARY, beside_verdict, imported_stand_ins

__all__ = [
    "CONFIDENCE",
    "THRESHOLD",
    "CompareOptions",
    "Comparison",
    "ComparisonError",
    "ContenderComparison",
    "StepComparison",
    "compare",
    "exit_code",
]

NAMED_FUNCTIONS = 3
"""Of a regressed step; `./tidemark profile diff` shows all."""


def compare(
    history: Reader,
    base: Version,
    contenders: Sequence[Version],
    options: CompareOptions | None = None,
    branches: Sequence[Version] = (),
) -> Comparison:
    """Compare each contender with the base of the same session: the latest that holds both.

    A name that was never measured as a version, but is a branch of some night, stands for the version of
    that branch in the session; what is in `branches` always does. Over nights there may be several tables
    for a contender: one for each box, suite and configuration.

    Raises ComparisonError when there is no such session, or it does not have a step that was asked for.
    """
    options = options or CompareOptions()
    if options.metric not in METRICS:
        raise ComparisonError(f"unknown metric '{options.metric}'", hint=f"one of: {', '.join(METRICS)}")
    if base in (*contenders, *branches):
        raise ComparisonError(f"{base} cannot be its own contender")
    with history.database.reading() as connection:
        from_ = resolve_name(connection, base)
        names = [resolve_name(connection, each) for each in dict.fromkeys(contenders)]
    names += [Name(each, is_branch=True) for each in dict.fromkeys(branches)]
    over = _compare_one if options.since is None else _compare_nights
    found = tuple(each for name in names for each in over(history, from_, options, name))
    return Comparison(base, found, options, history.where)


def exit_code(comparison: Comparison) -> int:
    """1 for any regression; else 2 when anything is missing, failed or inconclusive; else 0, as diff(1)."""
    verdicts = comparison.verdicts()
    if Verdict.REGRESSION in verdicts:
        return 1
    complete = all(contender.is_complete for contender in comparison.contenders)
    return 0 if complete and Verdict.INCONCLUSIVE not in verdicts else 2


def _compare_one(
    history: Reader, from_: Name, options: CompareOptions, name: Name
) -> tuple[ContenderComparison, ...]:
    limits = SessionFilter(options.suite, options.profile, options.session, options.machine)
    found = history.latest_of((from_, name), limits)
    if found is None:
        raise _no_session(history, from_, name, limits)
    session, (base, contender) = found
    metrics = {options.metric, PRIMARY, *beside_verdict(), *imported_stand_ins().values()}
    runs = history.runs(session.id, (base, contender), metrics)
    if not runs:
        raise ComparisonError(
            f"session {session.uid} held both {base} and {contender}, and its rounds were pruned",
            where=history.where,
            hint="its night is still there: --since compares nights; a backup from before brings its rounds "
            "back: ./tidemark history merge FILE",
        )
    paired = pair_steps(runs, str(base), str(contender))
    chosen = choose_steps(paired, options.steps, f"session {session.uid}")
    names = {step.step for step in chosen}
    known = {step: noise for step, noise in history.noise(session, options.metric).items() if step in names}
    intervals = _intervals(history, session, paired, chosen, options)
    noise = {step: each.noise for step, each in known.items()}
    judged = judge_all(chosen, options, intervals, noise, session, {base.engine, contender.engine})
    with history.database.reading() as connection:
        nights = trends(connection, session, str(base), str(contender), options.metric)
    profiled = history.profiled_steps(session.id)
    steps = tuple(
        replace(
            _with_functions(history, session, step, base, contender) if step.step in profiled else step,
            trend=nights.get(step.step, ()),
        )
        for step in judged
    )
    return (
        ContenderComparison(
            base,
            contender,
            session,
            steps,
            failures=tuple(failure for step in chosen for failure in step.failures),
            warnings=(
                *comparison_warnings(session, base, contender, [run for run in runs if run.step in names]),
                *(text for step in steps for text in _step_warnings(step, session)),
            ),
            looks=intervals.looks,
            dropped=tuple(each for each in history.dropped(session.id) if each.step in names),
            calibrations=tuple(known.values()),
        ),
    )


def _compare_nights(
    history: Reader, from_: Name, options: CompareOptions, name: Name
) -> tuple[ContenderComparison, ...]:
    from history.comparison.over_nights import compare_nights  # only where nights are compared

    return compare_nights(history, from_, options, name)


def _with_functions(
    history: Reader, session: Session, step: StepComparison, base: Version, contender: Version
) -> StepComparison:
    """Return a regressed step with the functions that its profiles blame, if both versions have one."""
    if step.judgement.verdict is not Verdict.REGRESSION:
        return step
    from history.comparison.profile_diff import differential  # only where something regressed

    rounds = [history.profiles(session.id, step.step, version) for version in (base, contender)]
    return replace(step, gained=differential(*rounds).gained(NAMED_FUNCTIONS)) if all(rounds) else step


def _intervals(
    history: Reader,
    session: Session,
    paired: Sequence[StepPairs],
    chosen: Sequence[StepPairs],
    options: CompareOptions,
) -> Intervals:
    """Return steps that were not chosen still share the error of a session that stopped by its verdicts.

    What decided then decides now: a calibration that came later changes no verdict.
    """
    looks = looks_of(session)

    def calibrated(metric: str) -> Mapping[str, Noise]:
        found = history.noise(session, metric, until=session.started_at)
        return {step: each.noise for step, each in found.items()}

    steps = chosen if looks is None else paired
    return Intervals(steps, options.confidence_percent / 100, looks, calibrated)


def _step_warnings(step: StepComparison, session: Session) -> list[str]:
    pairs = step.judgement.pairs
    if step.judgement.verdict and pairs < session.repetitions:
        return [f"{step.step}: judged from {pairs} of {session.repetitions} rounds"]
    return []


def _no_session(history: Reader, base: Name, contender: Name, limits: SessionFilter) -> ComparisonError:
    seen = history.latest_runs()
    lines = [
        f"\n    {each.version}  {each.suite} {each.profile}  {each.started_at:%Y-%m-%d %H:%M} UTC"
        f"  session {each.session_uid}"
        for each in seen
    ]
    suite = limits.suite or (seen[0].suite if seen else "write-heavy")
    profile = limits.profile or (seen[0].profile if seen else "short")
    return ComparisonError(
        f"no session holds both {base} and {contender}{limits}"
        f"\n  last runs in the history:{''.join(lines) or ' none'}",
        where=history.where,
        hint=f"./tidemark run --suite {suite} --profile {profile} {base} {contender}",
    )
