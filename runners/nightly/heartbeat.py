"""What the service is doing, in a small file that anybody may read: `./tidemark status`."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from build.progress import Progress, ProgressTask
from history.store.process import ProcessIdentity, is_alive, this_process

BEAT_SECONDS = 1.0
"""The file is written at most so often, besides at every change of what is being done."""

STALE_MINUTES = 30.0
"""A night without a beat for so long hangs: no step of a compile or of a suite is silent for that long."""

MISSED_HOURS = 26.0
"""A box whose last night ended so long ago has missed one, with two hours for a night that is late."""


@dataclass(frozen=True)
class Beat:
    """One heartbeat. Times are ISO-8601 in UTC."""

    box: str
    what: str
    began_at: str
    """Of the night."""

    since: str
    """When what it does now began."""

    beat_at: str
    done: float
    total: float | None
    """Of what it does now, in units of its own."""

    process_id: int
    start_ticks: int
    boot_id: str
    ended_at: str | None = None
    outcome: str = ""
    """Of a night that ended, in one line."""

    @property
    def ends_at(self) -> datetime | None:
        """When what it does now ends, if the rest goes as what is done; None when that cannot be said."""
        if not self.total or self.done <= 0 or self.ended_at:
            return None
        since, beat = datetime.fromisoformat(self.since), datetime.fromisoformat(self.beat_at)
        return since + (beat - since) * (self.total / self.done)


class State(StrEnum):
    """Of the service on a box."""

    NEVER = "never ran"
    RUNNING = "running"
    ENDED = "ended"
    MISSED = "missed a night"
    """It ended too long ago."""

    STALE = "hangs"
    """It lives, and has not given a sign for too long."""

    DEAD = "died"
    """Its process is gone, and it has not said how it ended. The next night goes on where it was."""


WELL = (State.NEVER, State.RUNNING, State.ENDED)
"""Nothing that a person has to look after."""


@dataclass(frozen=True)
class Status:
    """What the file says now."""

    state: State
    beat: Beat | None


def status(path: Path, now: datetime) -> Status:
    """Read the heartbeat at `path`. A file that cannot be read counts as none."""
    beat = read(path)
    if beat is None:
        return Status(State.NEVER, None)
    if beat.ended_at is not None:
        missed = now - datetime.fromisoformat(beat.ended_at) > timedelta(hours=MISSED_HOURS)
        return Status(State.MISSED if missed else State.ENDED, beat)
    if not is_alive(ProcessIdentity(beat.process_id, beat.start_ticks, beat.boot_id)):
        return Status(State.DEAD, beat)
    silent = now - datetime.fromisoformat(beat.beat_at) > timedelta(minutes=STALE_MINUTES)
    return Status(State.STALE if silent else State.RUNNING, beat)


def read(path: Path) -> Beat | None:
    """The last heartbeat; None when there is none, or it is not one of ours."""
    try:
        return Beat(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


class Heart:
    """Progress that beats: what it is told goes to the file, and on to somebody who watches."""

    def __init__(
        self,
        path: Path,
        box: str,
        shown: Progress,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        process, self._now = this_process(), clock
        began = self._now().isoformat()
        self._path, self._shown = path, shown
        self._last = 0.0
        self._beat = Beat(box, "begins", began, began, began, 0.0, None, **asdict(process))
        self._write()

    def note(self, message: str) -> None:
        """Pass it on."""
        self._shown.note(message)
        self.change()

    @contextmanager
    def task(self, label: str, total: float | None = None) -> Iterator[ProgressTask]:
        """Show it, and beat with it."""
        outer = (self._beat.what, self._beat.since, self._beat.done, self._beat.total)
        with self._shown.task(label, total) as shown:
            self.change(what=label, since=self._now().isoformat(), done=0.0, total=total)
            try:
                yield _BeatingTask(self, shown)
            finally:
                what, since, done, whole = outer
                self.change(what=what, since=since, done=done, total=whole)

    def end(self, outcome: str) -> None:
        """The night has ended, in whatever way that could be said."""
        self.change(ended_at=self._now().isoformat(), outcome=outcome, what="nothing")

    def change(self, **changes: object) -> None:
        """Beat, with other values of a Beat."""
        values = {**asdict(self._beat), **changes, "beat_at": self._now().isoformat()}
        whats = (values["what"], values["ended_at"]) != (self._beat.what, self._beat.ended_at)
        self._beat = Beat(**values)
        if whats or time.monotonic() - self._last >= BEAT_SECONDS:
            self._write()

    def _write(self) -> None:
        # A heartbeat that cannot be written, as on a full disk, is no reason to end a night.
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            new = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            new.write_text(json.dumps(asdict(self._beat), indent=1) + "\n", encoding="utf-8")
            new.replace(self._path)
            self._last = time.monotonic()


class _BeatingTask:
    def __init__(self, heart: Heart, shown: ProgressTask) -> None:
        self._heart, self._shown = heart, shown

    def update(self, done: float, total: float | None = None) -> None:
        self._shown.update(done, total)
        self._heart.change(done=done, **({} if total is None else {"total": total}))

    def rename(self, label: str) -> None:
        self._shown.rename(label)
        self._heart.change(what=label)
