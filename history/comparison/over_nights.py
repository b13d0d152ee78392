"""A base and a contender over the nights that hold both: one pair of values for each night.

Base and contender are paired within a night only. What a night was like is shared by all of its rounds, so
that nights, not rounds, are what an interval over nights counts.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from sqlalchemy import Connection, exists, select

from history.comparison.intervals import Intervals
from history.comparison.pairs import Pair, StepPairs
from history.comparison.recent_nights import LAST_NIGHTS, LEAST_NIGHTS, step_positions, values_of
from history.comparison.result import (
    CompareOptions,
    ComparisonError,
    ContenderComparison,
    NightGap,
    Nights,
    choose_steps,
    judge_all,
)
from history.comparison.warnings import of_engines
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
    """One night that holds both."""

    session_id: int
    started_at: datetime
    place: Environment
    base: _NightVersion
    contender: _NightVersion


def compare_nights(
    history: Reader, base: Name, options: CompareOptions, contender: Name
) -> tuple[ContenderComparison, ...]:
    """Compare over the nights since a moment: one table for each box, suite and configuration.

    Raises ComparisonError when no night holds both.
    """
    if options.session is not None:
        raise ComparisonError("one session is no history", where="--since", hint="leave --session out")
    assert options.since is not None
    with history.database.reading() as connection:
        by_place: defaultdict[Environment, list[_Both]] = defaultdict(list)
        for night in _nights_of_both(connection, base, contender, options):
            by_place[night.place].append(night)
        if not by_place:
            raise ComparisonError(
                f"no night since {options.since:%Y-%m-%d} holds both {base} and {contender}",
                where=history.where,
                hint="./tidemark history show lists boxes, suites and branches with their nights",
            )
        found = [_compare(connection, base, contender, options, each) for each in by_place.values()]
    return tuple(sorted(found, key=lambda each: each.session.started_at, reverse=True))


def _nights_of_both(
    connection: Connection, base: Name, contender: Name, options: CompareOptions
) -> list[_Both]:
    assert options.since is not None
    old, new = nights.alias("old"), nights.alias("new")
    query = (
        select(
            *(new.c.session_id, new.c.started_at, new.c.box, new.c.suite, new.c.configuration),
            *(old.c.branch, old.c.version, new.c.branch, new.c.version),
        )
        .join_from(old, new, old.c.session_id == new.c.session_id)
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
        its_session = exists().where(sessions.c.id == new.c.session_id)
        query = query.where(its_session.where(sessions.c.profile == options.profile))
    return [
        _Both(
            session_id,
            from_text(started_at),
            Environment(*place),
            _NightVersion(old_branch, old_version),
            _NightVersion(new_branch, new_version),
        )
        for session_id, started_at, *place, old_branch, old_version, new_branch, new_version in (
            connection.execute(query)
        )
    ]


def _compare(
    connection: Connection, base: Name, contender: Name, options: CompareOptions, found: Sequence[_Both]
) -> ContenderComparison:
    place, last = found[-1].place, session_of(connection, found[-1].session_id)
    paired = _paired(connection, place, found, {options.metric, PRIMARY, *beside_verdict()})
    where = f"{place.suite}, {place.configuration}, on {place.box}"
    chosen = choose_steps(paired, options.steps, where)
    if not chosen:
        raise ComparisonError(f"{where} has no values of {base} and {contender} in any night")
    intervals = Intervals(chosen, options.confidence_percent / 100, None, counted="night")
    engines = {base.version.engine, contender.version.engine}
    judged = judge_all(chosen, options, intervals, {}, last, engines)
    ratios = {step.step: step.ratios(options.metric, len(found)) for step in chosen}
    steps = tuple(
        replace(step, base_drift=None, trend=_trend(ratios[step.step][-LAST_NIGHTS:])) for step in judged
    )
    names = {step.step for step in steps}
    lacking = _gaps(connection, found, {*names, ALL_STEPS})
    return ContenderComparison(
        base.version,
        contender.version,
        last,
        steps,
        failures=(),
        warnings=(*of_engines(last, base.version, contender.version), *_changes(connection, found)),
        nights=Nights(
            place.configuration,
            tuple(each.started_at for each in found),
            Counter(each.base.version for each in found),
            Counter(each.contender.version for each in found),
            lacking,
        ),
    )


def _paired(
    connection: Connection, place: Environment, found: Sequence[_Both], metrics: Collection[str]
) -> list[StepPairs]:
    """Every step that either side has a value of, in suite order, with a pair for each night of both."""
    branches = {side.branch for night in found for side in (night.base, night.contender)}
    values = values_of(connection, place, branches, metrics, [night.session_id for night in found])
    by_night: defaultdict[tuple[int, str, str], dict[str, float]] = defaultdict(dict)
    for (branch, step, metric, session_id), value in values.items():
        by_night[session_id, branch, step][metric] = value
    positions = step_positions(connection, place, branches)
    pairs: defaultdict[str, list[Pair]] = defaultdict(list)
    for number, night in enumerate(found, start=1):
        for step in positions:
            base = by_night.get((night.session_id, night.base.branch, step))
            contender = by_night.get((night.session_id, night.contender.branch, step))
            if base and contender:
                pairs[step].append(Pair(number, base, contender))
            elif base or contender:
                pairs.setdefault(step, [])  # it is shown, with what is missing
    in_suite_order = sorted(pairs, key=lambda step: (positions[step], step))
    return [StepPairs(step, tuple(pairs[step]), failures=()) for step in in_suite_order]


def _trend(ratios: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(ratios) if sum(each is not None for each in ratios) >= LEAST_NIGHTS else ()


def _gaps(connection: Connection, found: Sequence[_Both], steps: Collection[str]) -> tuple[NightGap, ...]:
    """Why nights are missing in steps; gaps of the same kind are one."""
    by_id = {night.session_id: night for night in found}
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


def _changes(connection: Connection, found: Sequence[_Both]) -> tuple[str, ...]:
    """What else changed between the nights: machine and suite. Pairs cancel most of it."""
    changed: defaultdict[str, list[datetime]] = defaultdict(list)
    ids = [night.session_id for night in found]
    its = sessions.c
    query = select(its.id, its.machine_id, its.suite_digest).where(its.id.between(min(ids), max(ids)))
    kept = {row[0]: row[1:] for row in connection.execute(query)}
    for before, night in pairwise(found):
        both = zip(("machine", "suite"), kept[before.session_id], kept[night.session_id], strict=True)
        for what, old, new in both:
            if old != new:
                changed[what].append(night.started_at)
    return tuple(
        f"the {what} changed before {', '.join(dict.fromkeys(f'{each:%Y-%m-%d}' for each in nights))}"
        for what, nights in changed.items()
    )
