"""One process at a time: advisory locks that end with the process that holds them."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from build.files import make_folder


@contextmanager
def held(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[int]:
    """Hold the lock named by `path` while the context lasts; yields its file descriptor.

    `on_wait` is called once if another process holds the lock, before waiting for it. The file stays behind:
    removing it could hand the same lock to two processes. flock(2) belongs to the open file, so a child that
    inherits the descriptor keeps the lock after its parent was killed.
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
