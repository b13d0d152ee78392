"""A base and a contender over the nights that hold both: one pair of values for each night.

Base and contender are paired within a night only. What a night was like is shared by all of its rounds, so
that nights, not rounds, are what an interval over nights counts.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise, starmap
from typing import Any

from history.comparison.intervals import Intervals
from history.comparison.pairs import pair_steps
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
from history.store.records import ALL_STEPS, Environment, Run, RunStatus
from history.store.session_lookup import Name
from history.store.session_reads import session_of
from history.store.sql import Source
from history.timestamps import from_text, to_text
from suites.metrics import PRIMARY, beside_verdict


@dataclass(frozen=True)
class _Side:
    """Base or contender in one night."""

    branch: str
    version: str


@dataclass(frozen=True)
class _Both:
    """One night that holds both."""

    session_id: int
    started_at: datetime
    place: Environment
    base: _Side
    contender: _Side


def compare_nights(
    history: Reader, base: Name, options: CompareOptions, contender: Name
) -> tuple[ContenderComparison, ...]:
    """Compare over the nights since a moment: one table for each box, suite and configuration.

    Raises ComparisonError when no night holds both.
    """
    if options.session is not None:
        raise ComparisonError("one session is no history", where="--since", hint="leave --session out")
    assert options.since is not None
    with history.asking() as source:
        by_place: defaultdict[Environment, list[_Both]] = defaultdict(list)
        for night in starmap(_night, _nights_of_both(source, base, contender, options)):
            by_place[night.place].append(night)
        if not by_place:
            raise ComparisonError(
                f"no night since {options.since:%Y-%m-%d} holds both {base} and {contender}",
                where=history.where,
                hint="./tidemark history show lists boxes, suites and branches with their nights",
            )
        found = [_compare(source, base, contender, options, each) for each in by_place.values()]
    return tuple(sorted(found, key=lambda each: each.session.started_at, reverse=True))


def _nights_of_both(
    source: Source, base: Name, contender: Name, options: CompareOptions
) -> Sequence[Sequence[Any]]:
    assert options.since is not None
    its_session = "SELECT 1 FROM sessions WHERE sessions.id = new.session_id AND sessions.profile = :profile"
    given = {"machine": options.machine, "suite": options.suite, "profile": options.profile}
    limits = {
        "machine": "new.box = :machine",
        "suite": "new.suite = :suite",
        "profile": f"EXISTS ({its_session})",
    }
    values = {name: wanted for name, wanted in given.items() if wanted is not None}
    return source.rows(
        "SELECT new.session_id, new.started_at, new.box, new.suite, new.configuration,"
        " old.branch, old.version, new.branch, new.version FROM nights AS old, nights AS new"
        f" WHERE {base.matches('old')} AND {contender.matches('new')} AND old.session_id = new.session_id"
        " AND old.branch != new.branch AND new.started_at >= :since"
        f"{''.join(f' AND {limits[name]}' for name in values)}"
        " ORDER BY new.started_at, new.session_id",
        old=str(base),
        new=str(contender),
        since=to_text(options.since),
        **values,
    )


def _night(session_id: int, started_at: str, box: str, suite: str, configuration: str, *sides: str) -> _Both:
    old, new = _Side(sides[0], sides[1]), _Side(sides[2], sides[3])
    return _Both(session_id, from_text(started_at), Environment(box, suite, configuration), old, new)


def _compare(
    source: Source, base: Name, contender: Name, options: CompareOptions, found: Sequence[_Both]
) -> ContenderComparison:
    place, last = found[-1].place, session_of(source, found[-1].session_id)
    metrics = {options.metric, PRIMARY, *beside_verdict()}
    runs = _as_runs(source, place, found, metrics, (str(base), str(contender)))
    paired = pair_steps(runs, str(base), str(contender))
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
    lacking = _gaps(source, found, {*names, ALL_STEPS})
    return ContenderComparison(
        base.version,
        contender.version,
        last,
        steps,
        failures=(),
        warnings=(*of_engines(last, base.version, contender.version), *_changes(source, found)),
        nights=Nights(
            place.configuration,
            tuple(each.started_at for each in found),
            Counter(each.base.version for each in found),
            Counter(each.contender.version for each in found),
            lacking,
        ),
    )


def _as_runs(
    source: Source,
    place: Environment,
    found: Sequence[_Both],
    metrics: Collection[str],
    names: tuple[str, str],
) -> list[Run]:
    """Each night as a round: what the interval of a session does with rounds, it does with nights."""
    branches = {side.branch for night in found for side in (night.base, night.contender)}
    values = values_of(source, place, branches, metrics, [night.session_id for night in found])
    by_run: defaultdict[tuple[str, int, str], dict[str, float]] = defaultdict(dict)
    for (branch, step, metric, session_id), value in values.items():
        by_run[branch, session_id, step][metric] = value
    positions = step_positions(source, place, branches)
    runs = []
    for number, night in enumerate(found, start=1):
        for name, side in zip(names, (night.base, night.contender), strict=True):
            for step, position in positions.items():
                its = by_run.get((side.branch, night.session_id, step))
                if its is not None:
                    runs.append(
                        Run(
                            night.session_id,
                            name,
                            "",
                            step,
                            position,
                            number,
                            number,
                            RunStatus.FINISHED,
                            None,
                            its,
                        )
                    )
    return runs


def _trend(ratios: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(ratios) if sum(each is not None for each in ratios) >= LEAST_NIGHTS else ()


def _gaps(source: Source, found: Sequence[_Both], steps: Collection[str]) -> tuple[NightGap, ...]:
    """Why nights are missing in steps; gaps of the same kind are one."""
    by_id = {night.session_id: night for night in found}
    rows = source.rows(
        "SELECT session_id, branch, step, reason FROM gaps WHERE session_id BETWEEN :first AND :last"
        " ORDER BY session_id, branch, step",
        first=min(by_id),
        last=max(by_id),
    )
    kinds: defaultdict[tuple[str, str, str], list[datetime]] = defaultdict(list)
    for session_id, branch, step, reason in rows:
        night = by_id.get(session_id)
        if night is not None and step in steps:
            for side in (night.base, night.contender):
                if side.branch == branch:
                    kinds[branch, step, reason].append(night.started_at)
    return tuple(NightGap(*kind, tuple(sorted(nights))) for kind, nights in kinds.items())


def _changes(source: Source, found: Sequence[_Both]) -> tuple[str, ...]:
    """What else changed between the nights: machine and suite. Pairs cancel most of it."""
    changed: defaultdict[str, list[datetime]] = defaultdict(list)
    ids = [night.session_id for night in found]
    rows = source.rows(
        "SELECT id, machine_id, suite_digest FROM sessions WHERE id BETWEEN :first AND :last",
        first=min(ids),
        last=max(ids),
    )
    kept = {row[0]: row[1:] for row in rows}
    for before, night in pairwise(found):
        both = zip(("machine", "suite"), kept[before.session_id], kept[night.session_id], strict=True)
        for what, old, new in both:
            if old != new:
                changed[what].append(night.started_at)
    return tuple(
        f"the {what} changed before {', '.join(dict.fromkeys(f'{each:%Y-%m-%d}' for each in nights))}"
        for what, nights in changed.items()
    )
