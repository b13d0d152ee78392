"""Real servers with a declared disk: their load gets what is declared, once its data are loaded."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from build.files import flush_file_system
from build.finished_build import Build
from suites.control_groups.declared import DiskSpeed, LimitError
from suites.control_groups.group import DiskLimit, make_group
from suites.control_groups.storage import device_of
from suites.engines import make_server
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability
from suites.postgres.server import PostgresServer
from suites.server import Server
from tests.new_servers.data_directories import create
from tests.suites.control_groups.disk_folders import folder_on_disk
from tests.suites.innodb_servers import ROOM
from tests.suites.servers import MIB

pytestmark = pytest.mark.server

IOPS = 100
SECONDS = 4.0
WINDOWS = 5


@pytest.fixture
def disk_folder() -> Iterator[Path]:
    """A folder on a disk whose speed can be limited."""
    try:
        limit = DiskLimit(device_of(Path("/tmp")), DiskSpeed(IOPS))
    except LimitError as error:
        pytest.skip(str(error))
    with folder_on_disk([limit]) as folder:
        yield folder


def writes_of(server: Server) -> int:
    """The writes of the server so far."""
    used = server.disk_use()
    assert used is not None
    _, writes = used.requests
    return writes


def writes_per_second(server: Server) -> float:
    """Let one client commit durably for a while."""
    assert isinstance(server, InnodbServer | PostgresServer)
    with contextlib.ExitStack() as stack:
        connection: Any = stack.enter_context(server.connect())
        cursor = stack.enter_context(connection.cursor())
        cursor.execute("CREATE SCHEMA IF NOT EXISTS own")
        cursor.execute("CREATE TABLE IF NOT EXISTS own.kept (filler text)")
        before, began = writes_of(server), time.monotonic()
        while time.monotonic() < began + SECONDS:
            cursor.execute("INSERT INTO own.kept (filler) VALUES (repeat('x', 1000))")
        return (writes_of(server) - before) / (time.monotonic() - began)


def require_declared(server: Server) -> None:
    """Fail unless a server soon writes as often as declared, neither more nor less.

    The kernel counts a write when it is submitted: a batch of pages that waits in its queue at the end of a
    window is in the figure of that window and lacks in the next. Other work on the disk, such as other
    tests, may keep the server from its share. Without the limit all windows have twice as many and more.
    """
    seen: list[float] = []
    while len(seen) < WINDOWS:
        seen.append(writes_per_second(server))
        if 0.85 * IOPS <= seen[-1] <= 1.15 * IOPS:
            return
    pytest.fail(f"writes per second: {seen}, declared: {IOPS}")


@pytest.mark.parametrize("engine", ["mysql_9", "postgres_18"])
def test_commits_get_the_declared_writes_once_data_are_loaded(
    request: pytest.FixtureRequest, disk_folder: Path, engine: str
) -> None:
    build: Build = request.getfixturevalue(engine)
    sizes = replace(ROOM, disk=DiskSpeed(IOPS))
    server = make_server(build, sizes, Durability.FULL, disk_folder / "server", {})
    try:
        create(server, sizes)
        server.start()
        unlimited = writes_per_second(server)
        if unlimited < 2 * IOPS:
            pytest.skip(f"the disk is too slow for this: {unlimited:.0f} writes per second")
        server.end_loading()
        require_declared(server)
        server.keep()
        server.restore()
        server.start()
        require_declared(server)
    finally:
        server.destroy()


def test_what_the_kernel_writes_from_the_page_cache_counts(disk_folder: Path) -> None:
    made = make_group("tidemark-writer", [DiskLimit(device_of(disk_folder), DiskSpeed(10**6))])
    try:
        size = 32 * MIB
        with (disk_folder / "written").open("wb") as file:
            writer = made.entered_by(["head", "-c", str(size), "/dev/zero"])
            subprocess.run(writer, stdout=file, check=True, env={})
        flush_file_system(disk_folder)
        used = made.disk_use()
        assert used is not None
        assert size <= used.amounts[1] < 1.2 * size
    finally:
        made.remove()
