"""From the history to the outbox: the desired state of every issue, as the history is now."""

from collections.abc import Mapping

from sqlalchemy import Connection

from history.changes import repository
from history.changes.report import report_changes
from history.series.last_nights import last_nights
from history.store import alert_outbox
from history.store.alert_outbox import Alert, DesiredIssue, IssueState
from history.store.bisects import Bisect
from history.store.database import Database
from history.store.records import ChangeStatus
from history.timestamps import now
from runners.alerting.desired_issues import (
    issue_of_change,
    issues_of_builds,
    issues_of_crashes,
    linked_site,
    needs_issue,
)


def update_outbox(database: Database, smallest: float, site: str = "") -> None:
    """Set the desired state of all issues.

    `smallest` is the fraction below which a change is not worth a person's time; `site` is the address of the
    report site, to which issues link.
    """
    with database.reading() as connection:
        issues = desired_issues(connection, smallest, alert_outbox.desired_states(connection), site)
    # Written apart from the reading: profiles take a moment, for which another box's night need not wait.
    with database.writing() as connection:
        alert_outbox.set_desired(connection, issues, now())


def update_issue(database: Database, bisect: Bisect) -> bool:
    """Put the verdict of a bisect into the open issue of its change; whether anything is to be sent now.

    The issue keeps its link to the report site: a bisect by hand has no plan that names the address. False
    without a verdict, and for a change that has no open issue.
    """
    fingerprint = bisect.change
    if fingerprint is None or bisect.verdict is None:
        return False
    with database.writing() as connection:
        if alert_outbox.desired_states(connection).get(fingerprint) is not IssueState.OPEN:
            return False
        changes = [
            change
            for change in repository.load(connection, fingerprint=fingerprint)
            if change.status is not ChangeStatus.ACKNOWLEDGED
        ]
        site = linked_site(_alert(connection, fingerprint).desired)
        issues = [issue_of_change(report, site) for report in report_changes(connection, changes)]
        alert_outbox.set_desired(connection, issues, now())
        return _alert(connection, fingerprint).is_due


def _alert(connection: Connection, fingerprint: str) -> Alert:
    return next(alert for alert in alert_outbox.load(connection) if alert.desired.fingerprint == fingerprint)


def desired_issues(
    connection: Connection, smallest: float, known: Mapping[str, IssueState], site: str = ""
) -> list[DesiredIssue]:
    """The desired state of all issues. `known` has that of all alerts so far, by fingerprint."""
    changes = [change for change in repository.load(connection) if needs_issue(change, smallest, known)]
    nights = last_nights(connection)
    return [
        *(issue_of_change(report, site) for report in report_changes(connection, changes)),
        *issues_of_builds(nights, known),
        *issues_of_crashes(nights, known),
    ]
