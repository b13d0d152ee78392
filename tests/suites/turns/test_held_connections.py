"""Held connections: the order of opening, the slopes of what is read, and real servers."""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from build.finished_build import Build
from suites.accounting.proc import ProcessMemory, server_memory
from suites.definition import load_suite
from suites.engines import make_server
from suites.generators.connections import AT_ONCE, Connections, HeldConnections, OpeningTranscript
from suites.generators.load import LoadError, Share
from suites.generators.programs import lines_of_all
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.server import Server
from suites.sizing import Sizes, equal_tables
from suites.slices import Schedule
from suites.turns import held_connections as module
from suites.turns.failures import ServerDiedError
from suites.turns.held_connections import SAMPLES, HeldServer, hold_connections
from tests.new_servers.data_directories import create
from tests.suites.servers import MIB

SUITE = load_suite("connections")
IDLE, USED = (step.model_copy(update={"clients": (2, 4)}) for step in SUITE.steps)
SHARE = Share(Schedule(1.0, (0,)), 1)
ROOM = Sizes(1, equal_tables(2, 300, 600 * 300), 64 * MIB, 256 * MIB, 600 * 900, workers=2, most_clients=16)
PREPARED = 9 * 2
"""The statements of a transaction on two tables, without BEGIN and COMMIT."""


# --- without servers


class Opened:
    """Stands for what a process of sysbench holds."""

    def __init__(self, count: int) -> None:
        self.count, self.seconds, self.prepared, self.is_open = count, count / 10, 7, True

    def require_held(self) -> None:
        assert self.is_open

    def close(self) -> None:
        self.is_open = False


