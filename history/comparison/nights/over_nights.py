"""Comparison of a base and a contender over the nights that have both: one pair of values for each night.

Base and contender are paired within a night only. All rounds of a night share its conditions, so that nights,
not rounds, are the independent observations of an interval over nights.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from sqlalchemy import Connection, select

from history.comparison.findings.sources import with_findings
from history.comparison.intervals import Intervals
from history.comparison.judging import choose_steps, judge_all
from history.comparison.nights.recent_nights import LAST_NIGHTS, MIN_NIGHTS, step_positions, values_of
from history.comparison.options import CompareOptions
from history.comparison.pairs import Pair, StepPairs
from history.comparison.result import ContenderComparison, NightGap, Nights
from history.comparison.warnings import engine_warnings
from history.errors import ComparisonError
from history.series.environment_changes import changed_steps
from history.store.reader import Reader
from history.store.records import ALL_STEPS, Environment
from history.store.schema import gaps, nights, sessions
from history.store.session_lookup import Name
from history.store.session_reads import session_of
from history.timestamps import from_text, to_text
from suites.metrics import PRIMARY, beside_verdict


@dataclass(frozen=True)
class _NightVersion:
    """Base or contender in one night."""

    branch: str
    version: str


@dataclass(frozen=True)
class _Both:
    """A night that has both base and contender."""

    session_id: int
    started_at: datetime
    """Its place in the series: for a past commit, the commit's date."""
    measured_at: datetime
    environment: Environment
    base: _NightVersion
    contender: _NightVersion


def compare_nights(
    history: Reader, base: Name, options: CompareOptions, contender: Name
) -> tuple[ContenderComparison, ...]:
    """Compare over the nights since `options.since`; return one table per box, suite and configuration.

    Raises ComparisonError when no night has both versions, or when a session is given.
    """
    if options.session is not None:
        raise ComparisonError("--since compares nights, not one session", hint="omit --session")
    assert options.since is not None
    with history.database.reading() as connection:
        by_environment: defaultdict[Environment, list[_Both]] = defaultdict(list)
        for night in _nights_of_both(connection, base, contender, options):
            by_environment[night.environment].append(night)
        if not by_environment:
            raise ComparisonError(
                f"no night since {options.since:%Y-%m-%d} holds both {base} and {contender}",
                where=history.where,
                hint="./tidemark history show lists the nights of all boxes, suites and branches",
            )
        comparisons = [
            _compare(connection, base, contender, options, place_nights)
            for place_nights in by_environment.values()
        ]
    return tuple(sorted(comparisons, key=lambda comparison: comparison.session.started_at, reverse=True))


def _nights_of_both(
    connection: Connection, base: Name, contender: Name, options: CompareOptions
) -> list[_Both]:
    assert options.since is not None
    old, new = nights.alias("old"), nights.alias("new")
    query = (
        select(
            *(new.c.session_id, new.c.started_at, sessions.c.started_at),
            *(new.c.box, new.c.suite, new.c.configuration),
            *(old.c.branch, old.c.version, new.c.branch, new.c.version),
        )
        .join_from(old, new, old.c.session_id == new.c.session_id)
        .join(sessions, sessions.c.id == new.c.session_id)
        .where(
            base.matches(old),
            contender.matches(new),
            old.c.branch != new.c.branch,
            new.c.started_at >= to_text(options.since),
        )
        .order_by(new.c.started_at, new.c.session_id)
    )
    if options.machine is not None:
        query = query.where(new.c.box == options.machine)
    if options.suite is not None:
        query = query.where(new.c.suite == options.suite)
    if options.profile is not None:
        query = query.where(sessions.c.profile == options.profile)
    return [
        _Both(
            session_id,
            from_text(stands_at),
            from_text(measured_at),
            Environment(box, suite, configuration),
            _NightVersion(*versions[:2]),
            _NightVersion(*versions[2:]),
        )
        for session_id, stands_at, measured_at, box, suite, configuration, *versions in (
            connection.execute(query)
        )
    ]


