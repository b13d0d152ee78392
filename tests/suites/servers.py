"""Small servers for tests: sizes that suit any machine, and a server for the length of a block."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psutil

from build.finished_build import Build
from suites.keys.durability import Durability
from suites.postgres import shared_memory
from suites.postgres.server import PostgresServer
from suites.sizing import Sizes, equal_tables
from tests.new_servers.data_directories import create

MIB = 1024**2
T = TypeVar("T")


def small(rows: int = 2000, tables: int = 1, threads: int = 1) -> Sizes:
    """Sizes of a server that starts at once."""
    data = rows * tables * 300
    return Sizes(threads, equal_tables(tables, rows, data), 64 * MIB, 256 * MIB, 3 * data, workers=2)


@contextlib.contextmanager
def running(
    build: Build,
    folder: Path,
    room: Sizes | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Iterator[PostgresServer]:
    """A server that answers, in a new folder `pg` below `folder`; destroyed however the block ends.

    Without fsync: it only matters when the machine's power fails, and a busy disk would make tests slow.
    """
    chosen = {"fsync": "off", **(overrides or {})}
    sizes = room or small()
    server = PostgresServer(build, sizes, Durability.RELAXED, folder / "pg", chosen)
    try:
        create(server, sizes)
        server.start()
        yield server
    finally:
        server.destroy()


def ask(server: PostgresServer, question: str) -> list[tuple[Any, ...]]:
    """The rows of one SQL statement; none for a statement without a result."""
    with server.connect() as connection:
        cursor = connection.execute(question)
        return cursor.fetchall() if cursor.description else []


def value(server: PostgresServer, question: str) -> Any:
    """The only value that `question` yields."""
    ((only,),) = ask(server, question)
    return only


def wait_for(what: Callable[[], object], patience: float = 20) -> None:
    """Return once `what` is true; fail when it is not within `patience` seconds."""
    deadline = time.monotonic() + patience
    while not what():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.05)


def tree(server: PostgresServer) -> list[psutil.Process]:
    """The postmaster and all its processes."""
    root = psutil.Process(server.pid)
    return [root, *root.children(recursive=True)]


def of_each(processes: list[psutil.Process], question: Callable[[psutil.Process], T]) -> list[T]:
    """The answers of those that are still there: backends of clients that have gone end at any moment."""
    answers = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            answers.append(question(process))
    return answers


def lives(process: psutil.Process) -> bool:
    """Whether it runs; a process that only waits for its parent to take note of its end does not."""
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def segment(server: PostgresServer) -> int:
    """The System V segment of a living server: each has one, the interlock against a second postmaster."""
    found = shared_memory.segments_of(server.data).system_v
    assert found is not None
    assert exists(found)
    return found


def exists(shared: int) -> bool:
    """Whether there is a System V segment with this id (/proc/sysvipc/shm: key shmid ...)."""
    rows = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return any(int(row.split()[1]) == shared for row in rows)


def dead(server: PostgresServer, patience: float = 10) -> str:
    """How the server ended; fails when it does not."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        ended = server.death()
        if ended is not None:
            return ended
        time.sleep(0.02)
    raise AssertionError("the server lives")