class Opening(Connections):
    """Opens nothing, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.opened: list[tuple[str, Opened]] = []

    def hold(self, address: Any, step: Step, count: int, *, scan: bool = False) -> HeldConnections:
        self.asked.append((str(address), count))
        self.opened.append((str(address), Opened(count)))
        return cast(HeldConnections, self.opened[-1][1])


def a_server(name: str, pid: int) -> Server:
    return cast(Server, SimpleNamespace(address=name, pid=pid, death=lambda: None))


def test_levels_ascend_and_slopes_are_those_of_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = Opening()
    seen: dict[int, int] = {}

    def memory(pid: int) -> ProcessMemory:
        """Of the middle one of three samples; a process that came and went is in the others."""
        seen[pid] = seen.get(pid, 0) + 1
        n = sum(group.count for name, group in generator.opened if name == "ab"[pid]) - 1
        stray = 50_000 if seen[pid] % SAMPLES == 0 else 0
        return ProcessMemory(9000 + 800 * n + stray, 3000 + (100 + 10 * pid) * n + stray, 500, 40 + 5 * n)

    monkeypatch.setattr(module, "server_memory", memory)
    monkeypatch.setattr(module, "SAMPLE_SECONDS", 0)
    step = USED.model_copy(update={"clients": (10, 20, 90)})
    first, second = hold_connections([a_server("a", 0), a_server("b", 1)], generator, step, SHARE, 0)
    assert first.values == {
        "connection_kib": 105,
        "connection_kib_low": 105,
        "connection_kib_high": 105,
        "connection_page_tables_kib": 5,
        "connection_rss_kib": 800,
        "connects_per_second": 10,
        "connection_statements": 7,
    }
    assert second.values["connection_kib"] == 115
    assert generator.asked == [
        *(("a", 1), ("b", 1)),
        *(("a", 10), ("b", 10)),
        *(("b", 10), ("a", 10)),
        *(("a", AT_ONCE), ("a", 20), ("b", AT_ONCE), ("b", 20)),
    ]
    assert not any(group.is_open for _, group in generator.opened)


def test_a_report_of_opening_that_cannot_be_is_refused() -> None:
    transcript = OpeningTranscript()
    with pytest.raises(LoadError, match="opened no connection"):
        _ = transcript.seconds
    transcript.read("tidemark: connected 0 from 12.5 to 11.0")
    transcript.read("tidemark: holding 0 with 90 prepared statements or more")
    assert transcript.prepared == []
    with pytest.raises(LoadError, match="reports what cannot be"):
        _ = transcript.seconds


def told(text: str) -> Generator[tuple[int, int, str]]:
    """The lines of a program that prints `text`."""
    yield from lines_of_all([["sh", "-c", text]], 20)


TWO_LINES = "echo tidemark: connected 0 from 1.5 to 2.0; echo tidemark: holding 0 with 9 prepared statements;"


def require_for_seconds(held: HeldConnections, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        held.require_held()


def test_a_program_that_ends_while_it_holds_connections_is_seen() -> None:
    held = HeldConnections(told(f"{TWO_LINES} exec sleep 60"), 1)
    assert (held.seconds, held.prepared) == (0.5, 9)
    held.require_held()
    held.close()

    held = HeldConnections(told(f"{TWO_LINES} exec sleep 0.3"), 1)
    with pytest.raises(LoadError, match="sysbench ended while it held connections"):
        require_for_seconds(held, 10)
    held.close()


def test_connections_that_are_refused_say_why() -> None:
    with pytest.raises(LoadError) as caught:
        HeldConnections(told("echo FATAL: sorry, too many clients already; exit 1"), 1)
    assert "too many clients already" in str(caught.value)
    with pytest.raises(LoadError, match="sysbench ended before it held 2 connections"):
        HeldConnections(told(TWO_LINES), 2)


# --- real servers


def served(
    build: Build, server_folders: Callable[[], AbstractContextManager[Path]]
) -> Iterator[tuple[Server, Connections]]:
    with server_folders() as folder:
        server = make_server(build, ROOM, Durability.RELAXED, folder / "s", {})
        try:
            create(server, ROOM)
            server.start()
            generator = Connections(SUITE, ROOM)
            generator.load(server.address)
            yield server, generator
        finally:
            server.destroy()


@pytest.fixture(scope="module")
def postgres(
    server_folders: Callable[[], AbstractContextManager[Path]], postgres_18: Build
) -> Iterator[tuple[Server, Connections]]:
    yield from served(postgres_18, server_folders)


@pytest.fixture(scope="module")
def mysql(
    server_folders: Callable[[], AbstractContextManager[Path]], mysql_9: Build
) -> Iterator[tuple[Server, Connections]]:
    yield from served(mysql_9, server_folders)


@pytest.mark.server
@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_a_used_connection_costs_more_than_an_idle_one(engine: str, request: pytest.FixtureRequest) -> None:
    server, generator = request.getfixturevalue(engine)
    measured = []
    # What mysqld does behind four connections is some hundred KiB for each, as much as a used one costs.
    levels = {"clients": (8, 16)}
    used_a_little = USED.model_copy(update={**levels, "options": {"transactions": 4}})
    for step in (IDLE.model_copy(update=levels), used_a_little):
        # mysqld keeps what closed connections had, and gives it to the next ones.
        server.stop()
        server.start()
        measured.append(hold_connections([server], generator, step, SHARE, 0.1)[0].values)
    idle, used = measured
    assert idle["connection_statements"] == 0
    assert used["connection_statements"] == PREPARED
    assert max(100, idle["connection_kib"]) < used["connection_kib"] < 20_000
    assert idle["connects_per_second"] > 1
    if engine == "postgres":
        # Every backend maps the program and touches the same shared memory, which top shows for each.
        assert idle["connection_kib"] > 10
        assert used["connection_rss_kib"] > 2 * used["connection_kib"]


@pytest.mark.server
def test_statements_are_prepared_in_the_server_and_equal_levels_differ_by_nothing(
    mysql: tuple[Server, Connections],
) -> None:
    server, generator = mysql
    assert isinstance(server, InnodbServer)
    few = USED.model_copy(update={"options": {"transactions": 2}})
    held = HeldServer(server, generator, few)
    try:
        held.warm()
        held.rise_to(3)
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")
            assert [int(str(value)) for _, value in cursor.fetchall()] == [4 * PREPARED]
        first = server_memory(server.pid)
        held.rise_to(3)
        second = server_memory(server.pid)
        assert held.connections == 3
        assert abs(second.own - first.own) < 32 * 3
    finally:
        held.close()


@pytest.mark.server
def test_a_server_that_dies_with_its_connections_is_named(
    postgres: tuple[Server, Connections], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Last of this module's tests of Postgres: its server is gone afterwards."""
    server, generator = postgres
    samples: list[int] = []

    def memory(pid: int) -> ProcessMemory:
        samples.append(pid)
        if len(samples) > SAMPLES:
            os.kill(pid, signal.SIGKILL)
        return server_memory(pid)

    monkeypatch.setattr(module, "server_memory", memory)
    try:
        with pytest.raises(
            ServerDiedError, match="died while it held 2 connections: killed by SIGKILL"
        ) as caught:
            hold_connections([server], generator, IDLE, SHARE, 0)
    finally:
        server.abandon()
    assert caught.value.place == 0
