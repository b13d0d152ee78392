"""At most so many new issues in a night: the other alerts are listed in one issue, a summary."""

from collections.abc import Sequence
from datetime import datetime

from history.escaping.markdown import joined, md
from history.store import alert_outbox
from history.store.alert_outbox import Alert, AlertKind, DesiredIssue, IssueState
from history.store.database import Database

SUMMARY_TITLE = "Several changes of performance in one night"


def limit_new_issues(database: Database, most_new: int, moment: datetime) -> None:
    """Move what exceeds the limit to a summary; changes come first."""
    new = [
        alert
        for alert in _alerts(database)
        if alert.is_due
        and alert.issue is None
        and alert.asked_state is None
        and alert.attempts == 0
        and alert.desired.kind is not AlertKind.SUMMARY
    ]
    by_importance = sorted(new, key=lambda alert: alert.desired.kind is not AlertKind.CHANGE)
    kept = {alert.id for alert in by_importance[:most_new]}
    excess = [alert for alert in new if alert.id not in kept]
    if not excess:
        return
    name = f"summary-{moment:%Y%m%d-%H%M%S}"
    with database.writing() as connection:
        for alert in excess:
            alert_outbox.move_to_summary(connection, alert, name)
        summary = DesiredIssue(name, AlertKind.SUMMARY, SUMMARY_TITLE, md(""), IssueState.OPEN)
        alert_outbox.set_desired(connection, [summary], moment)


def update_summaries(database: Database, moment: datetime) -> None:
    """Set the desired state of all summaries, as the alerts that they list are now."""
    alerts = _alerts(database)
    summaries = [
        _summary(
            alert.desired, [other.desired for other in alerts if other.summary == alert.desired.fingerprint]
        )
        for alert in alerts
        if alert.desired.kind is AlertKind.SUMMARY
    ]
    if summaries:
        with database.writing() as connection:
            alert_outbox.set_desired(connection, summaries, moment)


def _summary(summary: DesiredIssue, listed: Sequence[DesiredIssue]) -> DesiredIssue:
    """A summary as it should be, with a checked box for every alert that is closed."""
    open_ones = [issue for issue in listed if issue.state is IssueState.OPEN]
    boxes = {IssueState.OPEN: md("- [ ] "), IssueState.CLOSED: md("- [x] ")}
    lines = (md("{}{}", boxes[issue.state], issue.title) for issue in listed)
    return DesiredIssue(
        summary.fingerprint,
        AlertKind.SUMMARY,
        summary.title,
        joined(["Too many in one night for an issue each:", "", *lines]),
        IssueState.OPEN if open_ones else IssueState.CLOSED,
        "" if open_ones else "all of them are gone",
        seen_at=max((issue.seen_at for issue in open_ones if issue.seen_at), default=None),
    )


def _alerts(database: Database) -> tuple[Alert, ...]:
    with database.reading() as connection:
        return alert_outbox.load(connection)
