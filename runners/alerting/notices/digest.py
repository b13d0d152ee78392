"""The digest of a week: what is open and for how long, and what nights did; also when all is well.

Routes that are about different suites, branches, boxes or sizes get different digests. All of them list what
is within that, also of kinds that a route asks for in no other message.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from sqlalchemy import Connection

from history.counts import counted
from history.escaping.characters import one_line
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, IssueState
from runners.alerting.notices.of_alerts import OF_ALERT, Links, about_of, open_line, subject_of
from runners.alerting.notices.outbox import Notice, NoticeKind, StoredNotice
from runners.alerting.notices.routes import About, Route

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""In the order of `datetime.date.weekday`."""

WEEK = timedelta(days=7)

MAX_LISTED = 30
"""The most open changes and troubles that are listed, each; the rest is counted."""

LONGEST_REASON = 160
"""Characters of what a failed night says of itself."""

OF_NIGHT = "night "
"""How the subjects of what is wrong with nights begin."""

OF_NIGHTS = "nights "
"""How the subjects of what nights did begin."""

MEASURED, NOTHING_NEW, FAILED = "measured", "nothing new", "failed"
"""The occasions of notices of nights, the best first."""


def due_day(when: datetime, weekday: str) -> date:
    """Return the latest day on which a digest was due: this one, or one of the six before."""
    return when.date() - timedelta(days=(when.weekday() - WEEKDAYS.index(weekday)) % 7)


@dataclass(frozen=True)
class DigestContents:
    """What digests are made of."""

    alerts: Sequence[Alert]
    """Those that are open, and told."""

    stored: Sequence[StoredNotice]
    """All notices, in order."""

    week: Sequence[StoredNotice]
    """Those of the last 7 days."""

    about: Mapping[str, About]
    """What notices of alerts are about, by their subject."""

    boxes: Sequence[str]

    def within(self, route: Route) -> "DigestContents":
        """Return what is within that which a route is about."""
        return replace(
            self,
            alerts=[alert for alert in self.alerts if route.covers(self.about[subject_of(alert)])],
            stored=[stored for stored in self.stored if route.covers(self._about(stored))],
            week=[stored for stored in self.week if route.covers(self._about(stored))],
            boxes=[box for box in self.boxes if route.covers(About(boxes=[box]))],
        )

    def _about(self, stored: StoredNotice) -> About:
        subject = stored.notice.subject
        box = subject.removeprefix(OF_NIGHT) if subject.startswith(OF_NIGHT) else ""
        return self.about.get(subject, About(boxes=[box] if box else ()))


def known(
    connection: Connection, stored: Sequence[StoredNotice], boxes: Sequence[str], when: datetime
) -> DigestContents:
    """Return what digests are made of. `stored` are all notices, in order, and `boxes` those of the plan."""
    week = [notice for notice in stored if when - notice.happened_at <= WEEK]
    subjects = {notice.notice.subject for notice in week}
    alerts = alert_outbox.load(connection)
    told = [
        alert
        for alert in alerts
        if alert.desired.state is IssueState.OPEN
        and alert.muted is None
        and alert.desired.kind is not AlertKind.SUMMARY
    ]
    about = {
        subject_of(alert): about_of(connection, alert, boxes)
        for alert in alerts
        if alert in told or subject_of(alert) in subjects
    }
    return DigestContents(told, stored, week, about, boxes)


def digests(
    connection: Connection,
    known: DigestContents,
    routes: Sequence[Route],
    day: date,
    when: datetime,
    links: Links,
) -> Iterator[tuple[Notice, Sequence[str]]]:
    """Yield the digests that were due on a day with the routes that get each; none if they were told."""
    told = {notice.notice.occasion for notice in known.stored if notice.notice.kind is NoticeKind.DIGEST}
    if any(occasion >= day.isoformat() for occasion in told):
        return
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for route in routes:
        if NoticeKind.DIGEST in route.kinds:
            of_route = known.within(route)
            lines = [*_open(connection, of_route, when, links), *_nights(of_route)]
            alike["\n".join(lines)].append(route.name)
    for text, names in alike.items():
        yield Notice("digest", NoticeKind.DIGEST, text, day.isoformat()), names


