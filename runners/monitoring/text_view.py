"""Facts in lines for people, for `status`."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from history.counts import counted
from runners.monitoring.facts import ServiceFacts
from runners.monitoring.history_facts import RECENT_DAYS, HistoryFacts
from runners.nightly.status_text import status_text, task_lines
from runners.retention.pruning import gigabytes


def facts_lines(facts: ServiceFacts) -> list[str]:
    """Return the state first, then what needs somebody, the tasks, and what is known besides."""
    current = facts.current
    tasks = task_lines(facts.history.health, current.at) if facts.history else []
    changes = facts.history.change_lines if facts.history else ()
    waits = [str(waiting) for waiting in facts.stored.waiting]
    first = status_text(current.found, current.at, current.current_pause)
    return [first, *facts.problems, *facts.runners, *waits, *tasks, *_besides(facts), *changes]


def _besides(facts: ServiceFacts) -> Iterator[str]:
    current, limits = facts.current, facts.limits
    if limits is None:  # nothing ever ran, and nobody named a plan
        return
    if current.night_seconds is not None:
        minutes, budget = current.night_seconds / 60, limits.budget_seconds / 60
        yield f"night: {minutes:.0f} minutes, of a budget of {budget:.0f}"
    if facts.history is not None:
        yield from _of_history(facts.history)
    if current.free_bytes is not None:
        sizes = facts.stored.bytes_by_kind
        kinds = [f"{kind} {gigabytes(size)}" for kind, size in sizes.items() if kind != "builds"]
        if "builds" in sizes:
            kinds.insert(0, f"builds {gigabytes(sizes['builds'])} of {gigabytes(limits.builds_bytes)}")
        yield f"disk: {gigabytes(current.free_bytes)} free; {', '.join(kinds)}"
    newest = facts.stored.newest_backup
    if limits.backups:
        copies = f"{counted(facts.stored.backups, 'copy', 'copies')} of the history"
        last = f", the last {_ago(current.at, newest)}" if newest else ""
        beside = "; on the same file system as the history" if limits.backups_beside else ""
        yield f"backups: {copies}{last}{beside}"
    yield f"tidemark {facts.version}, schema {facts.schema}"


def _of_history(found: HistoryFacts) -> Iterator[str]:
    share = found.disturbed_share
    again = "of them measured again because they were disturbed"
    disturbed = "" if share is None else f", {100 * share:.1f} % {again}"
    failed = f", {counted(found.failed_runs, 'failed run')}" if found.failed_runs else ""
    measured = found.rounds + found.disturbed
    yield f"last {RECENT_DAYS} days: {counted(measured, 'round')}{disturbed}{failed}"
    alerted = sum(change.count for change in found.changes if change.is_alerted)
    whole = sum(change.count for change in found.changes)
    yield f"changes: {whole} open, of which {alerted} for the worse and large enough for an issue"
    if found.alerts_waiting:
        since = found.alert_waits_since
        oldest = f", the oldest since {since:%Y-%m-%d %H:%M} UTC" if since else ""
        yield f"alerts: {found.alerts_waiting} wait for the tracker{oldest}"


def _ago(now: datetime, moment: datetime) -> str:
    hours = max(now - moment, timedelta()) / timedelta(hours=1)
    return f"{hours:.0f} hours ago" if hours < 48 else f"{hours / 24:.0f} days ago"
