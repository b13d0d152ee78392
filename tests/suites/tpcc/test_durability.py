"""A server that is killed in the middle of tpcc has, after its recovery, what clients saw committed."""

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from build.build import Build
from suites.checking.data_checks import DataChecks
from suites.checking.queries import connected
from suites.definition import Suite
from suites.durability import Durability
from suites.engines import make_server
from suites.generators.load import WorkLimit
from suites.generators.sysbench import Sysbench
from suites.keys.check import CheckOccasion
from suites.server import Server
from suites.sizing import Hardware, Sizes, sizes
from tests.suites.tpcc.smaller import CUSTOMERS, DISTRICTS, smaller

pytestmark = pytest.mark.server

BUILDS = {"postgres": "postgres_18", "mysql": "mysql_9", "mariadb": "mariadb_11"}
CLIENTS = 2
ENOUGH = 150
"""Transactions that clients have seen committed when the server is killed."""
PATIENCE_SECONDS = 60

WITNESS = """
local run, seen = tidemark.transaction, nil
function tidemark.transaction(kind, ...)
   seen = seen or io.open("%s/" .. sysbench.tid, "w")
   local result = run(kind, ...)
   if result ~= tidemark.REFUSED then
      seen:write(kind, "\\n")
      seen:flush()
   end
   return result
end
"""
"""Writes down every transaction that a client has seen committed, before the client begins another one."""

FOUND = {
    "new-order": f"SELECT SUM(d_next_o_id - {CUSTOMERS + 1}) FROM district",
    "payment": "SELECT SUM(c_payment_cnt - 1) FROM customer",
    "delivery": f"SELECT SUM(c_delivery_cnt) / {DISTRICTS} FROM customer",
}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """The smaller suite, whose clients write down what they see."""
    (tmp_path / "seen").mkdir()
    (tmp_path / "tpcc").mkdir()
    suite = smaller(tmp_path / "tpcc")
    script = suite.folder / "tpcc.lua"
    first = 'local tidemark = require("tidemark")\n'
    text = script.read_text()
    assert first in text
    script.write_text(text.replace(first, first + WITNESS % (tmp_path / "seen")))
    return suite


@pytest.fixture(params=BUILDS)
def server(
    server_folder: Path, suite: Suite, room: Sizes, request: pytest.FixtureRequest
) -> Iterator[Server]:
    """With the loaded data; every commit is on stable storage before the client is told."""
    build: Build = request.getfixturevalue(BUILDS[request.param])
    started = make_server(build, room, Durability.FULL, server_folder / "s", {})
    try:
        started.create()
        started.start()
        Sysbench(suite, room).load(started.address)
        yield started
    finally:
        started.destroy()


@pytest.fixture
def room(suite: Suite) -> Sizes:
    return sizes(suite, suite.profile("smoke"), Hardware(cores=1, memory_bytes=1))


def seen(folder: Path) -> Counter[str]:
    """What clients saw committed, by kind; a line that is not whole was not seen."""
    lines = [line for file in folder.iterdir() for line in file.read_text().split("\n")[:-1]]
    return Counter(lines)


def found(server: Server) -> dict[str, int]:
    """What is in the data, by kind."""
    with connected(server.address) as connection, closing(connection.cursor()) as cursor:
        counts = {}
        for kind, query in FOUND.items():
            cursor.execute(query)
            ((counts[kind],),) = cursor.fetchall()
    return counts


def kill(server: Server) -> None:
    """Kill the server and all its processes, at once, as a crash does."""
    root = psutil.Process(server.pid)
    processes = [root, *root.children(recursive=True)]
    for process in processes:
        process.kill()
    psutil.wait_procs(processes, timeout=PATIENCE_SECONDS)


def test_what_clients_saw_committed_survives(
    server: Server, suite: Suite, room: Sizes, tmp_path: Path
) -> None:
    (step,) = suite.select((), "smoke")
    generator = Sysbench(suite, room)
    argv = [*generator.arguments(server.address, step, WorkLimit(PATIENCE_SECONDS, None)), "run"]
    client = subprocess.Popen(
        argv,
        env={**os.environ, **generator.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while seen(tmp_path / "seen").total() < ENOUGH and time.monotonic() < deadline:
            time.sleep(0.02)
        kill(server)
    finally:
        client.kill()
        client.wait()
    committed = seen(tmp_path / "seen")
    assert committed.total() >= ENOUGH
    server.stop()
    server.start()
    for kind, count in found(server).items():
        # Each client may have had a commit on its way whose answer it did not see.
        assert committed[kind] <= count <= committed[kind] + CLIENTS, (kind, committed)
    checks = DataChecks(suite.checks, "smoke", room.data.rows_by_table)
    assert checks.require(server.address, CheckOccasion.CRASH) is not None
