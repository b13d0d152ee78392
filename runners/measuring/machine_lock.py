"""The lock that allows one measurement at a time on a machine, for all users and homes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from build.addresses import redacted
from build.errors import TidemarkError
from build.home import Home
from build.lock import LockError, holder, may_write, open_lock, taken
from history.escaping.characters import one_line

MACHINES = Path("/run/lock/tidemark.lock")
"""The lock of the machine; users who may not open it use the lock of the home, except for root."""

HOMES = "measuring.lock"


LONGEST_COMMAND = 80
"""Characters of a command line that are shown."""


@dataclass(frozen=True)
class Holder:
    """The process that holds the lock of the machine."""

    pid: int | None
    """None when the kernel does not say."""

    command: str
    """Its command line on one line, without secrets; empty when it cannot be known."""

    since: datetime | None
    """When it took the lock; of a program that is not Tidemark, when it began."""

    is_ours: bool = False
    """Whether it is Tidemark: its number is in the file, which only the owner of the file writes."""

    def __str__(self) -> str:
        if self.pid is None:
            return "an unknown process"
        command = f" ({self.command})" if self.command else ""
        since = "" if self.since is None else f" since {self.since:%Y-%m-%d %H:%M} UTC"
        other = "" if self.is_ours else ", another program than Tidemark,"
        return f"process {self.pid}{command}{other}{since}"


class BusyError(TidemarkError):
    """Another process holds the lock of this machine."""

    def __init__(self, holder: Holder, path: Path, waited_seconds: float = 0.0) -> None:
        """`waited_seconds` is how long it was waited for."""
        self.holder, self.path = holder, path
        waited = f"waited {waited_seconds / 60:.0f} minutes: " if waited_seconds else ""
        if holder.is_ours:
            hint = "wait until it ends: two measurements at once disturb each other"
        elif holder.pid is None:
            hint = f"wait until it ends; lslocks and fuser {path} show who holds the lock"
        else:
            hint = f"wait until it ends; what it is: ps -o pid,user,lstart,args {holder.pid}"
        super().__init__(f"{waited}the machine is held by {holder}", where=str(path), hint=hint)


_held: set[Path] = set()


@contextmanager
def measuring_alone(home: Home) -> Iterator[None]:
    """Hold the lock of this machine. Raises BusyError when another process holds it, and LockError.

    The lock is reentrant within a process, as a night holds it for all of its sessions. The kernel releases
    it when the process ends, however it ends.
    """
    home.path.mkdir(parents=True, exist_ok=True)
    path, descriptor = _open(home)
    if path in _held:
        os.close(descriptor)
        yield
        return
    try:
        if not taken(descriptor):
            raise BusyError(_holder(descriptor), path)
        _sign(descriptor, str(os.getpid()))
        _held.add(path)
        try:
            yield
        finally:
            _held.remove(path)
            _sign(descriptor, "")  # the next holder, as another user, may not be able to replace the pid
    finally:
        os.close(descriptor)


def current_holder(home: Home) -> Holder | None:
    """Return who holds the lock, if anybody does, without taking it. Raises LockError."""
    _, descriptor = _open(home)
    try:
        return None if holder(descriptor) is None else _holder(descriptor)
    finally:
        os.close(descriptor)


def lock_path(home: Home) -> Path:
    """Return the path of the lock: `$TIDEMARK_LOCK`, else the machine's, else the home's."""
    chosen = os.environ.get("TIDEMARK_LOCK")
    if chosen:
        return Path(chosen)
    return MACHINES if MACHINES.parent.is_dir() else home.path / HOMES


def _open(home: Home) -> tuple[Path, int]:
    path = lock_path(home)
    try:
        return path, _descriptor(path)
    except PermissionError as error:
        # Root may open every lock, and its fallback would lie where the user of the home may write.
        if os.geteuid() == 0 or path == home.path / HOMES:
            raise LockError(
                "the lock of this machine may not be opened",
                where=str(path),
                hint="see the rights of the file and of its folder, or name another file by TIDEMARK_LOCK",
            ) from error
    fallback = home.path / HOMES
    try:
        return fallback, _descriptor(fallback)
    except PermissionError as error:
        raise LockError(
            "neither the lock of this machine nor that of the output folder may be opened",
            where=f"{path}, {fallback}",
            hint="use the folder's owner, or another folder (TIDEMARK_HOME)",
        ) from error


def _descriptor(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except PermissionError:
        raise
    except OSError as error:
        raise LockError(
            f"the folder of the lock cannot be created: {error.strerror}", where=str(path.parent)
        ) from error
    return open_lock(path)


def _sign(descriptor: int, name: str) -> None:
    """Write who holds the lock, for `cat`; only into our own file, which nobody else chose."""
    if not may_write(descriptor):
        return
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, name.encode(), 0)
    except OSError:
        pass  # the lock counts, not the pid in it


def _holder(descriptor: int) -> Holder:
    """Return who holds the lock: Tidemark, or another program that took the same file."""
    written = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    pid = holder(descriptor)
    if written.isdecimal() and pid in (None, int(written)):
        signed_at = datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC)
        # A number that the kernel does not confirm may be that of a process outside this container.
        return Holder(int(written), "" if pid is None else _command(pid), signed_at, is_ours=True)
    return Holder(pid, "" if pid is None else _command(pid), None if pid is None else _began_at(pid))


def _command(pid: int) -> str:
    """Return the command of a process without secrets, made printable: its owner chooses it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
        name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "it has ended, and a process that it started keeps the lock"
    if "-m" in words and (rest := words[words.index("-m") + 1 :])[:1] == ["runners"]:
        words = ["tidemark", *rest[1:]]
    return one_line(redacted(" ".join(words)), LONGEST_COMMAND) or one_line(name)


def _began_at(pid: int) -> datetime | None:
    with suppress(psutil.Error, OSError):
        return datetime.fromtimestamp(psutil.Process(pid).create_time(), UTC)
    return None
