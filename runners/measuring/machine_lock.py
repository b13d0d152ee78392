"""The locks that allow one measurement at a time: on a machine, for all users and homes, and in a home.

Containers have no /run/lock and no process numbers in common, but may share a home.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from build.addresses import redacted
from build.errors import TidemarkError
from build.files import make_folder, open_checked
from build.home import Home
from build.lock import LockError, holder, may_write, open_lock, taken
from history.escaping.characters import one_line
from history.store.process import ProcessIdentity, own_boot_id

MACHINES = Path("/run/lock/tidemark.lock")
"""The lock of the machine; users who may not open it use the lock of the home, except for root."""

HOMES = "measuring.lock"
"""The name of the lock of a home."""

UNDER_WAY = "TIDEMARK_UPDATING"
"""The environment variable of the commands that an update calls, which itself holds the lock of the home."""

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

    host: str = ""
    """The name of the container or machine that has it, if that is another one."""

    def __str__(self) -> str:
        if self.pid is None:
            return "an unknown process"
        if self.host:
            return f"process {self.pid} of another container or machine, {self.host}, {_since(self.since)}"
        command = f" ({self.command})" if self.command else ""
        since = "" if self.since is None else f" {_since(self.since)}"
        other = "" if self.is_ours else ", another program than Tidemark,"
        return f"process {self.pid}{command}{other}{since}"


def _since(moment: datetime | None) -> str:
    return "" if moment is None else f"since {moment:%Y-%m-%d %H:%M} UTC"


class BusyError(TidemarkError):
    """Another process holds the lock of this machine, or of the home."""

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
        what = "output folder" if path.name == HOMES else "machine"
        super().__init__(f"{waited}the {what} is held by {holder}", where=str(path), hint=hint)


_held: set[Path] = set()


@contextmanager
def measuring_alone(home: Home, *, in_home: bool = True) -> Iterator[None]:
    """Hold the locks of this machine and, unless nothing is done `in_home`, of the home.

    They are reentrant within a process, as a night holds them for all of its sessions. The kernel releases
    them when the process ends, however it ends. Raises BusyError when another process holds one, LockError.
    """
    make_folder(home.path)
    with ExitStack() as held:
        for path, descriptor in _opened(home, in_home=in_home):
            held.enter_context(_holding(path, descriptor))
        yield


@contextmanager
def _holding(path: Path, descriptor: int) -> Iterator[None]:
    try:
        if path in _held:
            yield
            return
        if not taken(descriptor):
            raise BusyError(_holder(descriptor), path)
        _sign(descriptor, signature())
        _held.add(path)
        try:
            yield
        finally:
            _held.remove(path)
            _sign(descriptor, "")  # the next holder, as another user, may not be able to replace it
    finally:
        os.close(descriptor)


def current_holder(home: Home) -> Holder | None:
    """Return who holds one of the locks, if anybody does, without taking it. Raises LockError."""
    found = None
    for _, descriptor in _opened(home, in_home=(home.path / HOMES).exists()):
        if found is None and (holder(descriptor) is not None or _is_held_elsewhere(descriptor)):
            found = _holder(descriptor)
        os.close(descriptor)
    return found


def holds(home: Home, process: ProcessIdentity) -> bool:
    """Return whether a process, which may be of another container, holds the lock of the home."""
    try:
        descriptor = open_checked(home.path / HOMES)
    except OSError:
        return False
    try:
        signed = _signed(descriptor)
        is_its = signed is not None and (signed[0], signed[2]) == (process.process_id, process.boot_id)
        return is_its and _is_held_elsewhere(descriptor)
    finally:
        os.close(descriptor)


def signature() -> str:
    """Return what identifies this process in a file that it has locked: number, host and boot."""
    return f"{os.getpid()} {''.join(os.uname().nodename.split()) or '-'} {own_boot_id()}"


def signed_by(text: str) -> tuple[int, str, str] | None:
    """Return number, host and boot of a signature; None for any other text.

    Earlier versions wrote the number alone, of a process of this machine.
    """
    words = text.split()
    if not words or len(words) not in (1, 3) or not words[0].isdecimal():
        return None
    host, boot_id = words[1:] if len(words) == 3 else ("", own_boot_id())
    return int(words[0]), one_line(host, 64), boot_id


def lock_path(home: Home) -> Path:
    """Return the path of the lock: `$TIDEMARK_LOCK`, else the machine's, else the home's."""
    chosen = os.environ.get("TIDEMARK_LOCK")
    if chosen:
        return Path(chosen)
    return MACHINES if MACHINES.parent.is_dir() else home.path / HOMES


def _opened(home: Home, *, in_home: bool) -> Iterator[tuple[Path, int]]:
    """Yield the locks, each opened when the one before it is held; who gets one closes it."""
    path, of_home = lock_path(home), home.path / HOMES
    try:
        descriptor = _descriptor(path)
    except PermissionError as error:
        # Root may open every lock, and its fallback would lie where the user of the home may write.
        if os.geteuid() == 0 or path == of_home:
            raise LockError(
                "the lock of this machine may not be opened",
                where=str(path),
                hint="see the rights of the file and of its folder, or name another file by TIDEMARK_LOCK",
            ) from error
        try:
            yield of_home, _descriptor(of_home)
        except PermissionError as error:
            raise LockError(
                "neither the lock of this machine nor that of the output folder may be opened",
                where=f"{path}, {of_home}",
                hint="use the folder's owner, or another folder (TIDEMARK_HOME)",
            ) from error
        return
    status = os.fstat(descriptor)
    yield path, descriptor
    if not in_home or UNDER_WAY in os.environ:
        return
    try:
        descriptor = _descriptor(of_home)
    except PermissionError:
        return  # who may not write into a home has no session there
    if os.path.samestat(status, os.fstat(descriptor)):
        os.close(descriptor)
    else:
        yield of_home, descriptor


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
    signed, pid = _signed(descriptor), holder(descriptor)
    if signed is not None:
        number, host, boot_id = signed
        signed_at = datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC)
        is_elsewhere = boot_id != own_boot_id()
        if pid is None and is_elsewhere:
            return Holder(number, "", signed_at, is_ours=True, host=host)
        if is_elsewhere or pid in (None, number):
            # A number that the kernel does not confirm may be that of a process outside this container.
            return Holder(pid or number, "" if pid is None else _command(pid), signed_at, is_ours=True)
    return Holder(pid, "" if pid is None else _command(pid), None if pid is None else _began_at(pid))


def _signed(descriptor: int) -> tuple[int, str, str] | None:
    return signed_by(os.pread(descriptor, 256, 0).decode(errors="replace"))


def _is_held_elsewhere(descriptor: int) -> bool:
    """Whether a process of another container that has signed the file holds it: the kernel names none here.

    One that was killed has left its signature, so that the lock is tried, but only then.
    """
    signed = _signed(descriptor)
    if signed is None or signed[2] == own_boot_id():
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


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
