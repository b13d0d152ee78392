"""Where servers of tests work, and data directories that are made once for all tests of a run."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from build.lock import held
from suites.server import Server
from suites.sizing import Sizes

MEMORY, DISK = Path("/dev/shm"), Path("/tmp")

MIN_FREE = 8 * 1024**3
"""Bytes that must be free: a session of MariaDB needs three, and one worker more than cores has one."""

FOLDER = "TIDEMARK_TESTS_NEW_SERVERS"
"""Names the folder in the environment, which the workers of a run inherit."""


def new_folder() -> Path:
    """Make a folder with a short path that every user can reach; in memory, where there is plenty.

    To remove a data directory of a thousand files from a disk takes a second, and every round of a session
    removes one.
    """
    folder = Path(tempfile.mkdtemp(prefix="tmt-", dir=MEMORY if _has_room(MEMORY) else DISK))
    folder.chmod(0o755)
    return folder


def _has_room(folder: Path) -> bool:
    try:
        mount = os.statvfs(folder)
    except OSError:
        return False
    if mount.f_flag & os.ST_NOEXEC or not os.access(folder, os.W_OK):
        return False
    return min(mount.f_bavail * mount.f_frsize, psutil.virtual_memory().available) > MIN_FREE


@contextmanager
def shared_folder() -> Iterator[None]:
    """Hold what `create` copies, for a run with all its workers."""
    if FOLDER in os.environ:
        yield  # of a worker
        return
    folder = new_folder()
    os.environ[FOLDER] = str(folder)
    try:
        yield
    finally:
        del os.environ[FOLDER]
        shutil.rmtree(folder, ignore_errors=True)


def create(server: Server, sizes: Sizes) -> None:
    """Create a server with the data directory of a new one, of its build and with a log of its size.

    The first one makes it, which takes MySQL most of a test's time; the others copy it. Tests of making one
    call the server's own method, and sessions always make theirs.
    """
    folder = Path(os.environ[FOLDER])
    name = f"{server.build.key}-{sizes.wal_limit_bytes}"
    with held(folder / f"{name}.lock"):
        if (folder / name).exists():
            made = None
        else:
            server.create()
            made = folder / f"{name}-part"
            data = server.address.socket.parent / "data"
            subprocess.run(["cp", "--archive", "--reflink=auto", data, made], check=True)
            made.rename(folder / name)
    if made is None:
        server.create(folder / name)