def _open(connection: Connection, known: DigestContents, when: datetime, links: Links) -> Iterator[str]:
    changes = [alert for alert in known.alerts if alert.desired.kind is AlertKind.CHANGE]
    troubles = [alert for alert in known.alerts if alert.desired.kind is not AlertKind.CHANGE]
    kinds = [stored.notice.kind for stored in known.week]
    lasting = _lasting(known.stored)
    new, returned, fixed = (
        kinds.count(kind) for kind in (NoticeKind.NEW, NoticeKind.RETURNED, NoticeKind.FIXED)
    )
    yield (
        f"Week to {when:%Y-%m-%d}: {counted(len(changes), 'change')} open, "
        f"{counted(len(troubles) + len(lasting), 'trouble')} open; in these 7 days {new} new, "
        f"{returned} returned, {fixed} fixed."
    )
    for several in (changes, troubles):
        oldest_first = sorted(several, key=lambda alert: alert.created_at)
        yield from (_listed(connection, alert, when, links) for alert in oldest_first[:MAX_LISTED])
        if len(several) > MAX_LISTED:
            yield f"- and {len(several) - MAX_LISTED} more: ./tidemark history changes"
    yield from (f"- since {trouble.happened_at:%Y-%m-%d}: {trouble.notice.text}" for trouble in lasting)


def _lasting(stored: Sequence[StoredNotice]) -> list[StoredNotice]:
    """Return the troubles of nights, reports and routes that are not over."""
    last = {notice.notice.subject: notice for notice in stored}
    return [
        notice
        for subject, notice in last.items()
        if notice.notice.kind is NoticeKind.TROUBLE and not subject.startswith(OF_ALERT)
    ]


def _listed(connection: Connection, alert: Alert, when: datetime, links: Links) -> str:
    days = (when - alert.created_at).days
    age = f"for {counted(days, 'day')}" if days else "since today"
    return f"- open {age}: {open_line(connection, alert, links)}"


def _nights(known: DigestContents) -> Iterator[str]:
    """Yield a line for each box: in how many days it had a night, and what became of them."""
    for box in known.boxes:
        days: defaultdict[date, set[str]] = defaultdict(set)
        failed = {}
        for stored in known.week:
            if stored.notice.kind is NoticeKind.NIGHT and stored.notice.subject == nights_of(box):
                days[stored.happened_at.date()].add(stored.notice.occasion)
                if stored.notice.occasion == FAILED:
                    failed[stored.happened_at.date()] = stored.notice.text
        if not days:
            yield f"Box {box}: no night in 7 days. Is it on? ./tidemark status on the box says more."
            continue
        measured = sum(MEASURED in outcomes for outcomes in days.values())
        line = f"Box {box}: {counted(len(days), 'day')} of 7 with a night, {measured} with new results"
        if failed:
            last = max(failed)
            line += f"; failed on {counted(len(failed), 'day')}, last {last:%Y-%m-%d}: "
            line += one_line(failed[last], LONGEST_REASON)
        yield line.rstrip(".") + "."


def nights_of(box: str) -> str:
    """Return the subject of the notices of what the nights of a box did."""
    return f"{OF_NIGHTS}{box}"


def night_trouble(box: str) -> str:
    """Return the subject of the notices of what is wrong with the nights of a box."""
    return f"{OF_NIGHT}{box}"


def report_trouble(box: str) -> str:
    """Return the subject of the notices of what is wrong with the reports of a box."""
    return f"report {box}"


def night_notice(box: str, outcome: str, *, measured: bool, failed: bool) -> Notice:
    """Return what the next digest reads of a night: its outcome in one line."""
    occasion = FAILED if failed else MEASURED if measured else NOTHING_NEW
    return Notice(nights_of(box), NoticeKind.NIGHT, one_line(outcome), occasion)
