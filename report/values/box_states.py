"""The state of each box: when it last reported, whether anything could be measured, and what it lacks."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from history.series.last_nights import last_nights
from history.series.task_states import WELL, TaskOutcome, TaskState, read_states
from history.store.schema import points, series
from report.values.catalog import Catalog, NightEntry, SessionEntry, SessionKind
from report.values.failed_sessions import FailedSession, read_failed_sessions

NIGHT_HOURS = 20
LONGEST_NIGHT = timedelta(hours=NIGHT_HOURS)
"""Sessions of a box that begin within this time belong to one night, and so do the nights of all boxes."""

RETIRED_DAYS = 30
"""After how many days without a night a box counts as retired, and only the table of boxes has it."""

MAX_NIGHTS = 30
"""How many nights are looked at, from the last one back, for one in which anything was measured."""


@dataclass(frozen=True)
class Lack:
    """What the last night of a box did not measure."""

    branch: str
    step: str
    """Empty when no step was measured."""

    reason: str


@dataclass(frozen=True)
class BoxState:
    """A box at its last night; one without nights at its latest session."""

    box: str
    """The host name, as the history has it."""

    at: datetime
    """When its last night or session began, or when a night last looked at what it tracks."""

    uid: str
    """The session of then; empty when there was none."""

    has_sessions: bool
    has_nights: bool
    is_missing: bool
    """Whether it has nights, and none of them is in the last night of the site."""

    is_retired: bool
    """Whether it had no night for RETIRED_DAYS."""

    blind_nights: int
    """The nights in a row up to its last one in which nothing could be measured; 0 when something was."""

    lacks: tuple[Lack, ...]

    @property
    def is_blind(self) -> bool:
        """Whether nothing could be measured in its last night."""
        return self.blind_nights > 0


def read_box_states(connection: Connection, catalog: Catalog) -> tuple[BoxState, ...]:
    """Return the states of all boxes, sorted by host name."""
    failed = {session.entry.id: session for session in read_failed_sessions(connection, catalog)}
    attempts = _attempts(catalog, failed)
    states: defaultdict[str, list[TaskState]] = defaultdict(list)
    for state in read_states(connection).values():
        states[state.hostname].append(state)
    lacking = _lacking(connection, states)
    latest = {entry.box: entry for entry in catalog.sessions.values()}
    found = [
        _state(
            connection,
            box,
            latest.get(box),
            attempts.get(box, []),
            states[box],
            [*lacking.get(box, []), *_of_last_session(attempts.get(box, []), failed)],
        )
        for box in sorted({*latest, *states})
    ]
    last = max((state.at for state in found if state.has_nights), default=None)
    return tuple(_with_window(state, last) for state in found)


@dataclass(frozen=True)
class _Attempt:
    """A session that was to be a night."""

    entry: SessionEntry
    night: NightEntry | None
    """None when nothing was measured, so that it became no night."""


def _attempts(catalog: Catalog, failed: Collection[int]) -> Mapping[str, Sequence[_Attempt]]:
    """Return the sessions of each box that were to be nights, oldest first. Past commits are not nights."""
    found: defaultdict[str, list[_Attempt]] = defaultdict(list)
    for entry in catalog.sessions.values():
        night = catalog.nights_by_session.get(entry.id)
        is_night = entry.kind is SessionKind.NIGHT and night is not None and night.measured_at is None
        if is_night or entry.id in failed:
            found[entry.box].append(_Attempt(entry, night if is_night else None))
    return found


def _state(
    connection: Connection,
    box: str,
    latest: SessionEntry | None,
    attempts: Sequence[_Attempt],
    states: Sequence[TaskState],
    lacks: Sequence[tuple[datetime, Lack]],
) -> BoxState:
    last = attempts[-1].entry if attempts else latest
    began = last.started_at if last is not None else None
    looked = max((state.checked_at for state in states), default=None)
    at = max(when for when in (began, looked) if when is not None)
    nights = _by_night(attempts)
    blind = _blind_nights(connection, nights)
    is_newer = looked is not None and (not attempts or looked - attempts[-1].entry.started_at > LONGEST_NIGHT)
    if is_newer:
        blind = max(blind, min(state.nights for state in states)) if _are_blind(states) else 0
    return BoxState(
        box,
        at,
        last.uid if last is not None and not is_newer else "",
        latest is not None,
        bool(attempts or states),
        False,
        False,
        blind,
        tuple(lack for when, lack in lacks if at - when <= LONGEST_NIGHT),
    )


def _of_last_session(
    attempts: Sequence[_Attempt], failed: Mapping[int, FailedSession]
) -> Iterator[tuple[datetime, Lack]]:
    """Yield the branches of the last session of a box if it measured nothing, each with why."""
    if attempts and attempts[-1].entry.id in failed:
        session = failed[attempts[-1].entry.id]
        for branch, reason in session.reasons.items():
            yield session.entry.started_at, Lack(branch, "", reason)


def _are_blind(states: Sequence[TaskState]) -> bool:
    """Return whether a night left no version of a box with a value, although nobody had paused the box."""
    outcomes = {state.outcome for state in states}
    return not outcomes & {*WELL, TaskOutcome.DISTURBED} and outcomes != {TaskOutcome.PAUSED}


def _with_window(state: BoxState, last: datetime | None) -> BoxState:
    """Return the state of a box when the last night of all boxes is known."""
    behind = last - state.at if state.has_nights and last is not None else timedelta()
    return replace(state, is_missing=behind > LONGEST_NIGHT, is_retired=behind > timedelta(days=RETIRED_DAYS))


def _by_night(attempts: Sequence[_Attempt]) -> list[list[_Attempt]]:
    """Return sessions by night, the last night first."""
    found: list[list[_Attempt]] = []
    for attempt in reversed(attempts):
        if found and found[-1][0].entry.started_at - attempt.entry.started_at < LONGEST_NIGHT:
            found[-1].append(attempt)
        elif len(found) == MAX_NIGHTS:
            break
        else:
            found.append([attempt])
    return found


def _blind_nights(connection: Connection, nights: Sequence[Sequence[_Attempt]]) -> int:
    """Return in how many nights in a row, up to the last one, no contender was measured."""
    for count, attempts in enumerate(nights):
        if any(_is_measured(connection, attempt) for attempt in attempts):
            return count
    return len(nights)


def _is_measured(connection: Connection, attempt: _Attempt) -> bool:
    """Return whether a night has a value of any branch besides the base; of a base alone, whether of it."""
    night = attempt.night
    if night is None:
        return False
    wanted = night.built - {night.base} or (night.built if len(night.versions) == 1 else set())
    query = (
        select(points.c.session_id)
        .join_from(series, points, points.c.series_id == series.c.id)
        .where(
            series.c.box == attempt.entry.box,
            series.c.suite == attempt.entry.suite,
            series.c.branch.in_(wanted),
            points.c.session_id == attempt.entry.id,
        )
        .limit(1)
    )
    return bool(wanted) and connection.execute(query).first() is not None


def _lacking(
    connection: Connection, states: Mapping[str, Sequence[TaskState]]
) -> Mapping[str, Sequence[tuple[datetime, Lack]]]:
    """Return what the last night of each box lacks, and when that was."""
    found: defaultdict[str, dict[tuple[str, str], tuple[datetime, Lack]]] = defaultdict(dict)
    for box, when, lack in (*_of_nights(connection), *_of_states(states)):
        found[box].setdefault((lack.branch, lack.step), (when, lack))
    return {box: tuple(lacks.values()) for box, lacks in found.items()}


def _of_nights(connection: Connection) -> Iterator[tuple[str, datetime, Lack]]:
    for night in last_nights(connection):
        if night.not_measured:
            yield night.box, night.at, Lack(night.branch, "", night.not_measured)
        for step, why in night.failures.items():
            yield night.box, night.at, Lack(night.branch, step, why)


def _of_states(states: Mapping[str, Iterable[TaskState]]) -> Iterator[tuple[str, datetime, Lack]]:
    """Yield what a night of the service did not measure for a reason that no session tells."""
    told = {*WELL, TaskOutcome.PENDING, TaskOutcome.UNUSABLE, TaskOutcome.FAILED}
    for box, tasks in states.items():
        for state in tasks:
            if state.outcome not in told:
                yield box, state.checked_at, Lack(state.task.tracked, "", state.reason or str(state.outcome))
