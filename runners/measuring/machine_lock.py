"""The lock that allows one measurement at a time on a machine, for all users and homes."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home

MACHINES = Path("/run/lock/tidemark.lock")
"""The lock of the machine; where it cannot be opened, the lock of the home is used."""

HOMES = "measuring.lock"

READABLE = 0o644


class BusyError(TidemarkError):
    """Another measurement is running on this machine."""


_held: set[Path] = set()


@contextmanager
def measuring_alone(home: Home) -> Iterator[None]:
    """Hold the lock of this machine. Raises BusyError when another process holds it.

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
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                f"another measurement is running (process {_holder(descriptor)})",
                where=str(path),
                hint="wait until it ends: two measurements at once disturb each other",
            ) from None
        _sign(descriptor, str(os.getpid()))
        _held.add(path)
        try:
            yield
        finally:
            _held.remove(path)
            _sign(descriptor, "")  # the next holder, as another user, may not be able to replace the pid
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
    except PermissionError:
        fallback = home.path / HOMES
        return fallback, _descriptor(fallback)


def _descriptor(path: Path) -> int:
    """Open the lock; one of another user is opened for reading, which is enough for flock(2)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, READABLE)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _sign(descriptor: int, name: str) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, name.encode(), 0)
    except OSError:
        pass  # opened for reading only: the lock counts, not the pid in it


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
