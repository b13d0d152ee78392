"""From the history to the outbox: the desired state of every issue, as the history is now."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from history.changes import repository
from history.changes.acknowledgements import withdrawn_changes
from history.changes.report import report_changes
from history.series.last_nights import last_nights
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, ClosedAs, DesiredIssue, IssueState
from history.store.bisects import Bisect
from history.store.database import Database
from history.timestamps import now
from runners.alerting.issues.change_issues import (
    issue_of_changes,
    issues_of_changes,
    linked_site,
    needs_issue,
)
from runners.alerting.issues.failure_issues import issues_of_failures


def update_outbox(database: Database, smallest: float, site: str = "") -> None:
    """Set the desired state of all issues.

    `smallest` is the fraction below which a change is not worth a person's time; `site` is the address of the
    report site, to which issues link.
    """
    with database.reading() as connection:
        issues = desired_issues(connection, smallest, alert_outbox.load(connection), site)
    # Written apart from the reading: profiles take a moment, for which another box's night need not wait.
    with database.writing() as connection:
        _set_desired(connection, issues, now())


def update_issue(database: Database, bisect: Bisect) -> bool:
    """Put the verdict of a bisect into the open issue of its change; whether anything is to be sent now.

    The issue keeps its link to the report site: a bisect by hand has no plan that names the address. False
    without a verdict, and for a change that has no open issue.
    """
    if bisect.change is None or bisect.verdict is None:
        return False
    with database.writing() as connection:
        alert = alert_outbox.telling(connection, bisect.change)
        if alert is None or alert.desired.state is not IssueState.OPEN:
            return False
        return _renew(connection, alert, now())


def tell_decision(connection: Connection, change: str, when: datetime) -> bool:
    """Put what a person decided about a change into its issue; whether anything is to be sent now.

    What a person decided in the issue before counts no longer. False for a change without an issue.
    """
    alert = alert_outbox.telling(connection, change)
    if alert is None or alert.issue is None:
        return False
    if alert.muted is not None:
        alert_outbox.unmute(connection, alert, when)
    return _renew(connection, alert, when)


def desired_issues(
    connection: Connection, smallest: float, alerts: Sequence[Alert], site: str = ""
) -> list[DesiredIssue]:
    """The desired state of all issues, from the history and the alerts that there are."""
    told = {
        change for alert in alerts if alert.desired.kind is AlertKind.CHANGE for change in alert.desired.told
    }
    changes = [change for change in repository.load(connection) if needs_issue(change, smallest, told)]
    return [
        *issues_of_changes(report_changes(connection, changes), alerts, site),
        *issues_of_failures(last_nights(connection), alerts),
    ]


def _renew(connection: Connection, alert: Alert, when: datetime) -> bool:
    """Set the desired state of an issue about changes anew; whether anything is to be sent now."""
    changes = [
        change
        for fingerprint in alert.desired.told
        for change in repository.load(connection, fingerprint=fingerprint)
    ]
    if not changes:  # they were pruned
        return False
    group = report_changes(connection, changes)
    issue = issue_of_changes(alert.desired.fingerprint, group, linked_site(alert.desired))
    _set_desired(connection, [issue], when)
    return alert_outbox.load_one(connection, alert.id).is_due


def _set_desired(connection: Connection, issues: Sequence[DesiredIssue], when: datetime) -> None:
    """Set the desired state of alerts. One about changes that are not acknowledged any more is not muted."""
    known = {alert.desired.fingerprint: alert for alert in alert_outbox.load(connection)}
    withdrawn = withdrawn_changes(connection)
    for issue in issues:
        alert = known.get(issue.fingerprint)
        if alert is None or issue.state is not IssueState.OPEN or withdrawn.isdisjoint(issue.told):
            continue
        was = alert.desired
        was_acknowledged = was.state is IssueState.CLOSED and was.closed_as is ClosedAs.NOT_PLANNED
        if alert.muted is not None or was_acknowledged:
            alert_outbox.unmute(connection, alert, when)
    alert_outbox.set_desired(connection, issues, when)
