"""What people are told of alerts: a line when one is new, has returned, is confirmed, or is over.

Issues are grouped by cause, so that lines are too. What a person decided in an issue is known to that person.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from history.changes import repository
from history.changes.report import ChangeReport, report_changes
from history.escaping.characters import one_line
from history.rendering.changes import counted_rounds, occasion, owners_text
from history.rendering.commands import change_search
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, ClosedAs, IssueState
from history.store.schema import series
from report import addresses
from runners.alerting.issues.box_names import box_prefix
from runners.alerting.issues.change_issues import by_importance
from runners.alerting.notices.outbox import Notice, NoticeKind
from runners.alerting.notices.routes import About

HASH = 12
"""Characters of a commit."""

CONFIRMED = "confirmed"
"""The occasion of a notice of a change that was measured again by then."""

OF_ALERT = "alert "
"""How the subjects of notices of alerts begin."""

_TELLING = (NoticeKind.NEW, NoticeKind.RETURNED, NoticeKind.CONFIRMED, NoticeKind.TROUBLE)
"""The kinds after which something is over."""

_ADVICE = {
    AlertKind.BUILD: "read the log of the compile; it is tried again when the branch moves",
    AlertKind.CRASH: "./tidemark status on the box, then docs/hardware.md",
}


@dataclass(frozen=True)
class Found:
    """A notice that is to be added."""

    notice: Notice
    about: About
    since: datetime | None = None
    """When its alert was created; None for what is not about an alert."""


@dataclass(frozen=True)
class Links:
    """Where people read more."""

    issue: Callable[[str, int], str]
    """From a repository and the number of an issue in it to its address."""

    site: str = ""
    """The address of the report site; empty without one."""


def notices_of_alerts(
    connection: Connection, told: Mapping[str, Notice], links: Links, boxes: Sequence[str]
) -> Iterator[Found]:
    """Yield what is to be told of alerts, as the history is now.

    `told` is what was told of each subject, `boxes` are those of the plan.
    """
    alerts = alert_outbox.load(connection)
    for alert in alerts:
        before = told.get(subject_of(alert))
        was_told = before is not None and before.kind in _TELLING
        is_open = alert.desired.state is IssueState.OPEN
        if alert.muted or alert.desired.kind is AlertKind.SUMMARY or not (is_open or was_told):
            continue
        if not is_open and alert.desired.closed_as is not ClosedAs.COMPLETED:
            continue
        if alert.desired.kind is AlertKind.CHANGE:
            yield from _of_changes(connection, alert, before, links)
        elif is_open != was_told:
            yield _of_failure(connection, alert, links, boxes)


def subject_of(alert: Alert) -> str:
    """Return the subject of the notices of an alert."""
    return f"{OF_ALERT}{alert.desired.fingerprint}"


def about_of(connection: Connection, alert: Alert, boxes: Collection[str]) -> About:
    """Return what an alert is about; `boxes` are those of the plan."""
    if alert.desired.kind is not AlertKind.CHANGE:
        return _about_failure(connection, alert, boxes)
    group = _group(connection, alert)
    return _about(group) if group else About()  # they were pruned


def open_line(connection: Connection, alert: Alert, links: Links) -> str:
    """Return what an open alert is about in one line, with where to read more."""
    group = _group(connection, alert) if alert.desired.kind is AlertKind.CHANGE else ()
    what = _what(group) if group else alert.desired.title
    return "; ".join(filter(None, (one_line(what), _owners(group), _link(alert, group, links))))


def _of_changes(connection: Connection, alert: Alert, before: Notice | None, links: Links) -> Iterator[Found]:
    is_open = alert.desired.state is IssueState.OPEN
    was_told = before is not None and before.kind in _TELLING
    if is_open and was_told and before is not None and before.occasion == CONFIRMED:
        return
    group = _group(connection, alert)
    if not group:  # they were pruned
        return
    confirmation = group[0].confirmation
    is_confirmed = confirmation is not None
    if is_open and was_told and not is_confirmed:
        return
    if not is_open:
        kind = NoticeKind.FIXED
    elif was_told:
        kind = NoticeKind.CONFIRMED
    else:
        kind = NoticeKind.NEW if before is None else NoticeKind.RETURNED
    link = _link(alert, group, links)
    parts = [_what(group), _between(group[0])]
    if is_open:
        parts += [_confirmed(group[0]), _owners(group), link, _advice(group[0], link)]
    else:
        parts += [
            f"it is gone: {alert.desired.closing or 'later nights do not show it'}",
            link,
            "nothing to do",
        ]
    told = CONFIRMED if is_confirmed and is_open else ""
    yield Found(Notice(subject_of(alert), kind, _line(kind, parts), told), _about(group), alert.created_at)


def _of_failure(connection: Connection, alert: Alert, links: Links, boxes: Sequence[str]) -> Found:
    is_open = alert.desired.state is IssueState.OPEN
    kind = NoticeKind.TROUBLE if is_open else NoticeKind.OVER
    if is_open:
        parts = [alert.desired.title, _link(alert, (), links), f"to do: {_ADVICE[alert.desired.kind]}"]
    else:
        parts = [alert.desired.title, alert.desired.closing, "nothing to do"]
    about = _about_failure(connection, alert, boxes)
    return Found(Notice(subject_of(alert), kind, _line(kind, parts)), about, alert.created_at)


def _about_failure(connection: Connection, alert: Alert, boxes: Collection[str]) -> About:
    # A box that was taken out of the plan is in the history still.
    known = {*boxes, *connection.execute(select(series.c.box).distinct()).scalars()}
    return About(boxes=[box for box in known if alert.desired.fingerprint.startswith(box_prefix(box))])


# --- parts of a line


def _line(kind: NoticeKind, parts: Sequence[str]) -> str:
    return one_line(f"{kind.capitalize()}: {'; '.join(filter(None, parts))}")


def _group(connection: Connection, alert: Alert) -> Sequence[ChangeReport]:
    """Return the changes that an alert tells, the main one first."""
    changes = [
        change
        for fingerprint in alert.desired.told
        for change in repository.load(connection, fingerprint=fingerprint)
    ]
    return by_importance(report_changes(connection, changes))


def _what(group: Sequence[ChangeReport]) -> str:
    """Return branch, suite, boxes, by how much with the interval, and how many other changes."""
    change, main = group[0].change, group[0].main_series
    boxes = sorted({member.key.environment.box for member in change.members})
    size = f"{100 * (main.ratio_low - 1):+.1f} to {100 * (main.ratio_high - 1):+.1f} %"
    more = f", and {len(group) - 1} more between the same commits" if len(group) > 1 else ""
    where = f"{change.branch}, {change.suite} on {', '.join(boxes)}"
    return f"{where}: {group[0].headline} ({size}){more}"


def _between(report: ChangeReport) -> str:
    old, new = report.commits
    change = report.change
    if old and new:
        return f"between {old[:HASH]} and {new[:HASH]}"
    before, after = (_short(night.version) for night in (change.last_before, change.first_after))
    return f"between {before} and {after}"


def _short(version: str) -> str:
    """Return a commit without its engine, anything else as it is."""
    return version.partition("@git:")[2] or version


def _confirmed(report: ChangeReport) -> str:
    found = report.confirmation
    return "" if found is None else f"{occasion(found)} by {counted_rounds(found)}"


def _owners(group: Sequence[ChangeReport]) -> str:
    """Return whose the changes are; empty where the plan names nobody."""
    owners = tuple(dict.fromkeys(owner for report in group for owner in report.change.owners))
    return one_line(owners_text(owners)) if owners else ""


def _advice(report: ChangeReport, link: str) -> str:
    """Return what to do; without a page that has it, the command itself."""
    if link:
        return "to do: find the commit by the command there, or label the issue acknowledged"
    commands = [line for line in change_search(report) if not line.startswith("#")]
    shown = f"./tidemark history acknowledge {report.change.fingerprint} if it is wanted"
    return f"to do: {commands[0]}, or {shown}" if commands else f"to do: {shown}"


def _link(alert: Alert, group: Sequence[ChangeReport], links: Links) -> str:
    """Return the address of the issue, else of the change's page; empty without both."""
    if alert.issue is not None and alert.repository is not None:
        return links.issue(alert.repository, alert.issue)
    if links.site and group:
        return f"{links.site.rstrip('/')}/{addresses.change(group[0].change.fingerprint)}"
    return ""


def _about(group: Sequence[ChangeReport]) -> About:
    members = [member for report in group for member in report.change.leading]
    return About(
        suites={report.change.suite for report in group},
        branches={report.change.branch.partition("#")[0] for report in group},
        boxes={member.key.environment.box for member in members},
        percent=max(100 * abs(member.ratio - 1) for member in members),
        is_confirmed=any(report.confirmation is not None for report in group),
    )
