"""The issues of changes: one for all that changed between the same commits, in a branch and its variants."""

import math
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from build.version import parse_version
from history.changes.level_shift import Direction
from history.changes.report import ChangeReport
from history.changes.repository import Change
from history.series.series import Point
from history.store.alert_outbox import Alert, AlertKind, ClosedAs, DesiredIssue, IssueState
from history.store.records import ChangeStatus
from report import addresses
from runners.alerting.issues.change_texts import PAGE, body, title
from runners.alerting.issues.groups import assign, superseded_issues
from suites.metrics import METRICS

SHOWING_NIGHTS = 2
"""So many nights in a row show a change surely; one of counts does, because they hardly scatter."""


def needs_issue(change: Change, smallest: float, told: Collection[str]) -> bool:
    """Whether an issue says something of a change: one tells it already, or it is for the worse and large.

    `smallest` is the fraction below which a change of what is timed is not worth a person's time; `told` has
    the fingerprints of what alerts tell so far. One for the better is in the summary of a night, and has no
    issue that somebody would have to close.
    """
    if change.fingerprint in told:
        return True
    if change.is_muted:
        return False
    is_worse = change.direction in (Direction.WORSE, Direction.MIXED)
    is_large = any(
        abs(member.ratio - 1) >= METRICS[member.key.metric].threshold(smallest) for member in change.leading
    )
    return is_worse and is_large and change.status is ChangeStatus.OPEN


def issues_of_changes(
    reports: Sequence[ChangeReport], alerts: Sequence[Alert], site: str = ""
) -> Iterator[DesiredIssue]:
    """The issues of changes; `alerts` are those there are, `site` is the address of the report site."""
    of_changes = [alert for alert in alerts if alert.desired.kind is AlertKind.CHANGE]
    groups = _groups(reports, of_changes)
    members = [[report.change.fingerprint for report in group] for group in groups]
    for group, telling in zip(groups, assign(members, of_changes), strict=True):
        alert = telling.alert
        name = group[0].change.fingerprint if alert is None else alert.desired.fingerprint
        issue = issue_of_changes(name, group, site)
        yield issue
        yield from superseded_issues(telling, issue)


def issue_of_changes(fingerprint: str, group: Sequence[ChangeReport], site: str = "") -> DesiredIssue:
    """The issue that tells some changes: open as long as one of them is."""
    ordered = by_importance(group)
    main = ordered[0].change
    is_open = _is_told(main)
    acknowledged = [report.change for report in ordered if report.change.status is ChangeStatus.ACKNOWLEDGED]
    if is_open:
        closing = next(filter(None, map(_ended_decision, ordered)), "")
    elif main.is_muted:
        closing = str(main.muting)
    elif acknowledged:
        closing = _decision(acknowledged[0])
    else:
        closing = main.reason or "it is gone"
    return DesiredIssue(
        fingerprint,
        AlertKind.CHANGE,
        title(ordered),
        body(ordered, site),
        IssueState.OPEN if is_open else IssueState.CLOSED,
        closing,
        ClosedAs.NOT_PLANNED if acknowledged or main.is_muted else ClosedAs.COMPLETED,
        max(filter(None, map(_seen_at, ordered)), default=None),
        tuple(sorted(report.change.fingerprint for report in group)),
        next(filter(None, map(_assignee, ordered)), ""),
    )


def by_importance(group: Sequence[ChangeReport]) -> list[ChangeReport]:
    """Return changes that are told together, the main one first."""
    return sorted(group, key=_importance)


def linked_site(issue: DesiredIssue) -> str:
    """The address of the report site to which the issue of changes links; empty without a link."""
    for line in issue.body.splitlines():
        for change in issue.told:
            end = f"/{addresses.change(change)}>"
            if line.startswith(f"{PAGE}<") and line.endswith(end):
                return line.removeprefix(f"{PAGE}<").removesuffix(end)
    return ""


# --- groups


def _groups(reports: Sequence[ChangeReport], alerts: Sequence[Alert]) -> list[list[ChangeReport]]:
    groups: list[list[ChangeReport]] = []
    for report in reports:
        found = next(
            (group for group in groups if any(_is_one(report, member, alerts) for member in group)), None
        )
        if found is None:
            groups.append([report])
        else:
            found.append(report)
    return groups


def _is_one(report: ChangeReport, other: ChangeReport, alerts: Sequence[Alert]) -> bool:
    """Whether one issue tells two changes.

    They lie between the same commits of a branch, in whatever suites and variants, and nobody has decided
    about one of them; or one issue has told both, and their ranges of nights, which can still move, overlap.
    """
    if _branch(report.change) != _branch(other.change):
        return False
    are_open = report.change.status is other.change.status is ChangeStatus.OPEN
    if are_open and _span(report) == _span(other):
        return True
    both = {report.change.fingerprint, other.change.fingerprint}
    return _overlap(report.change, other.change) and any(both <= set(alert.desired.told) for alert in alerts)


def _branch(change: Change) -> str:
    """The branch without a variant."""
    return change.branch.partition("#")[0]


def _span(report: ChangeReport) -> tuple[str, str]:
    """The commits before and after a change; the versions of a branch that is not from git."""
    nights = (report.change.last_before, report.change.first_after)
    before, after = (
        commit or parse_version(night.version).ref
        for commit, night in zip(report.commits, nights, strict=True)
    )
    return before, after


def _overlap(change: Change, other: Change) -> bool:
    return (
        change.last_before.started_at < other.first_after.started_at
        and other.last_before.started_at < change.first_after.started_at
    )


def _importance(report: ChangeReport) -> tuple[bool, bool, float]:
    """What is open comes first, then the branch itself, then what is largest."""
    change = report.change
    return not _is_told(change), "#" in change.branch, -abs(report.main_series.ratio - 1)


# --- what is known of one


def _is_told(change: Change) -> bool:
    """Whether a change is open, and not muted by the plan."""
    return change.status is ChangeStatus.OPEN and not change.is_muted


def _assignee(report: ChangeReport) -> str:
    """To whom the issue is assigned, as far as a change says; empty for nobody."""
    return next((owner.account for owner in report.change.owners if owner.is_assignee), "")


def _decision(change: Change) -> str:
    """Why a change that is acknowledged is."""
    return str(change.acknowledgements[-1]) if change.acknowledgements else f"acknowledged: {change.reason}"


def _ended_decision(report: ChangeReport) -> str:
    """Why a change that was acknowledged or muted is not any more; empty if its status changed since."""
    change = report.change
    muting = change.muting
    if muting is not None and muting.ended_at is not None and muting.ended_at >= change.updated_at:
        return str(muting)
    latest = change.acknowledgements[-1] if change.acknowledgements else None
    return str(latest) if latest is not None and latest.happened_at == change.updated_at else ""


def _seen_at(report: ChangeReport) -> datetime | None:
    """When the first of the latest nights began that surely show an open change still; None without them."""
    if not _is_told(report.change):
        return None
    count = 1 if METRICS[report.main_series.key.metric].is_counted else SHOWING_NIGHTS
    latest = [point for point in report.later if point.night.measured_at is None][-count:]
    if len(latest) < count or not all(_shows(report, point) for point in latest):
        return None
    return latest[0].night.started_at


def _shows(report: ChangeReport, point: Point) -> bool:
    """Whether a night lies nearer to the level after a change than to that before it."""
    assert point.relative is not None
    before, after = math.log(report.main_series.level_before), math.log(report.main_series.level_after)
    value = math.log(point.relative)
    return abs(value - after) < abs(value - before)
