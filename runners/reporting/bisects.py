"""Bisects as the site shows them: the state of each search as plain values."""

import math
from collections.abc import Iterator

from build.engines import ENGINES
from history.store.bisects import EventKind, load_all
from history.store.reader import Reader
from report.values.bisect_page import (
    BisectPage,
    BisectPosition,
    BisectRound,
    CommitCosts,
    CommitFunctions,
    CommitMessage,
)
from runners.bisect.report.costs import cost_rows
from runners.bisect.report.functions import function_rows
from runners.bisect.report.state import BisectState, load_state
from runners.bisect.report.wording import (
    headline,
    merge_hint,
    reproduce,
    smaller_step_hint,
    steps_of,
    whole_hint,
)
from runners.bisect.run.event_log import read_log

FUNCTIONS = 15

EVENTS = {
    EventKind.SESSION: "a session began",
    EventKind.BUILT: "commits were compiled",
    EventKind.EXCLUDED: "a commit was excluded",
    EventKind.VERDICT: "a verdict",
    EventKind.PROFILED: "a commit and the one before it were profiled",
}
"""The words for each kind of event."""


def read_bisects(store: Reader) -> tuple[BisectPage, ...]:
    """Return all bisects of a history, latest first."""
    with store.database.reading() as connection:
        found = list(load_all(connection))
    return tuple(bisect_values(load_state(store, read_log(store, bisect))) for bisect in found)


def bisect_values(state: BisectState) -> BisectPage:
    """Return what the page of a bisect shows."""
    log, question = state.log, state.log.question
    bisect = log.bisect
    times = [event.happened_at for event in bisect.events]
    posterior = state.posterior
    positions, blamed = tuple(_positions(state)), state.blamed()
    return BisectPage(
        uid=bisect.uid,
        question=question.summary,
        step=question.step,
        source=question.git or "",
        headline=headline(state),
        box=bisect.machine.hostname,
        began_at=bisect.began_at,
        updated_at=max([bisect.began_at, *times]),
        change=bisect.change,
        is_decided=state.verdict is not None,
        culprit=positions[log.span.points.index(blamed[0])] if len(blamed) == 1 else None,
        confidence=question.confidence,
        nobody=None if state.names_several else posterior[0] if posterior else 0.0,
        positions=positions,
        rounds=tuple(
            BisectRound(
                all_round.session,
                all_round.number,
                {place: math.exp(log_) for place, log_ in all_round.log_ratios.items()},
            )
            for all_round in log.all_rounds()
        ),
        round_name=state.round_name,
        counted=tuple(
            (counted.point.short, counted.point.subject, counted.ratio, counted.rounds)
            for counted in state.counted()
        ),
        collapsed=tuple(
            (dropped["commit"], dropped["subject"], dropped["reason"]) for dropped in log.span.collapsed
        ),
        log=tuple((event.happened_at, EVENTS[event.kind], event.session or "") for event in bisect.events),
        hints=tuple(filter(None, (merge_hint(state), smaller_step_hint(state), whole_hint(state)))),
        steps=tuple(steps_of(state)),
        commands=tuple(reproduce(state)),
        costs=tuple(
            CommitCosts(state.point(place).short, tuple(cost_rows(costs)))
            for place, costs in state.costs.items()
        ),
        functions=tuple(_functions(state)),
        messages=tuple(
            CommitMessage(point.short, point.author, point.date, point.message)
            for point in blamed
            if point.message
        ),
    )


def _positions(state: BisectState) -> Iterator[BisectPosition]:
    chances = state.chances()
    measured = {entry.position: entry for entry in state.measured()}
    excluded = {point.version: reason for point, reason in state.excluded()}
    for place, point in enumerate(state.log.span.points):
        found = measured.get(place)
        page = ENGINES[point.parsed.engine].commit_page
        yield BisectPosition(
            position=place,
            commit=point.short,
            subject=point.subject,
            author=point.author,
            date=point.date,
            probability=chances[place] if place < len(chances) else 0.0,
            ratio=1.0 if place == 0 and measured else found.ratio if found else None,
            low=found.low if found else None,
            high=found.high if found else None,
            rounds=found.rounds if found else 0,
            excluded=excluded.get(point.version, ""),
            address=f"{page}{point.commit}" if point.commit else "",
        )


def _functions(state: BisectState) -> Iterator[CommitFunctions]:
    for place, both in state.differentials.items():
        rows = tuple(function_rows(both, FUNCTIONS))
        yield CommitFunctions(state.point(place).short, both.base.is_exact, rows)
