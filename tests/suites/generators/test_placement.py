"""Levels of clients: where both sides run, how long a slice is, and what is too much."""

import os
import resource
import subprocess
from pathlib import Path

import pytest

from build.version import parse_version
from suites import sizing
from suites.definition import load_suite
from suites.generators.load import WorkLimit
from suites.generators.placement import Placement, connect_seconds, placement, stretched
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.postgres.configuration import render
from suites.processes import bind
from suites.sizing import ClientsError, Hardware, Sizes, require_clients, sizes
from tests.suites.engines.test_postgres_configuration import build_of
from tests.suites.generators.test_sysbench import ADDRESS
from tests.suites.servers import small

GIB = 1024**3
SUITE = load_suite("write-heavy")
(STEP,) = SUITE.select(("insert",))
VERSION = parse_version("postgres@18.6")


def room(cores: int, *clients: int) -> Sizes:
    steps = SUITE.select(("insert",), "smoke", clients)
    return sizes(SUITE, SUITE.profile("smoke"), Hardware(cores, 64 * GIB, tuple(range(cores))), steps)


@pytest.mark.parametrize(
    ("cores", "clients", "server", "client"),
    [
        (2, 1, (1,), (1,)),
        (48, 1, (47,), (47,)),
        (2, 8, None, None),
        (7, 64, None, None),
        (8, 2, tuple(range(7)), (7,)),
        (48, 64, tuple(range(40)), tuple(range(40, 48))),
    ],
)
def test_where_a_level_runs(
    cores: int, clients: int, server: tuple[int, ...] | None, client: tuple[int, ...] | None
) -> None:
    assert placement(STEP.at(clients), room(cores, clients)) == Placement(server, client)


def test_a_step_without_levels_runs_where_it_always_did() -> None:
    assert placement(STEP, room(2)) == Placement((1,), (1,))
    assert placement(STEP, room(48)) == Placement(None, None)
    assert stretched(0.05, 3, STEP, room(2)) == 0.05


@pytest.mark.parametrize(
    ("clients", "cores", "seconds"),
    [(1, 2, 0.05), (8, 2, 0.05), (64, 2, 0.4), (64, 48, 0.05), (1024, 2, 1.5)],
)
def test_slices_are_longer_with_more_clients_per_core(clients: int, cores: int, seconds: float) -> None:
    assert stretched(0.05, 3.0, STEP.at(clients), room(cores, clients)) == pytest.approx(seconds)


def test_the_load_of_a_level_has_its_clients_and_a_seed_of_its_own() -> None:
    generator = Sysbench(SUITE, small())
    words = [generator.arguments(ADDRESS, STEP.at(count), WorkLimit(1, None)) for count in (1, 64)]
    assert "--threads=1" in words[0]
    assert "--threads=64" in words[1]
    seeds = [next(word for word in line if word.startswith("--rand-seed")) for line in words]
    assert seeds[0] != seeds[1]
    assert connect_seconds(64, 2) > 2 > connect_seconds(1, 2)


def test_the_highest_level_decides_how_many_may_connect() -> None:
    text = render(build_of("18.6"), room(2, 1, 64, 512), Durability.RELAXED, Path("/x"), {})
    assert "max_connections = 532\n" in text
    assert "max_connections = 21\n" in render(build_of("18.6"), room(2), Durability.RELAXED, Path("/x"), {})


# --- too many


def test_a_server_that_takes_fewer_connections() -> None:
    many, machine = room(2, 64), Hardware(2, 64 * GIB)
    require_clients(many, {VERSION: {"max_connections": "84"}}, machine)
    with pytest.raises(ClientsError, match="takes 83 connections: 64 clients and 20 others connect"):
        require_clients(many, {VERSION: {"max_connections": "83"}}, machine)


def test_a_machine_without_enough_memory() -> None:
    with pytest.raises(ClientsError, match=r"with 1024 clients does not fit into 8\.6 GB of memory"):
        require_clients(room(2, 1024), {VERSION: {}}, Hardware(2, 8 * GIB))


def test_open_files_are_raised_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 100_000))
    require_clients(room(2, 64), {VERSION: {}}, Hardware(2, 64 * GIB))
    assert raised == [(64 * sizing.FILES_OF_CLIENT + sizing.OTHER_FILES, 100_000)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 2048))
    with pytest.raises(ClientsError, match=r"64 clients need .* open files, of at most 2048"):
        require_clients(room(2, 64), {VERSION: {}}, Hardware(2, 64 * GIB))


def test_without_levels_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1, 1))
    require_clients(room(2), {VERSION: {"max_connections": "5"}}, Hardware(2, GIB))


def test_threads_that_run_already_are_bound_too() -> None:
    usable = sorted(os.sched_getaffinity(0))
    with subprocess.Popen(["sh", "-c", "sleep 20 & wait"]) as process:
        try:
            bind(process.pid, usable[:1])
            assert os.sched_getaffinity(process.pid) == {usable[0]}
        finally:
            process.terminate()
