"""From the outbox of notices to routes: in order, and again with the next delivery if a service is away.

A notice is recorded as sent after its service took it: whoever is killed in between sends it again
(docs/decisions/0083-notices-at-least-once.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from history.counts import counted
from history.store.database import Database
from runners.alerting.notices import apprise_urls, outbox
from runners.alerting.notices.apprise_urls import RouteError
from runners.alerting.notices.outbox import NoticeKind, StoredNotice
from runners.alerting.notices.routes import Route

OLD = timedelta(days=3)
"""Notices that have waited for so long are joined into one message."""

MAX_SINGLE = 10
"""The most notices of a delivery that have a message of their own; what came before these is joined."""

MAX_JOINED = 40
"""The most lines of a joined message."""

STUCK = timedelta(hours=24)
"""How long a notice may wait before the other routes are told that this one gets nothing."""

TITLES = {
    NoticeKind.NEW: "Tidemark: a change is new",
    NoticeKind.RETURNED: "Tidemark: a change has returned",
    NoticeKind.CONFIRMED: "Tidemark: a change is confirmed",
    NoticeKind.FIXED: "Tidemark: a change is gone",
    NoticeKind.TROUBLE: "Tidemark: the service needs somebody",
    NoticeKind.OVER: "Tidemark: a trouble is over",
    NoticeKind.DIGEST: "Tidemark: the week",
}
"""Subjects of mails, and what chats show above the line."""


@dataclass(frozen=True)
class _Message:
    title: str
    text: str
    tells: tuple[StoredNotice, ...]


def send_waiting(database: Database, routes: Sequence[Route], when: datetime) -> list[str]:
    """Send what waits for routes; return what went wrong, a line for each route.

    After a failure a route is not asked again in this delivery, so that the order stays.
    """
    problems = []
    for route in routes:
        with database.reading() as connection:
            rows = [stored for stored in outbox.waiting(connection) if route.name in stored.waiting]
        done = 0
        try:
            address = route.address()
            for message in _messages(rows, when):
                apprise_urls.send(address, message.title, message.text, route.where)
                with database.writing() as connection:
                    outbox.mark_sent(connection, message.tells, route.name)
                done += len(message.tells)
        except RouteError as error:
            left = rows[done:]
            since = f"; waiting since {left[0].happened_at:%Y-%m-%d %H:%M} UTC" if left else ""
            problems.append(f"{route.where}: {counted(len(left), 'notice')} not sent{since}: {error}")
    return problems


def _sent(route: Route, title: str, text: str) -> RouteError | None:
    """Send a message; return why it did not arrive, None if it did."""
    try:
        apprise_urls.send(route.address(), title, text, route.where)
    except RouteError as error:
        return error
    return None


def send_test(routes: Sequence[Route], box: str, when: datetime) -> dict[str, RouteError | None]:
    """Send a message to each route; return why it did not arrive, None where it did."""
    text = f"Sent by ./tidemark service test-alert on box {box} at {when:%Y-%m-%d %H:%M} UTC. Nothing to do."
    return {route.name: _sent(route, "Tidemark: a test", text) for route in routes}


def stuck_routes(database: Database, routes: Sequence[Route], when: datetime) -> dict[str, datetime]:
    """Return the routes for which a notice has waited too long, with since when."""
    with database.reading() as connection:
        rows = outbox.waiting(connection)
    oldest = {
        route.name: min((stored.happened_at for stored in rows if route.name in stored.waiting), default=when)
        for route in routes
    }
    return {name: since for name, since in oldest.items() if when - since > STUCK}


def _messages(rows: Sequence[StoredNotice], when: datetime) -> Iterator[_Message]:
    """Yield the messages for some notices: what is old in one of them, then one each."""
    single = [stored for stored in rows if when - stored.happened_at <= OLD][-MAX_SINGLE:]
    first = rows.index(single[0]) if single else len(rows)
    joined, rest = rows[:first], rows[first:]
    if len(joined) == 1:
        joined, rest = (), rows
    if joined:
        yield _joined(joined)
    for stored in rest:
        yield _Message(TITLES[stored.notice.kind], stored.notice.text, (stored,))


def _joined(rows: Sequence[StoredNotice]) -> _Message:
    digests = [stored for stored in rows if stored.notice.kind is NoticeKind.DIGEST][-1:]
    told = [stored for stored in rows if stored.notice.kind is not NoticeKind.DIGEST]
    lines = [f"{stored.happened_at:%Y-%m-%d} {stored.notice.text}" for stored in told[:MAX_JOINED]]
    if len(told) > MAX_JOINED:
        lines.append(f"and {len(told) - MAX_JOINED} more: ./tidemark history changes")
    lines += [stored.notice.text for stored in digests]
    days = f"{rows[0].happened_at:%Y-%m-%d} to {rows[-1].happened_at:%Y-%m-%d}"
    return _Message(f"Tidemark: {counted(len(rows), 'notice')} of {days}", "\n".join(lines), tuple(rows))
