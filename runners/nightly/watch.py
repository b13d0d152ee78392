"""A box whose nights hang, died or stay away: an alert for every such time, closed when the box is well."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from history.escaping.characters import one_line
from history.escaping.markdown import escaped
from history.store import alert_outbox
from history.store.alert_outbox import AlertKind, DesiredIssue, IssueState
from history.store.writer import Store
from runners.nightly.heartbeat import MISSED_HOURS, WELL, State, Status


def judged(found: Status, expected_since: datetime | None, now: datetime) -> State:
    """The state of a box. One that never began a night has missed one MISSED_HOURS after it was installed."""
    overdue = expected_since is not None and now - expected_since > timedelta(hours=MISSED_HOURS)
    return State.MISSED if found.state is State.NEVER and overdue else found.state


def update_outbox(store: Store, box: str, found: Status, state: State, now: datetime) -> None:
    """Set the desired state of the issues of a box; their text stays the same as long as the state does.

    Every time that a box falls silent is an alert of its own, identified by its last night, so that a person
    who closes one issue does not mute the next. All of them are closed when the box is well.
    """
    with store.database.writing() as connection:
        known = [
            alert.desired
            for alert in alert_outbox.load(connection)
            if alert.desired.fingerprint.startswith(_prefix(box))
        ]
        if state in WELL:
            issues = [
                replace(issue, state=IssueState.CLOSED, closing="a night runs or ended")
                for issue in known
                if issue.state is IssueState.OPEN
            ]
        else:
            issues = [_issue(box, found, state)]
        alert_outbox.set_desired(connection, issues, now)


def _issue(box: str, found: Status, state: State) -> DesiredIssue:
    last_night = found.beat.began_at if found.beat else "never"
    return DesiredIssue(
        f"{_prefix(box)}{_digest(last_night)}",
        AlertKind.CRASH,
        one_line(f"box {box}: its night {'is missing' if state is State.MISSED else state}"),
        _body(box, found, state),
        IssueState.OPEN,
    )


def _body(box: str, found: Status, state: State) -> str:
    beat = found.beat
    lines = [f"Box **{escaped(box)}**: {state}."]
    if beat is None:
        lines.append("No night has begun since it was installed.")
    elif beat.ended_at is not None:
        lines.append(
            f"The last night began at {beat.began_at} and ended at {beat.ended_at}: {escaped(beat.outcome)}."
        )
    else:
        lines.append(f"The night of {beat.began_at} was at this since {beat.since}: {escaped(beat.what)}.")
    steps = ["./tidemark status", "systemctl --failed", "systemctl list-timers 'tidemark-*'"]
    steps.append("journalctl -u tidemark-nightly --since -2d")
    shown = "\n".join(f"    {each}" for each in steps)
    return "\n\n".join([*lines, f"On the box:\n\n{shown}", "docs/hardware.md says what to do."]) + "\n"


def _prefix(box: str) -> str:
    return f"box-{_digest(box)}-"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
