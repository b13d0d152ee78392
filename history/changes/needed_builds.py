"""Which builds the history still needs: a change, a bisect or the next night may measure them again."""

from collections.abc import Iterator
from datetime import timedelta

from sqlalchemy import Connection, func, select

from history.store.bisects import GOES_ON, EventKind
from history.store.records import ChangeStatus
from history.store.schema import (
    bisect_events,
    bisects,
    builds,
    change_series,
    changes,
    nights,
    runs,
    sessions,
)
from history.timestamps import from_text, to_text

CURRENT = timedelta(days=30)
"""A branch without a night for so long before the last one of all is not followed any more."""


def needed_builds(connection: Connection, commits: int) -> dict[str, str]:
    """Return build key -> why the build is needed, for people.

    Needed are those before and after open changes, those of bisects that go on, bases, and of each
    branch that is followed the last `commits` that were measured.
    """
    needed: dict[str, str] = {}
    for found in (_of_changes(connection), _of_bisects(connection), _of_branches(connection, commits)):
        for key, why in found:
            needed.setdefault(key, why)
    return needed


def _of_changes(connection: Connection) -> Iterator[tuple[str, str]]:
    of_side = nights.c.session_id.in_([change_series.c.last_before_id, change_series.c.first_after_id])
    query = (
        select(builds.c.key, changes.c.fingerprint)
        .select_from(changes)
        .join(change_series, change_series.c.change_id == changes.c.id)
        .join(nights, of_side & (nights.c.branch == changes.c.branch))
        .join(builds, builds.c.id == nights.c.build_id)
        .where(changes.c.status == ChangeStatus.OPEN.value)
        .group_by(builds.c.key, changes.c.fingerprint, changes.c.id)
        .order_by(changes.c.id)
    )
    for key, fingerprint in connection.execute(query):
        yield key, f"open change {fingerprint}"


def _of_bisects(connection: Connection) -> Iterator[tuple[str, str]]:
    is_last = ~bisect_events.c.detail.contains(f'"{GOES_ON}"')
    decided = select(bisect_events.c.bisect_id).where(
        bisect_events.c.kind == EventKind.VERDICT.value, is_last
    )
    query = (
        select(builds.c.key, bisects.c.uid)
        .select_from(bisects)
        .join(bisect_events, bisect_events.c.bisect_id == bisects.c.id)
        .join(sessions, sessions.c.uid == bisect_events.c.session_uid)
        .join(runs, runs.c.session_id == sessions.c.id)
        .join(builds, builds.c.id == runs.c.build_id)
        .where(bisects.c.id.not_in(decided))
        .group_by(builds.c.key, bisects.c.uid, bisects.c.id)
        .order_by(bisects.c.id)
    )
    for key, uid in connection.execute(query):
        yield key, f"bisect {uid}"


def _of_branches(connection: Connection, commits: int) -> Iterator[tuple[str, str]]:
    last = connection.scalar(select(func.max(nights.c.started_at)))
    if last is None:
        return
    query = (
        select(nights.c.branch, builds.c.key, nights.c.is_base, func.max(nights.c.started_at).label("at"))
        .select_from(nights)
        .join(builds, builds.c.id == nights.c.build_id)
        .where(nights.c.started_at >= to_text(from_text(last) - CURRENT))
        .group_by(nights.c.branch, builds.c.key, nights.c.is_base)
        .order_by(nights.c.branch, nights.c.is_base.desc(), func.max(nights.c.started_at).desc())
    )
    kept: dict[tuple[str, bool], int] = {}
    for branch, key, is_base, _ in connection.execute(query):
        most = 1 if is_base else commits
        place = (branch, bool(is_base))
        kept[place] = kept.get(place, 0) + 1
        if kept[place] <= most:
            yield key, f"base of {branch}" if is_base else f"one of the last {commits} of {branch}"
