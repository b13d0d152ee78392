"""To whom an issue is assigned: to the owner of what it tells, as long as people do not decide otherwise."""

from history.store.alert_outbox import Alert
from runners.alerting.tracker import AssigneesRefusedError, Issue, IssueEdit, Tracker


def assign(tracker: Tracker, alert: Alert, issue: Issue) -> str:
    """Assign the issue of an alert as desired, and no longer to the account before.

    Return why the tracker does not do that; empty if it did, or if people have assigned somebody else. The
    body mentions the account all the same. Raises TrackerError for other failures.
    """
    wanted = alert.desired.assignee
    present = tracker.read(issue.number)  # what was sent just now has changed it
    if {name.casefold() for name in present.assignees} - {alert.assigned.casefold(), wanted.casefold()}:
        return ""
    names = (wanted,) if wanted else ()
    if {name.casefold() for name in present.assignees} == {name.casefold() for name in names}:
        return ""
    try:
        after = tracker.edit(present, IssueEdit(assignees=names))
    except AssigneesRefusedError as error:
        return f"the tracker refuses {wanted}, who is mentioned instead: {error.what}"
    if wanted.casefold() in {"", *(name.casefold() for name in after.assignees)}:
        return ""
    return (
        f"the tracker does not assign it to {wanted}, who is mentioned instead: the account may lack access "
        f"to {tracker.repository}, or the token the right to assign"
    )
