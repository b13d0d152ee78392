"""The heartbeat of the nightly service: a small file with what it is doing, for `./tidemark status`."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from build.files import json_value
from build.home import Home
from build.progress import Progress, ProgressTask
from history.store.process import ProcessIdentity, is_alive, this_process
from runners.measuring.machine_lock import holds

BEAT_SECONDS = 1.0
"""The least seconds between two writes of the file, except for changes of the activity."""

STALE_MINUTES = 30.0
"""A night without a heartbeat for this long hangs: every part of a compile or a suite reports more often."""

MAX_AMOUNT = 1e15
"""The most of an activity, in units of its own."""

MISSED_HOURS = 26.0
"""A box whose last night ended this long ago has missed one; two hours are allowed for a late night."""


@dataclass(frozen=True)
class Beat:
    """The content of a heartbeat. Times are ISO-8601 in UTC."""

    box: str
    what: str
    began_at: str
    """When the night began."""

    since: str
    """When the current activity began."""

    beat_at: str
    done: float
    total: float | None
    """The amount of the current activity, in units of its own."""

    process_id: int
    start_ticks: int
    boot_id: str
    ended_at: str | None = None
    outcome: str = ""
    """The outcome of a night that ended, in one line."""

    failed: bool = False
    """Whether an error ended the night."""

    notes: Sequence[str] = ()
    """What the last report said of the machine itself, a sentence each."""

    is_backfill: bool = False
    """Whether only past commits are measured, so that this is not the night of a day."""

    late: str = ""
    """Why the last report was not made; empty when it was."""

    plan: str = ""
    """The path of the plan of the night."""

    @property
    def has_recorded(self) -> bool:
        """Whether the night has ended, so that the history knows of it; not one of past commits alone."""
        return self.ended_at is not None and not (self.failed or self.is_backfill)

    @property
    def ends_at(self) -> datetime | None:
        """When the current activity ends, extrapolated from what is done; None when that is unknown."""
        if not self.total or self.done <= 0 or self.ended_at:
            return None
        since, beat = datetime.fromisoformat(self.since), datetime.fromisoformat(self.beat_at)
        try:
            return since + (beat - since) * (self.total / self.done)
        except OverflowError:  # hardly begun, so that nothing can be said yet
            return None


class State(StrEnum):
    """The state of the service on a box."""

    NEVER = "never ran"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    """An error ended the last night, or its report."""

    MISSED = "missed a night"
    """The last night ended too long ago."""

    STALE = "hangs"
    """Its process is alive, but the last heartbeat is too old."""

    DEAD = "died"
    """Its process is gone and recorded no outcome. The next night resumes where it was."""


WELL = (State.NEVER, State.RUNNING, State.ENDED)
"""The states in which nobody has to act."""


@dataclass(frozen=True)
class Status:
    """The state of the service, with its last heartbeat."""

    state: State
    beat: Beat | None


def status(path: Path, now: datetime, paused_until: datetime | None = None) -> Status:
    """Return the status by the heartbeat at `path`. A file that cannot be read counts as missing.

    `paused_until` is the end of the last pause of the box: no night is missed before the next one.
    """
    beat = read(path)
    if beat is None:
        return Status(State.NEVER, None)
    if beat.ended_at is not None:
        expected_since = max(filter(None, (datetime.fromisoformat(beat.ended_at), paused_until)))
        missed = now - expected_since > timedelta(hours=MISSED_HOURS)
        ended = State.FAILED if beat.failed or beat.late else State.ENDED
        return Status(State.MISSED if missed else ended, beat)
    process = process_of(beat)
    # The number of a process says nothing in another container, but the lock of the home does.
    if not (is_alive(process) or holds(Home(path.parent), process)):
        return Status(State.DEAD, beat)
    silent = now - datetime.fromisoformat(beat.beat_at) > timedelta(minutes=STALE_MINUTES)
    return Status(State.STALE if silent else State.RUNNING, beat)


def night_elsewhere(path: Path, now: datetime) -> Beat | None:
    """Return the heartbeat of another process that carries out a night, or a backfill, of this box now."""
    found = status(path, now)
    if found.beat is None or found.state not in (State.RUNNING, State.STALE):
        return None
    return None if process_of(found.beat) == this_process() else found.beat


def process_of(beat: Beat) -> ProcessIdentity:
    """The process that wrote a heartbeat."""
    return ProcessIdentity(beat.process_id, beat.start_ticks, beat.boot_id)


def read(path: Path) -> Beat | None:
    """Read a heartbeat; None when the file is missing or is not a heartbeat."""
    try:
        return _checked(Beat(**json_value(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError, OverflowError):
        return None


def record_failure(path: Path, box: str, error: BaseException, now: datetime) -> None:
    """Record that an error ended the night of this process, whether it had begun to measure or not.

    The heartbeat of a night that another process carries out meanwhile is left alone.
    """
    if night_elsewhere(path, now) is not None:
        return
    beat, process = read(path), this_process()
    is_ours = beat is not None and process_of(beat) == process
    when, why = now.isoformat(), _reason(error)
    if beat is None or not is_ours:
        beat = Beat(box, "begins", when, when, when, 0.0, None, **asdict(process))
    _write(path, replace(beat, what="nothing", beat_at=when, ended_at=when, outcome=why, failed=True))


def record_report(path: Path, notes: Sequence[str]) -> None:
    """Record that a report was made, and what it said of the machine, in the heartbeat at `path`."""
    beat = read(path)
    if beat is not None and (tuple(beat.notes), beat.late) != (tuple(notes), ""):
        _write(path, replace(beat, notes=tuple(notes), late=""))


def record_late_report(path: Path, error: BaseException) -> None:
    """Record why a report was not made in the heartbeat at `path`, if there is one."""
    beat = read(path)
    if beat is not None:
        _write(path, replace(beat, late=_reason(error)))


def _reason(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


def _write(path: Path, beat: Beat) -> bool:
    """Whether it could be written: on a full disk it cannot, which must not end a night."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.{os.getpid()}")
        new.write_text(json.dumps(asdict(beat), indent=1) + "\n", encoding="utf-8")
        new.replace(path)
        return True
    return False


