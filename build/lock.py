"""Advisory file locks, which the kernel releases when the process that holds them ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from build.files import make_folder


@contextmanager
def held(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[int]:
    """Hold the lock file `path` for the duration of the context, and yield its file descriptor.

    If another process holds the lock, `on_wait` is called once before waiting for it. The file is never
    removed, because two processes could then hold a lock of the same name. A lock of flock(2) belongs to the
    open file, so that a child that inherits the descriptor keeps the lock if its parent is killed.
    """
    make_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait is not None:
                on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
