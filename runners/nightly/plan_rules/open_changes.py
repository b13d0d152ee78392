"""The open changes of a history in lines for people, and what is to be said of the plan's mutes."""

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import Connection

from history.changes import repository
from history.changes.report import report_changes
from history.changes.rules.mutes import read_notices
from history.rendering.changes import owners_text
from history.store.records import ChangeStatus
from runners.nightly.plan import Plan


def open_change_lines(plan: Plan, connection: Connection, now: datetime) -> Iterator[str]:
    """Yield a line for each open change, with owners and mute, and for each mute that ended or is idle."""
    changes = repository.load(connection, statuses=[ChangeStatus.OPEN])
    for report in report_changes(connection, changes):
        change = report.change
        parts = [f"{change.branch}: {report.headline} ({change.fingerprint})"]
        parts.append(f"found {change.found_at:%Y-%m-%d}")
        if change.owners:
            parts.append(owners_text(change.owners))
        if change.is_muted:
            parts.append(str(change.muting))
        yield f"{'muted' if change.is_muted else 'open':<8} {', '.join(parts)}"
    yield from read_notices(connection, plan.mute_rules(), now)
