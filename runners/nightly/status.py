"""What the service on a box does, and whether its results arrive: lines for people, JSON, metrics, a ping.

Everything is read: neither a history nor a heartbeat is changed. The metrics follow Prometheus' conventions
(https://prometheus.io/docs/practices/naming/): base units, in the name; moments are timestamps, so that an
age is `time() - metric` and grows while nothing writes. All are gauges.
"""

import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from build.files import make_folder, write_atomically
from build.home import Home
from history.backups.rotation import PREFIX, share_a_disk
from history.errors import RESTORE, HistoryError
from history.open import existing_history, open_reader
from history.series.task_states import read_states
from history.spool.journal import Waiting, waiting_in
from history.store import alert_outbox
from history.store.schema_status import newest
from runners.nightly.health import BoxHealth, TaskHealth, box_healths, full_disk
from runners.nightly.heartbeat import State, Status, status
from runners.nightly.plan import Plan, plan_history
from runners.nightly.plan_rules.open_changes import open_change_lines
from runners.occupancy.pause import Pause, last_pause
from runners.own_version import own_version
from runners.retention.pruning import gigabytes

LONGEST_LABEL = 200
"""The most characters of the value of a label in the metrics."""

PING_TRIES, PING_SECONDS = 3, 10.0
"""How often an address is pinged that does not answer, and how long a try and the pause after it take."""


@dataclass(frozen=True)
class ServiceStatus:
    """What is known of the service on a box."""

    box: str
    """The name of the box in the plan; empty while it is unknown."""

    at: datetime
    found: Status
    pause: Pause | None
    """The one that is in force."""

    health: BoxHealth | None
    """What the history knows of its results; None if it cannot be read, or there is no plan."""

    changes: tuple[str, ...]
    """A line for each open change of the whole history, with its owners."""

    alerts_waiting: int
    """Alerts of the whole history of which the tracker does not have the newest state."""

    waiting: tuple[Waiting, ...]
    """What the box has recorded and the history does not have yet."""

    free_bytes: int | None
    """What is free on the disk of the home; None before there is a home."""

    newest_backup: datetime | None
    """When the newest copy of the history was written."""

    backups_beside: bool
    """Whether those copies are on the file system of the history, so that a disk that fails takes both."""

    problems: tuple[str, ...]
    """What needs somebody, beside the state and overdue results, a sentence each."""

    @property
    def is_well(self) -> bool:
        """Whether nobody has to act. Before the first night that is so while the box is paused alone."""
        state = self.found.state
        is_running = state in (State.RUNNING, State.ENDED) or (
            state is State.NEVER and self.pause is not None
        )
        return is_running and not self.problems and (self.health is None or self.health.is_well)

    @property
    def tasks(self) -> tuple[TaskHealth, ...]:
        """The versions and branches that are measured on the box, by suite and profile."""
        return () if self.health is None else self.health.tasks


def heard_of(found: Status, pause: Pause | None) -> dict[str, datetime]:
    """Return by box when this machine was last heard of; as long as it is paused, nobody expects anything."""
    if found.beat is None:
        return {}
    last = datetime.fromisoformat(found.beat.beat_at)
    return {found.beat.box: last if pause is None else max(last, pause.until)}


def service_status(plan: Plan | None, box: str, home: Home, now: datetime) -> ServiceStatus:
    """Return what is known of a box; its history is opened, and never written to.

    Without a plan the history is that of the home, and nothing is expected of the box. That there is none,
    or that it cannot be read, is a problem, unless its first night is running or still to come; so is one
    that knows nothing of the box although a night of it has ended.
    """
    pause = last_pause(home)
    found = status(home.heartbeat, now, None if pause is None else pause.until)
    problems, beat = [full_disk(home.path)], found.beat
    health, changes, alerts = None, list[str](), 0
    history = home.history if plan is None else plan_history(plan, home)
    try:
        target = existing_history(str(history))
        if plan is not None:
            with open_reader(target) as reader, reader.database.reading() as connection:
                (health,) = box_healths(plan, connection, now, [box], heard_of(found, pause))
                changes = list(open_change_lines(plan, connection, now))
                alerts = sum(alert.is_due for alert in alert_outbox.load(connection))
                is_known = any(task.newest for task in health.tasks) or bool(read_states(connection, [box]))
            if beat is not None and beat.box == box and beat.has_recorded and not is_known:
                problems.append(
                    f"a night of {box} has ended, and the history has nothing of it: {target}; {RESTORE}"
                )
    except HistoryError as error:
        is_before_first = found.state in (State.RUNNING, State.NEVER)
        if not is_before_first or any(home.summaries.glob("*.md")):
            problems.append(f"whether results arrive is unknown: {error}")
    try:
        waiting = tuple(waiting_in(home.spool))
    except HistoryError as error:
        waiting = ()
        problems.append(f"what waits on this box is unknown: {error}")
    return ServiceStatus(
        box,
        now,
        found,
        pause if pause is not None and pause.is_in_force(now) else None,
        health,
        tuple(changes),
        alerts,
        waiting,
        _free_bytes(home.path),
        _newest_backup(home.backups),
        share_a_disk(history, home.backups),
        tuple(filter(None, problems)),
    )


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:  # there is no such folder before the first night
        return None


