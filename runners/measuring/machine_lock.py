"""The lock that allows one measurement at a time on a machine, for all users and homes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home
from build.lock import LockError, holder, may_write, open_lock, taken

MACHINES = Path("/run/lock/tidemark.lock")
"""The lock of the machine; users who may not open it use the lock of the home, except for root."""

HOMES = "measuring.lock"


class BusyError(TidemarkError):
    """Another measurement is running on this machine."""


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
            raise _busy(path, descriptor)
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


def _busy(path: Path, descriptor: int) -> BusyError:
    """Return the error that says who holds the lock: Tidemark, or another program that took the same file."""
    written = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    pid = holder(descriptor)
    if written.isdecimal() and pid in (None, int(written)):
        return BusyError(
            f"another measurement is running (process {written})",
            where=str(path),
            hint="wait until it ends: two measurements at once disturb each other",
        )
    if pid is None:
        return BusyError(
            "another measurement is running (process unknown)",
            where=str(path),
            hint=f"wait until it ends; lslocks and fuser {path} show who holds the lock",
        )
    return BusyError(
        f"another measurement is running, or another program holds its lock: process {pid} ({_program(pid)})",
        where=str(path),
        hint=f"wait until it ends; if it does not measure, end it: ps -o pid,user,lstart,args {pid}",
    )


def _program(pid: int) -> str:
    """Return the name of a process, made printable: its owner chooses it."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "it has ended, and a process that it started keeps the lock"
    return "".join(each if each.isprintable() else "?" for each in name)