def _compare(
    connection: Connection, base: Name, contender: Name, options: CompareOptions, both: Sequence[_Both]
) -> ContenderComparison:
    environment, last = both[-1].environment, session_of(connection, both[-1].session_id)
    if options.metric == PRIMARY:
        options = replace(options, metric=last.primary)
    metrics = {options.metric, PRIMARY, *beside_verdict(primary=last.primary)}
    paired = _paired(connection, environment, both, metrics)
    where = f"{environment.suite}, {environment.configuration}, on {environment.box}"
    chosen = choose_steps(paired, options.steps, where)
    if not chosen:
        raise ComparisonError(f"{where}: no night has values of {base} or {contender}")
    intervals = Intervals(chosen, options.confidence_percent / 100, None, counted="night")
    engines = {base.version.engine, contender.version.engine}
    judged = judge_all(chosen, options, intervals, {}, last, engines)
    ratios = {step.step: step.ratios(options.metric, len(both)) for step in chosen}
    steps = tuple(
        replace(step, base_drift=None, trend=_trend(ratios[step.step][-LAST_NIGHTS:])) for step in judged
    )
    names = {step.step for step in steps}
    lacking = _gaps(connection, both, {*names, ALL_STEPS})
    compared = ContenderComparison(
        base.version,
        contender.version,
        last,
        steps,
        failures=(),
        warnings=(
            *engine_warnings(last, base.version, contender.version),
            *_changes(connection, both, names),
        ),
        nights=Nights(
            environment.configuration,
            tuple(night.started_at for night in both),
            Counter(night.base.version for night in both),
            Counter(night.contender.version for night in both),
            lacking,
            past=sum(night.started_at != night.measured_at for night in both),
        ),
    )
    return with_findings(compared, intervals)


def _paired(
    connection: Connection, environment: Environment, both: Sequence[_Both], metrics: Collection[str]
) -> list[StepPairs]:
    """Return every step with a value of either side, in suite order, with a pair for each night of both."""
    branches = {side.branch for night in both for side in (night.base, night.contender)}
    values = values_of(connection, environment, branches, metrics, [night.session_id for night in both])
    by_night: defaultdict[tuple[int, str, str], dict[str, float]] = defaultdict(dict)
    for (branch, step, metric, session_id), value in values.items():
        by_night[session_id, branch, step][metric] = value
    positions = step_positions(connection, environment, branches)
    pairs: defaultdict[str, list[Pair]] = defaultdict(list)
    for number, night in enumerate(both, start=1):
        for step in positions:
            base = by_night.get((night.session_id, night.base.branch, step))
            contender = by_night.get((night.session_id, night.contender.branch, step))
            if base and contender:
                pairs[step].append(Pair(number, base, contender))
            elif base or contender:
                pairs.setdefault(step, [])  # the step is listed with a gap
    in_suite_order = sorted(pairs, key=lambda step: (positions[step], step))
    return [StepPairs(step, tuple(pairs[step]), failures=()) for step in in_suite_order]


def _trend(ratios: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(ratios) if sum(ratio is not None for ratio in ratios) >= MIN_NIGHTS else ()


def _gaps(connection: Connection, both: Sequence[_Both], steps: Collection[str]) -> tuple[NightGap, ...]:
    """Return the gaps of the steps, merged by branch, step and reason."""
    by_id = {night.session_id: night for night in both}
    query = (
        select(gaps.c.session_id, gaps.c.branch, gaps.c.step, gaps.c.reason)
        .where(gaps.c.session_id.between(min(by_id), max(by_id)))
        .order_by(gaps.c.session_id, gaps.c.branch, gaps.c.step)
    )
    kinds: defaultdict[tuple[str, str, str], list[datetime]] = defaultdict(list)
    for session_id, branch, step, reason in connection.execute(query):
        night = by_id.get(session_id)
        if night is not None and step in steps:
            for side in (night.base, night.contender):
                if side.branch == branch:
                    kinds[branch, step, reason].append(night.started_at)
    return tuple(NightGap(*kind, tuple(sorted(nights))) for kind, nights in kinds.items())


def _changes(connection: Connection, both: Sequence[_Both], steps: Collection[str]) -> tuple[str, ...]:
    """Return warnings about changes of machine and suite between the nights; pairing cancels most effects."""
    changed: defaultdict[str, list[datetime]] = defaultdict(list)
    ids = [night.session_id for night in both]
    session = sessions.c
    columns = (session.id, session.machine_id, session.suite_digest)
    query = select(*columns).where(session.id.between(min(ids), max(ids)))
    states = {row[0]: row[1:] for row in connection.execute(query)}
    # In the order of measuring, in which the machine changed: past commits stand elsewhere in the series.
    for before, night in pairwise(sorted(both, key=lambda night: night.measured_at)):
        (old_machine, old_suite), (machine, suite) = states[before.session_id], states[night.session_id]
        if old_machine != machine:
            changed["machine"].append(night.measured_at)
        work = changed_steps(old_suite, suite)
        if work is None or work.intersection(steps):
            changed["suite"].append(night.measured_at)
    return tuple(
        f"the {what} changed before {', '.join(dict.fromkeys(f'{time:%Y-%m-%d}' for time in times))}"
        for what, times in changed.items()
    )
