"""One measurement at a time on a machine, whoever starts it and wherever its home is."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home

MACHINES = Path("/run/lock/tidemark.lock")
"""The machine's lock; where it cannot be opened the home's own has to do."""

HOMES = "measuring.lock"

READABLE = 0o644


class BusyError(TidemarkError):
    """Another measurement runs on this machine."""


_held: set[Path] = set()


@contextmanager
def measuring_alone(home: Home) -> Iterator[None]:
    """Hold the lock that keeps two measurements apart. Raises BusyError when another process holds it.

    A night holds it for all of its sessions, which ask again. The kernel lets go of it when the process ends,
    however that is.
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
                hint="wait for it: two measurements at once disturb each other",
            ) from None
        _sign(descriptor, str(os.getpid()))
        _held.add(path)
        try:
            yield
        finally:
            _held.remove(path)
            _sign(descriptor, "")  # who comes next, as another user, may not be able to replace the name
    finally:
        os.close(descriptor)


def lock_path(home: Home) -> Path:
    """`$TIDEMARK_LOCK`, else the machine's, else the home's."""
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
    """Another user's lock can be opened for reading, which is all that flock(2) asks for."""
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
        pass  # opened for reading only: the lock counts, not the name in it


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