def _newest_backup(folder: Path) -> datetime | None:
    written = []
    for path in folder.glob(f"{PREFIX}*.db"):
        with suppress(OSError):
            written.append(datetime.fromtimestamp(path.lstat().st_mtime, UTC))
    return max(written, default=None)


# --- for people


def status_lines(known: ServiceStatus) -> list[str]:
    """Return the state first, then what needs somebody, the tasks, and what is known besides."""
    tasks = sorted(known.tasks, key=lambda task: not task.is_overdue)
    lines = [
        *state_lines(known.found, known.at, known.pause),
        *known.problems,
        *map(str, known.waiting),
        *(f"{'overdue' if task.is_overdue else 'ok':<8} {task.line(known.at)}" for task in tasks),
    ]
    if known.health is not None:
        if known.alerts_waiting:
            lines.append(f"alerts: {known.alerts_waiting} wait for the tracker")
        if known.free_bytes is not None:
            lines.append(f"disk: {gigabytes(known.free_bytes)} free")
        if known.newest_backup is not None:
            beside = "; on the same file system as the history" if known.backups_beside else ""
            lines.append(f"last backup of the history: {known.newest_backup:%Y-%m-%d %H:%M} UTC{beside}")
        lines.append(f"tidemark {own_version()}, schema {newest()}")
    return [*lines, *known.changes]


def state_lines(found: Status, now: datetime, paused: Pause | None = None) -> Iterator[str]:
    """Yield the state of a box in a few lines, of which the first is about a pause that is in force."""
    beat = found.beat
    if paused is not None:
        yield str(paused)
    if beat is None:
        yield f"{found.state}: no night has started with this output folder"
        return
    yield f"{found.state}: box {beat.box}, night of {_moment(beat.began_at)}"
    if beat.ended_at is not None:
        yield f"ended {_moment(beat.ended_at)}: {beat.outcome}"
    else:
        until = f", until about {beat.ends_at:%H:%M} UTC" if beat.ends_at is not None else ""
        yield f"{beat.what}, since {_moment(beat.since)}{until}"
        ago = (now - datetime.fromisoformat(beat.beat_at)).total_seconds() / 60
        yield f"last heartbeat {ago:.0f} minutes ago, process {beat.process_id}"
        if found.state is State.DEAD:
            yield "the next ./tidemark nightly resumes at its first unfinished step"
    if beat.late:
        yield f"the last report was not made: {beat.late}"
    yield from (f"machine: {note}" for note in beat.notes)


def _moment(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"


# --- for programs


def status_json(known: ServiceStatus) -> dict[str, Any]:
    """Return the status as a value for JSON. Times are ISO-8601 in UTC, sizes in bytes; null is unknown."""
    beat = known.found.beat
    return {
        "state": known.found.state,
        "healthy": known.is_well,
        **({"box": known.box} if known.box else {}),
        **(asdict(beat) if beat else {}),
        "paused": known.pause.as_json() if known.pause else None,
        "problems": list(known.problems),
        "waiting": [str(waiting) for waiting in known.waiting],
        "tasks": [_task_json(task, known.at) for task in known.tasks],
        "changes": list(known.changes),
        "alerts_waiting": known.alerts_waiting,
        "disk_free_bytes": known.free_bytes,
        "newest_backup": known.newest_backup and known.newest_backup.isoformat(),
        "backups_on_the_disk_of_the_history": known.backups_beside,
        "tidemark": {"version": own_version(), "schema": newest()},
    }


def _task_json(health: TaskHealth, now: datetime) -> dict[str, Any]:
    result, state = health.newest, health.state
    return {
        "suite": health.task.suite,
        "profile": health.task.profile,
        "configuration": health.configuration,
        "tracked": health.tracked,
        "newest": result and {"version": result.version, "measured_at": result.measured_at.isoformat()},
        "age_seconds": result and (now - result.measured_at).total_seconds(),
        "outcome": state and state.outcome,
        "since": state and state.since.isoformat(),
        "checked_at": state and state.checked_at.isoformat(),
        "overdue": health.is_overdue,
        "why": health.why,
    }


Sample = tuple[tuple[str, ...], float]
"""The values of the labels, in their order, and the value."""


@dataclass(frozen=True)
class Family:
    """A metric with all of its samples. Labels are names of the plan, or values of an enumeration."""

    name: str
    help: str
    read: Callable[[ServiceStatus], Iterable[Sample]]
    labels: tuple[str, ...] = ()


def _single(read: Callable[[ServiceStatus], float | datetime | None]) -> Callable[..., Iterable[Sample]]:
    """Read at most one sample, without labels; None gives none."""

    def found(known: ServiceStatus) -> Iterator[Sample]:
        value = read(known)
        if value is not None:
            yield (), value.timestamp() if isinstance(value, datetime) else float(value)

    return found


def _of_tasks(read: Callable[[TaskHealth], float | None]) -> Callable[..., Iterable[Sample]]:
    def found(known: ServiceStatus) -> Iterator[Sample]:
        values = {
            (task.task.suite, task.task.profile, task.configuration, task.tracked): read(task)
            for task in known.tasks
        }
        yield from ((labels, value) for labels, value in values.items() if value is not None)

    return found


def _night_end(known: ServiceStatus) -> datetime | None:
    beat = known.found.beat
    return None if beat is None or beat.ended_at is None else datetime.fromisoformat(beat.ended_at)


TASK = ("suite", "profile", "configuration", "tracked")
"""The labels of a task: `tracked` is a branch or a release, as the plan names it."""

FAMILIES = (
    Family(
        "tidemark_healthy",
        "1 if nobody has to act, as the exit code of status says, else 0.",
        _single(lambda known: known.is_well),
    ),
    Family(
        "tidemark_state",
        "1 for the state of the nightly service, 0 for all others.",
        lambda known: [((str(state),), float(state is known.found.state)) for state in State],
        ("state",),
    ),
    Family("tidemark_night_end_timestamp_seconds", "When the last night ended.", _single(_night_end)),
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
        "tidemark_alerts_waiting",
        "Alerts of the whole history of which the tracker does not have the newest state.",
        _single(lambda known: known.alerts_waiting),
    ),
    Family(
        "tidemark_disk_free_bytes",
        "Free space on the disk of the home.",
        _single(lambda known: known.free_bytes),
    ),
    Family(
        "tidemark_backup_timestamp_seconds",
        "When the newest copy of the history was written; absent without one.",
        _single(lambda known: known.newest_backup),
    ),
)
"""All metrics, in the order in which they are written; each has the label `box` besides."""


