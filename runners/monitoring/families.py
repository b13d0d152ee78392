"""The metrics that Prometheus gets, a row each: name, help, labels, and how it is read from the facts.

Names and units follow Prometheus' conventions (https://prometheus.io/docs/practices/naming/): base units, in
the name; moments are timestamps, so that an age is `time() - metric` and grows while nothing writes. All are
gauges: a session that is resumed, or a history that is restored, may lower what is counted. Labels have the
values of an enumeration, or names of the plan; nothing that a program or a person wrote freely becomes one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from history.series.task_states import TaskOutcome
from runners.measuring.failures.cause import MIN_FREE_BYTES
from runners.monitoring.facts import PlannedLimits, ServiceFacts
from runners.monitoring.history_facts import RECENT_DAYS, HistoryFacts
from runners.nightly.health import TaskHealth
from runners.nightly.heartbeat import Beat, State

Sample = tuple[tuple[str, ...], float]
"""The values of the labels, in their order, and the value."""

Found = Iterator[Sample]
Read = Callable[[ServiceFacts], Found]

TASK = ("suite", "profile", "configuration", "tracked")
"""The labels of a task: `tracked` is a branch or a release, as the plan names it."""


@dataclass(frozen=True)
class Family:
    """A metric with all of its samples."""

    name: str
    help: str
    read: Read
    labels: tuple[str, ...] = ()


def _single(value: Callable[[ServiceFacts], float | datetime | None]) -> Read:
    """Read at most one sample, without labels; None gives none."""

    def read(facts: ServiceFacts) -> Found:
        found = value(facts)
        if found is not None:
            yield (), found.timestamp() if isinstance(found, datetime) else float(found)

    return read


def _of_history(value: Callable[[HistoryFacts], float | datetime | None]) -> Read:
    return _single(lambda facts: None if facts.history is None else value(facts.history))


def _of_limits(value: Callable[[PlannedLimits], float]) -> Read:
    return _single(lambda facts: None if facts.limits is None else value(facts.limits))


def _of_beat(value: Callable[[Beat], str | float | None]) -> Read:
    """Read something of the last heartbeat; a text is a time."""

    def found(facts: ServiceFacts) -> float | datetime | None:
        beat = facts.current.found.beat
        value_found = None if beat is None else value(beat)
        return datetime.fromisoformat(value_found) if isinstance(value_found, str) else value_found

    return _single(found)


def _of_tasks(value: Callable[[TaskHealth], float | None]) -> Read:
    def read(facts: ServiceFacts) -> Found:
        tasks = facts.history.health.tasks if facts.history else ()
        values = {_labels_of(task): value(task) for task in tasks}
        yield from ((labels, found) for labels, found in values.items() if found is not None)

    return read


def _labels_of(task: TaskHealth) -> tuple[str, ...]:
    return (task.task.suite, task.task.profile, task.configuration, task.tracked)


def _of_mapping(value: Callable[[ServiceFacts], Mapping[str, float]]) -> Read:
    def read(facts: ServiceFacts) -> Found:
        yield from (((name,), number) for name, number in value(facts).items())

    return read


def _pause_end(facts: ServiceFacts) -> datetime | None:
    pause = facts.current.current_pause
    return None if pause is None else pause.until


def _sessions(facts: ServiceFacts) -> dict[str, float]:
    found = facts.history.sessions if facts.history else {}
    return {str(status): count for status, count in found.items()}


def _outcomes(facts: ServiceFacts) -> dict[str, float]:
    if facts.history is None:
        return {}
    counts = dict.fromkeys(map(str, TaskOutcome), 0.0)
    for task in facts.history.health.tasks:
        if task.state is not None:
            counts[task.state.outcome] += 1
    return counts


def _changes(facts: ServiceFacts) -> Found:
    for change in facts.history.changes if facts.history else ():
        yield (change.direction, "alerted" if change.is_alerted else "minor"), change.count


def _limits(facts: ServiceFacts) -> dict[str, float]:
    return {"builds": facts.limits.builds_bytes} if facts.limits else {}


def _waits_since(facts: ServiceFacts) -> datetime | None:
    return min((waiting.since for waiting in facts.stored.waiting if waiting.since), default=None)


FAMILIES = (
    Family(
        "tidemark_build_info",
        "Always 1; the commit of this Tidemark and the schema of the histories that it writes.",
        lambda facts: iter([((facts.version, str(facts.schema)), 1.0)]),
        ("version", "schema"),
    ),
    Family(
        "tidemark_healthy",
        "1 if nobody has to act, as the exit code of status says, else 0.",
        _single(lambda facts: facts.is_well),
    ),
    Family(
        "tidemark_problems",
        "Problems beside the state and overdue results: a full disk, a history that cannot be read.",
        _single(lambda facts: len(facts.problems)),
    ),
    Family(
        "tidemark_old_runners",
        "GitHub runners on the machine that get no jobs, or soon none, because their release is old.",
        _single(lambda facts: len(facts.runners)),
    ),
    Family(
        "tidemark_state",
        "1 for the state of the nightly service, 0 for all others.",
        _of_mapping(lambda facts: {str(state): float(state is facts.current.found.state) for state in State}),
        ("state",),
    ),
    Family(
        "tidemark_paused",
        "1 while a person has paused the box, else 0.",
        _single(lambda facts: facts.current.current_pause is not None),
    ),
    Family(
        "tidemark_pause_end_timestamp_seconds",
        "When the pause that is in force ends; absent without one.",
        _single(_pause_end),
    ),
    Family(
        "tidemark_heartbeat_timestamp_seconds",
        "When the night last showed progress.",
        _of_beat(lambda beat: beat.beat_at),
    ),
    Family(
        "tidemark_night_start_timestamp_seconds",
        "When the last night began.",
        _of_beat(lambda beat: beat.began_at),
    ),
    Family(
        "tidemark_night_end_timestamp_seconds",
        "When the last night ended; absent while it runs.",
        _of_beat(lambda beat: beat.ended_at),
    ),
    Family(
        "tidemark_night_duration_seconds",
        "How long the last night took, or has taken so far.",
        _single(lambda facts: facts.current.night_seconds),
    ),
    Family(
        "tidemark_night_budget_seconds",
        "The time budget of the box: after it no session begins.",
        _of_limits(lambda limits: limits.budget_seconds),
    ),
    Family(
        "tidemark_report_late",
        "1 if the last report could not be made, else 0.",
        _of_beat(lambda beat: float(bool(beat.late))),
    ),
    Family(
        "tidemark_facts_timestamp_seconds",
        "When the history was last read for these metrics; absent if it could not be read.",
        _of_history(lambda history: history.read_at),
    ),
    Family(
        "tidemark_history_schema",
        "The number of the schema of the history.",
        _of_history(lambda history: history.schema),
    ),
    Family(
        "tidemark_result_timestamp_seconds",
        "When the session of the newest result of a release or branch began; absent without a result.",
        _of_tasks(lambda task: task.newest.measured_at.timestamp() if task.newest else None),
        TASK,
    ),
    Family(
        "tidemark_result_overdue",
        "1 if a result is missing for a reason that needs somebody, else 0.",
        _of_tasks(lambda task: float(task.is_overdue)),
        TASK,
    ),
    Family(
        "tidemark_tasks",
        "Releases and branches in their suites and profiles, by what became of them in the last night.",
        _of_mapping(_outcomes),
        ("outcome",),
    ),
    Family(
        "tidemark_sessions",
        "Sessions of the box in the history, by their status.",
        _of_mapping(_sessions),
        ("status",),
    ),
    Family(
        "tidemark_recent_rounds",
        f"Rounds in sessions of the last {RECENT_DAYS} days, without those that were measured again.",
        _of_history(lambda history: history.rounds),
    ),
    Family(
        "tidemark_recent_disturbed_rounds_ratio",
        f"Share of the rounds in sessions of the last {RECENT_DAYS} days that were disturbed and measured"
        " again, 0 to 1; absent without rounds.",
        _of_history(lambda history: history.disturbed_share),
    ),
    Family(
        "tidemark_recent_failed_runs",
        f"Runs of a version in a round that failed, in sessions of the last {RECENT_DAYS} days.",
        _of_history(lambda history: history.failed_runs),
    ),
    Family(
        "tidemark_open_changes",
        "Open changes in the whole history; alerted are those for the worse that are large enough for an"
        " issue, all others are minor.",
        _changes,
        ("direction", "severity"),
    ),
    Family(
        "tidemark_outbox_alerts",
        "Alerts of the whole history of which the tracker does not have the newest state.",
        _of_history(lambda history: history.alerts_waiting),
    ),
    Family(
        "tidemark_outbox_oldest_timestamp_seconds",
        "Since when the oldest alert that waits has had no issue; absent if each has one.",
        _of_history(lambda history: history.alert_waits_since),
    ),
    Family(
        "tidemark_journal_sessions",
        "Sessions that wait on the box for a history on a server.",
        _single(lambda facts: sum(waiting.sessions for waiting in facts.stored.waiting)),
    ),
    Family(
        "tidemark_journal_rounds",
        "Rounds of these sessions that wait.",
        _single(lambda facts: sum(waiting.rounds for waiting in facts.stored.waiting)),
    ),
    Family(
        "tidemark_journal_oldest_timestamp_seconds",
        "When the oldest of these sessions began; absent without any.",
        _single(_waits_since),
    ),
    Family(
        "tidemark_disk_size_bytes",
        "Size of the disk of the home.",
        _single(lambda facts: facts.current.disk_bytes),
    ),
    Family(
        "tidemark_disk_free_bytes",
        "Free space on the disk of the home.",
        _single(lambda facts: facts.current.free_bytes),
    ),
    Family(
        "tidemark_disk_min_free_bytes",
        "Free space below which nothing can be measured.",
        _single(lambda facts: MIN_FREE_BYTES),
    ),
    Family(
        "tidemark_disk_used_bytes",
        "What builds, copies of loaded data, logs and backups take.",
        _of_mapping(lambda facts: facts.stored.bytes_by_kind),
        ("kind",),
    ),
    Family(
        "tidemark_disk_limit_bytes",
        "What the plan allows them.",
        _of_mapping(_limits),
        ("kind",),
    ),
    Family(
        "tidemark_logs_limit_seconds",
        "Age after which logs are deleted.",
        _of_limits(lambda limits: limits.logs_days * 86400),
    ),
    Family(
        "tidemark_backups",
        "Copies of the history on the box.",
        _single(lambda facts: facts.stored.backups),
    ),
    Family(
        "tidemark_backups_limit",
        "How many copies the plan keeps; 0 keeps none.",
        _of_limits(lambda limits: limits.backups),
    ),
    Family(
        "tidemark_backup_timestamp_seconds",
        "When the newest copy was written; absent without one.",
        _single(lambda facts: facts.stored.newest_backup),
    ),
)
"""All metrics, in the order in which they are written; each has the label `box` besides."""
