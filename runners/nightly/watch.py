"""A box whose nights hang, died or stay away: told once, and again when it is well."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from history.rendering.escaping import escaped
from history.store import alert_outbox
from history.store.alert_outbox import AlertKind, IssueState, WantedIssue
from history.store.writer import Store
from runners.nightly.heartbeat import MISSED_HOURS, WELL, State, Status


def judged(found: Status, expected_since: datetime | None, now: datetime) -> State:
    """How the box is. One that never began a night has missed one after as long as others, once installed."""
    overdue = expected_since is not None and now - expected_since > timedelta(hours=MISSED_HOURS)
    return State.MISSED if found.state is State.NEVER and overdue else found.state


def tell(store: Store, box: str, found: Status, state: State, now: datetime) -> None:
    """Put it into the outbox, in words that stay the same as long as the box is like that.

    Each time a box falls silent is an alert of its own, named by its last night: a person who closes one does
    not silence the next. All of the box are closed when it is well.
    """
    with store.database.writing() as connection:
        known = [
            each.wanted for each in alert_outbox.load(connection) if _is_of(each.wanted.fingerprint, box)
        ]
        if state in WELL:
            wanted = [
                replace(each, state=IssueState.CLOSED, closing="a night runs or ended")
                for each in known
                if each.state is IssueState.OPEN
            ]
        else:
            last = found.beat.began_at if found.beat else "never"
            wanted = [
                WantedIssue(
                    f"{_prefix(box)}{_digest(last)}",
                    AlertKind.CRASH,
                    f"box {box}: its night {'is missing' if state is State.MISSED else state}",
                    _body(box, found, state),
                    IssueState.OPEN,
                )
            ]
        alert_outbox.want(connection, wanted, now)


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


def _is_of(fingerprint: str, box: str) -> bool:
    return fingerprint.startswith(_prefix(box))


def _prefix(box: str) -> str:
    return f"box-{_digest(box)}-"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
