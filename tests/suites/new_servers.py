"""New servers whose data directories are made once for all tests of a run, and copied for each server."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build.lock import held
from suites.server import Server
from suites.sizing import Sizes

FOLDER = "TIDEMARK_TESTS_NEW_SERVERS"
"""Names the folder in the environment, which the workers of a run inherit."""


@contextmanager
def shared_folder() -> Iterator[None]:
    """Hold what `create` copies, for a run with all its workers."""
    if FOLDER in os.environ:
        yield  # of a worker
        return
    folder = Path(tempfile.mkdtemp(prefix="tmt-", dir="/tmp"))
    folder.chmod(0o755)  # the user of the servers copies from it
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
