"""Facts as JSON, for `status --format json`."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from runners.monitoring.facts import ServiceFacts
from runners.monitoring.history_facts import RECENT_DAYS, HistoryFacts
from runners.nightly.health import TaskHealth


def facts_json(facts: ServiceFacts) -> dict[str, Any]:
    """Return facts as a value for JSON. Times are ISO-8601 in UTC, sizes in bytes; null is unknown."""
    current, stored, limits = facts.current, facts.stored, facts.limits
    pause, beat = current.current_pause, current.found.beat
    history = facts.history
    return {
        "state": current.found.state,
        "healthy": facts.is_well,
        **({"box": facts.box} if facts.box else {}),
        **(asdict(beat) if beat else {}),
        "paused": pause.as_json() if pause else None,
        "waiting": [str(waiting) for waiting in stored.waiting],
        "problems": list(facts.problems),
        "runners": list(facts.runners),
        "tidemark": {"version": facts.version, "schema": facts.schema},
        "night": {"seconds": current.night_seconds, "budget_seconds": limits and limits.budget_seconds},
        "disk": {
            "size_bytes": current.disk_bytes,
            "free_bytes": current.free_bytes,
            "used_bytes": dict(stored.bytes_by_kind),
            "builds_limit_bytes": limits and limits.builds_bytes,
            "logs_limit_days": limits and limits.logs_days,
        },
        "backups": {
            "count": stored.backups,
            "limit": limits and limits.backups,
            "newest": _time(stored.newest_backup),
            "on_file_system_of_history": limits and limits.backups_beside,
        },
        "journal": [
            {"history": waiting.address, "sessions": waiting.sessions, "rounds": waiting.rounds}
            | {"since": _time(waiting.since)}
            for waiting in stored.waiting
        ],
        "history": history and _history(history),
        "tasks": [_task(task) for task in history.health.tasks] if history else [],
        "changes": list(history.change_lines) if history else [],
    }


def _history(found: HistoryFacts) -> dict[str, Any]:
    return {
        "read_at": _time(found.read_at),
        "schema": found.schema,
        "sessions": {str(status): count for status, count in found.sessions.items()},
        "recent": {
            "days": RECENT_DAYS,
            "rounds": found.rounds,
            "disturbed_rounds": found.disturbed,
            "disturbed_share": found.disturbed_share,
            "failed_runs": found.failed_runs,
        },
        "open_changes": [
            {"direction": change.direction, "alerted": change.is_alerted, "count": change.count}
            for change in found.changes
            if change.count
        ],
        "outbox": {"alerts": found.alerts_waiting, "oldest": _time(found.alert_waits_since)},
    }


def _task(health: TaskHealth) -> dict[str, Any]:
    newest, state = health.newest, health.state
    return {
        "suite": health.task.suite,
        "profile": health.task.profile,
        "configuration": health.configuration,
        "tracked": health.tracked,
        "newest": newest and {"version": newest.version, "measured_at": newest.measured_at.isoformat()},
        "outcome": state and state.outcome,
        "since": state and state.since.isoformat(),
        "checked_at": state and state.checked_at.isoformat(),
        "overdue": health.is_overdue,
        "why": health.why,
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
