"""Advisory file locks, which the kernel releases when the process that holds them ends."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from build.errors import TidemarkError
from build.files import make_folder, open_checked

READABLE = 0o644
"""flock(2) needs a file that is open, for reading or for writing: every user may take the lock."""

_ATTEMPTS = 10
"""How often a file is looked for again that was removed between two system calls."""


class LockError(TidemarkError):
    """The file of a lock cannot be created or opened, or something else lies at its path."""


@contextmanager
def held(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[int]:
    """Hold the lock file `path` for the duration of the context, and yield its file descriptor.

    `on_wait` is called once if another process holds the lock, before waiting for it. The file stays behind:
    removing it could hand the same lock to two processes. flock(2) belongs to the open file, so a child that
    inherits the descriptor keeps the lock after its parent was killed. Raises LockError.
    """
    make_folder(path.parent)
    try:
        descriptor = open_lock(path)
    except PermissionError as error:
        raise LockError(
            "this user may not open the file of a lock",
            where=str(path),
            hint="use the folder's owner, or another folder (TIDEMARK_HOME)",
        ) from error
    try:
        if not taken(descriptor):
            if on_wait is not None:
                on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def open_lock(path: Path) -> int:
    """Open the file of a lock, which is created if it is missing, and return its descriptor.

    The folder may be writable for everybody, as /run/lock is: no link is followed, nothing but a regular file
    is opened, and the file is neither truncated nor written. Raises LockError, and PermissionError when this
    user may not open or create it.
    """
    for _ in range(_ATTEMPTS):
        try:
            # O_EXCL never follows a link. Without it, protected_regular (proc_sys_fs(5)) would refuse even
            # root the file of another user.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, READABLE)
        except FileExistsError:
            try:
                return open_checked(path, writable=True)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unusable(path, error) from error
        except OSError as error:
            raise _unusable(path, error) from error
        os.fchmod(descriptor, READABLE)  # whatever the umask is
        return descriptor
    raise LockError("the file of a lock is removed again and again", where=str(path))


def taken(descriptor: int) -> bool:
    """Take the lock if nobody holds it, and return whether it was taken."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder(descriptor: int, locks: Path = Path("/proc/locks")) -> int | None:
    """Return the process that took the lock, by proc_locks(5); None when the kernel does not say.

    That is so in a container for processes outside it, and on a file system that reports other device
    numbers for a file than for its locks.
    """
    status = os.fstat(descriptor)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = locks.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        # 1: FLOCK  ADVISORY  WRITE 1234 08:02:5678 0 EOF; `->` marks a process that waits.
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5] == file and words[4].isdigit():
            return int(words[4]) or None
    return None


def may_write(descriptor: int) -> bool:
    """Return whether an open file is ours alone: of this user, and without a second name (hard link)."""
    status = os.fstat(descriptor)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink <= 1


def _unusable(path: Path, error: OSError) -> Exception:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return PermissionError(error.errno, error.strerror, str(path))
    if error.errno == errno.EISDIR:
        return LockError(
            "a folder is where the file of a lock belongs",
            where=str(path),
            hint="Tidemark makes no such folder: remove it",
        )
    return LockError(
        f"the file of a lock cannot be opened: {error.strerror}",
        where=str(path),
        hint="Tidemark makes a regular file there and follows no link: see with ls -l who made it, remove it",
    )
