"""Real servers with a declared memory: what does not fit is read from the disk, and too much is the end."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest

from build.finished_build import Build
from history.store.records import FailureCause
from runners.measuring.cleanup import clean
from runners.measuring.failures.cause import run_failure
from suites.control_groups.group import MemoryLimit, groups_below
from suites.definition import load_suite
from suites.engines import engine_of, make_server, own_sizes
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability
from suites.postgres.server import PostgresServer
from suites.server import ServerError
from suites.sizing import least_memory
from tests.new_servers.data_directories import create
from tests.suites.control_groups.disk_folders import folder_on_disk
from tests.suites.servers import MIB, ask, dead, running, small

pytestmark = pytest.mark.server

ROWS = 200_000
"""Of about 1 KB each: 208 MB."""


@pytest.fixture
def disk_folder() -> Iterator[Path]:
    """A folder on a disk, where a server can have a memory of its own."""
    with folder_on_disk([MemoryLimit(64 * MIB)]) as folder:
        yield folder


@contextmanager
def limited(build: Build, folder: Path, memory: int) -> Iterator[PostgresServer]:
    """A server with so much memory, as if something had been loaded."""
    room = replace(small(), buffer_bytes=16 * MIB, memory_bytes=memory)
    with running(build, folder, room) as server:
        server.end_loading()
        yield server


def read_by_scan(server: PostgresServer) -> int:
    """Bytes that one scan of the whole table reads from the disk, as the kernel counts them."""
    with server.connect() as connection:
        reader = psutil.Process(connection.info.backend_pid)
        began = reader.io_counters().read_bytes
        connection.execute("SET max_parallel_workers_per_gather = 0; SELECT count(filler) FROM large")
        return int(reader.io_counters().read_bytes) - began


def load(server: PostgresServer) -> int:
    """Create a table of ROWS rows and return its bytes."""
    ask(
        server,
        "CREATE TABLE large WITH (autovacuum_enabled = off) AS SELECT id, repeat(md5(id::text), 31) AS "
        f"filler FROM generate_series(1, {ROWS}) AS id",
    )
    ask(server, "VACUUM large")
    ((size,),) = ask(server, "SELECT pg_relation_size('large')")
    return int(size)


@pytest.mark.parametrize(("memory", "again"), [(128 * MIB, (0.9, 1.05)), (512 * MIB, (0.0, 0.01))])
def test_what_does_not_fit_is_read_again_and_what_fits_never(
    disk_folder: Path, postgres_17: Build, memory: int, again: tuple[float, float]
) -> None:
    """From a copy of its loaded data, of which nothing is in anybody's page cache when it starts.

    Before 18, which has processes that read, the backend itself does.
    """
    with limited(postgres_17, disk_folder, memory) as server:
        size = load(server)
        assert size > 200 * MIB
        server.keep()
        server.restore()
        server.start()
        assert read_by_scan(server) > 0.95 * size, "the copy has left nothing in the page cache"
        least, most = again
        assert least * size <= read_by_scan(server) <= most * size


def test_what_needs_more_than_its_memory_is_killed_and_told(disk_folder: Path, postgres_18: Build) -> None:
    with limited(postgres_18, disk_folder, 96 * MIB) as server:
        with pytest.raises(psycopg.OperationalError):
            ask(server, "SELECT length(string_agg(repeat('x', 1000), '')) FROM generate_series(1, 400000)")
        ended = dead(server)
        told = "killed by the kernel: it needed more memory than its limit, 96M; client backend (PID "
        assert ended.startswith(told)
        failure = run_failure(ServerError(f"{server.build.version} died during a step: {ended}"), disk_folder)
        assert failure.cause is FailureCause.VERSION, "SIGKILL of its own making is no trouble of the machine"
        server.stop()
        server.start()
        assert server.death() is None
        os.kill(server.pid, 9)
        assert dead(server).startswith("killed by SIGKILL"), "what it was killed for before is over"


@pytest.mark.parametrize("engine", ["mysql_9", "mariadb_11"])
def test_a_server_with_a_full_cache_of_its_own_is_not_killed(
    request: pytest.FixtureRequest, engine: str, disk_folder: Path
) -> None:
    """With the least memory that it can have."""
    build: Build = request.getfixturevalue(engine)
    profile = load_suite("write-heavy").profile("io")
    plain = replace(small(), memory_bytes=1, buffer_bytes=128 * MIB)
    least = least_memory(profile, plain, engine_of(build.version.engine).memory_beside_buffers)
    sizes = replace(plain, memory_bytes=least)
    server = make_server(build, sizes, Durability.RELAXED, disk_folder / "my", {})
    assert isinstance(server, InnodbServer)
    try:
        create(server, sizes)
        server.start()
        server.end_loading()
        pool = int(server.settings()["innodb_buffer_pool_size"])
        given = own_sizes(build.version.engine, sizes, {}).buffer_bytes
        assert pool == pytest.approx(given, abs=2 * MIB)
        assert server.cache_use().limit_bytes == pytest.approx(pool, rel=0.05)
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS test")
            cursor.execute("CREATE TABLE test.large (id INT AUTO_INCREMENT PRIMARY KEY, filler BLOB)")
            cursor.execute("INSERT INTO test.large (filler) VALUES (REPEAT('x', 8000))")
            (file,) = server.data.glob("*/large.ibd")
            while file.stat().st_size < 1.3 * server.cache_use().limit_bytes:
                cursor.execute("INSERT INTO test.large (filler) SELECT filler FROM test.large LIMIT 1000")
        use = server.cache_use()
        assert use.used_bytes > 0.75 * use.limit_bytes
        assert server.death() is None
    finally:
        server.destroy()


def test_the_group_goes_with_the_server_or_with_the_next_session(
    disk_folder: Path, postgres_18: Build
) -> None:
    with limited(postgres_18, disk_folder, 128 * MIB) as server:
        (group,) = groups_below(disk_folder)
        members = (group.folder / "cgroup.procs").read_text().split()
        assert str(server.pid) in members
    assert groups_below(disk_folder) == []
    with limited(postgres_18, disk_folder, 128 * MIB) as server:
        os.kill(server.pid, 9)
        time.sleep(0.1)
        clean(disk_folder)  # as the next session does with the folder of one that was killed
        assert groups_below(disk_folder) == []