def prometheus_text(known: ServiceStatus) -> str:
    """Return the metrics of a box in Prometheus' text format, ending with a line end."""
    # Importing it takes a tenth of a second, which only commands of the service need.
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector

    class Metrics(Collector):
        """Hands the families to a registry of our own, which has nothing else."""

        def collect(self) -> Iterable[GaugeMetricFamily]:
            for family in FAMILIES:
                found = GaugeMetricFamily(family.name, family.help, labels=("box", *family.labels))
                for labels, value in family.read(known):
                    found.add_metric([_label(text) for text in (known.box, *labels)], value)
                if found.samples:
                    yield found

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Metrics())
    return generate_latest(registry).decode()


def _label(text: str) -> str:
    """Return a text as the value of a label: half a character is no text in UTF-8."""
    return text[:LONGEST_LABEL].encode("utf-8", "replace").decode()


# --- at the end of a night


def publish_status(plan: Plan, box: str, home: Home, now: datetime, *, is_whole: bool) -> str:
    """Write the metrics and ping, as far as the plan asks for it; return what went wrong, else nothing.

    `is_whole` says whether night and report had no trouble. No night fails because of it: that a ping is
    missing is noticed at its other end.
    """
    address = plan.boxes[box].ping
    if plan.metrics.file is None and address is None:
        return ""
    known = service_status(plan, box, home, now)
    problems = [ping(address, is_well=is_whole and known.is_well)]
    if plan.metrics.file is not None:
        path = home.path / plan.metrics.file
        try:
            make_folder(path.parent)
            write_atomically(path, prometheus_text(known), flush=False)
        except OSError as error:
            problems.append(f"the metrics could not be written: {path}: {error.strerror or error}")
    return "; ".join(filter(None, problems))


def ping(address: str | None, *, is_well: bool, pause: Callable[[float], None] = time.sleep) -> str:
    """Tell a dead man's switch that a night has ended: `address`, or `address/fail` if somebody has to act.

    Return why it did not answer; empty if it did, or if there is no address. The text does not have the
    address: who knows it could ping instead of the box.
    """
    if address is None:
        return ""
    why = ""
    for tried in range(PING_TRIES):
        if tried:
            pause(PING_SECONDS)
        try:
            wanted = address if is_well else f"{address.rstrip('/')}/fail"
            with urllib.request.urlopen(wanted, timeout=PING_SECONDS):
                return ""
        except urllib.error.HTTPError as error:
            why = f"it answers {error.code}"
        except (OSError, ValueError) as error:
            why = type(error).__name__
    return f"the address of ping in the plan was not reached: {why}"


def unreported_boxes(plan: Plan, home: Home, connection: Connection, now: datetime) -> list[str]:
    """Return a line for each box of a plan of which a history has had no sign for too long.

    One that the history has never heard of is left out: it may not be set up yet.
    """
    pause = last_pause(home)
    heard = heard_of(status(home.heartbeat, now), pause)
    return [
        f"box {health.box}: no sign of a night in the history since {health.last_sign:%Y-%m-%d %H:%M} UTC"
        for health in box_healths(plan, connection, now, heard=heard)
        if health.is_silent and health.last_sign is not None
    ]
