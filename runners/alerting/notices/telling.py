"""What routes are told: of alerts, of troubles of a night, a report or another route, and weekly."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection

from history.escaping.characters import one_line
from history.store.database import Database
from runners.alerting.notices import outbox
from runners.alerting.notices.digest import OF_NIGHTS, digests, due_day, known, report_trouble
from runners.alerting.notices.of_alerts import Found, Links, notices_of_alerts
from runners.alerting.notices.outbox import Notice, NoticeKind, StoredNotice
from runners.alerting.notices.routes import About, Route, wanting
from runners.alerting.notices.sending import send_waiting, stuck_routes

MAX_REASONS = 3
"""The most reasons of a trouble that its line names."""

RECENT = timedelta(days=1)
"""How old an alert may be that is told when a plan has its first route."""

WORKING = timedelta(days=2)
"""A box that had a night within this time works, and will say when what its report told is over."""

LONGEST_REASON = 200
"""Characters of one of them."""

_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,}\b|\d+", re.IGNORECASE)
"""What differs from night to night in the same trouble: numbers, times, commits."""


@dataclass(frozen=True)
class Trouble:
    """What is wrong with the service in one place; over when a later one of its subject has no reasons."""

    subject: str
    what: str
    """Which night or report: `the night of 2026-11-26 on box db1`."""

    reasons: Sequence[str]
    advice: str
    boxes: Sequence[str] = ()

    reported_by: str = ""
    """The box whose report it is of: what another box that works has told of its own is not told again."""


@dataclass(frozen=True)
class Telling:
    """The routes of a plan, and what digests need to know of it."""

    routes: Sequence[Route]
    links: Links
    boxes: Sequence[str]
    weekday: str
    """On which a digest is due."""

    nights: Sequence[Notice] = field(default=())
    """What nights did, which digests tell."""


def tell(
    database: Database, telling: Telling, troubles: Sequence[Trouble], when: datetime, *, sends: bool = True
) -> list[str]:
    """Add what is to be told to the outbox, and send what waits; return what went wrong.

    Without `sends` it waits for the next delivery, because this process has no credentials. Nothing is added
    without routes.
    """
    if not telling.routes:
        return []
    with database.delivery_lock():
        stuck = stuck_routes(database, telling.routes, when)
        with database.writing() as connection:
            _add(connection, telling, [*troubles, *_of_routes(telling.routes, stuck)], when)
        return send_waiting(database, telling.routes, when) if sends else []


def _add(connection: Connection, telling: Telling, troubles: Sequence[Trouble], when: datetime) -> None:
    stored = outbox.load(connection)
    told = {notice.notice.subject: notice.notice for notice in stored}
    found = list(notices_of_alerts(connection, told, telling.links, telling.boxes))
    for of_alert in found:
        # What was told by issues before the first route is listed in the first digest, and not told again.
        is_told = stored or of_alert.since is None or when - of_alert.since < RECENT
        names = wanting(telling.routes, of_alert.notice.kind, of_alert.about) if is_told else []
        outbox.add(connection, of_alert.notice, names, when)
    for trouble in troubles:
        elsewhere = _told_elsewhere(trouble, stored, when)
        of_trouble = _trouble(trouble, told.get(trouble.subject), elsewhere)
        if of_trouble is not None:
            names = wanting(telling.routes, of_trouble.notice.kind, of_trouble.about)
            own = trouble.subject.removeprefix(_ROUTE)
            outbox.add(connection, of_trouble.notice, [name for name in names if name != own], when)
    for night in telling.nights:
        outbox.add(connection, night, [], when)
    day = due_day(when, telling.weekday)
    told_now = [
        notice
        for notice in outbox.load(connection)
        if stored or notice.waiting or notice.notice.kind is not NoticeKind.NEW
    ]
    of_week = known(connection, told_now, telling.boxes, when)
    for weekly, getting in digests(connection, of_week, telling.routes, day, when, telling.links):
        outbox.add(connection, weekly, getting, when)


def _told_elsewhere(trouble: Trouble, stored: Sequence[StoredNotice], when: datetime) -> frozenset[str]:
    """Return the reasons that reports of other boxes have told and not taken back, each as `_kind_of` has it.

    A box counts while it has nights: it will say itself when its reasons are gone.
    """
    if not trouble.reported_by:
        return frozenset()
    last = {notice.notice.subject: notice for notice in stored}
    working = {
        subject.removeprefix(OF_NIGHTS)
        for subject, notice in last.items()
        if notice.notice.kind is NoticeKind.NIGHT and when - notice.happened_at <= WORKING
    }
    return frozenset(
        reason
        for box in working - {trouble.reported_by}
        if (notice := last.get(report_trouble(box))) is not None and notice.notice.kind is NoticeKind.TROUBLE
        for reason in notice.notice.occasion.split()
    )


def _trouble(trouble: Trouble, before: Notice | None, elsewhere: frozenset[str]) -> Found | None:
    """Return what to tell of a trouble: that it is there, has other reasons, or is over; None for nothing.

    Reasons in `elsewhere` are not told, unless they were told of this trouble itself.
    """
    was_told = before.occasion.split() if before is not None and before.kind is NoticeKind.TROUBLE else ()
    about = About(boxes=trouble.boxes)
    own = {_kind_of(reason): reason for reason in trouble.reasons}
    reasons = [reason for kind, reason in own.items() if kind in was_told or kind not in elsewhere]
    if not reasons:
        if not was_told:
            return None
        over = f"Over: {trouble.what} had no problem" + (" of its own" if own else "")
        return Found(Notice(trouble.subject, NoticeKind.OVER, over), about)
    occasion = " ".join(sorted(map(_kind_of, reasons)))
    if occasion.split() == list(was_told):
        return None
    named = [one_line(reason, LONGEST_REASON) for reason in reasons[:MAX_REASONS]]
    more = len(reasons) - MAX_REASONS
    named += [f"and {more} more"] if more > 0 else []
    text = one_line(f"Trouble: {trouble.what}: {'; '.join(named)}; to do: {trouble.advice}")
    return Found(Notice(trouble.subject, NoticeKind.TROUBLE, text, occasion), about)


_ROUTE = "route "


def _of_routes(routes: Sequence[Route], stuck: dict[str, datetime]) -> list[Trouble]:
    found = []
    for route in routes:
        since = stuck.get(route.name)
        reasons = [] if since is None else [f"it has taken nothing since {since:%Y-%m-%d %H:%M} UTC"]
        advice = "./tidemark service test-alert on a box says why"
        found.append(Trouble(f"{_ROUTE}{route.name}", f"the route {route.name}", reasons, advice))
    return found


def _kind_of(reason: str) -> str:
    """Return the same 12 digits for the same reason, whatever its numbers."""
    kind = " ".join(_VARYING.sub("#", reason).split())
    return hashlib.sha256(kind.encode()).hexdigest()[:12]