def _checked(beat: Beat) -> Beat:
    """Check types and times of a heartbeat. Raises ValueError, TypeError or OverflowError."""
    moments = [beat.began_at, beat.since, beat.beat_at]
    texts = [beat.box, beat.what, *moments, beat.boot_id, beat.outcome, beat.late, beat.plan]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("not a text")
    for moment in moments if beat.ended_at is None else [*moments, beat.ended_at]:
        datetime.fromisoformat(moment).astimezone(UTC)
        if datetime.fromisoformat(moment).tzinfo is None:
            raise ValueError("a time without a time zone")
    amounts = (beat.done, 0.0 if beat.total is None else beat.total)
    if any(isinstance(amount, bool) or not 0 <= amount <= MAX_AMOUNT for amount in amounts):
        raise ValueError("not an amount of work")
    if not all(type(number) is int and 0 <= number < 2**63 for number in (beat.process_id, beat.start_ticks)):
        raise ValueError("not a process")
    if not all(type(value) is bool for value in (beat.failed, beat.is_backfill)):
        raise TypeError("not a truth value")
    if not isinstance(beat.notes, list | tuple) or not all(isinstance(note, str) for note in beat.notes):
        raise TypeError("no notes")
    return replace(beat, notes=tuple(beat.notes))


class Heart:
    """Progress that writes heartbeats, and passes everything on to another progress display."""

    def __init__(
        self,
        path: Path,
        box: str,
        shown: Progress,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        is_backfill: bool = False,
        plan: str = "",
    ) -> None:
        process, self._now = this_process(), clock
        began = self._now().isoformat()
        self._path, self._shown = path, shown
        self._last = 0.0
        before = read(path)
        notes = before.notes if before is not None and before.box == box else ()
        late = before.late if before is not None and before.box == box else ""
        self._beat = Beat(
            box,
            "begins",
            began,
            began,
            began,
            0.0,
            None,
            **asdict(process),
            notes=notes,
            is_backfill=is_backfill,
            late=late,
            plan=plan,
        )
        self._write()

    def note(self, message: str) -> None:
        """Show a note."""
        self._shown.note(message)
        self.change()

    @contextmanager
    def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
        """Show a task, with heartbeats while it runs."""
        outer = (self._beat.what, self._beat.since, self._beat.done, self._beat.total)
        with self._shown.task(label, total, unit) as shown:
            self.change(what=label, since=self._now().isoformat(), done=0.0, total=total)
            try:
                yield _BeatingTask(self, shown)
            finally:
                what, since, done, whole = outer
                self.change(what=what, since=since, done=done, total=whole)

    def end(self, outcome: str, *, failed: bool = False) -> None:
        """Record that the night has ended, with its outcome in one line, and whether an error ended it."""
        self.change(ended_at=self._now().isoformat(), outcome=outcome, what="nothing", failed=failed)

    def end_early(self, why: str) -> None:
        """Record why the night ends, unless it has ended already."""
        if self._beat.ended_at is None:
            self.end(why)

    def change(self, **changes: object) -> None:
        """Change values of the heartbeat, and write it when it is due."""
        values = {**asdict(self._beat), **changes, "beat_at": self._now().isoformat()}
        whats = (values["what"], values["ended_at"]) != (self._beat.what, self._beat.ended_at)
        self._beat = Beat(**values)
        if whats or time.monotonic() - self._last >= BEAT_SECONDS:
            self._write()

    def _write(self) -> None:
        _tell_systemd()
        if _write(self._path, self._beat):
            self._last = time.monotonic()


def _tell_systemd() -> None:
    """Tell the unit that began the night that it goes on (sd_notify(3)); nothing without one."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.connect(f"\0{address[1:]}" if address.startswith("@") else address)
            systemd.send(b"WATCHDOG=1")


class _BeatingTask:
    def __init__(self, heart: Heart, shown: ProgressTask) -> None:
        self._heart, self._shown = heart, shown

    def update(self, done: float, total: float | None = None) -> None:
        self._shown.update(done, total)
        self._heart.change(done=done, **({} if total is None else {"total": total}))

    def rename(self, label: str) -> None:
        self._shown.rename(label)
        self._heart.change(what=label)

    def detail(self, text: str) -> None:
        self._shown.detail(text)
        self._heart.change()
