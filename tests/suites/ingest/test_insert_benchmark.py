"""The insert benchmark on real servers: its roles, its checks, and what goes wrong."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.checking.data_checks import DataChecks, DataError
from suites.checking.queries import connected
from suites.definition import Suite, load_suite
from suites.engines import make_server
from suites.generators.load import Generator, Share
from suites.generators.registry import make_generator
from suites.keys.check import CheckOccasion
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import METRICS
from suites.server import Server
from suites.sizing import Hardware, Sizes, max_transactions, sizes
from suites.slices import Schedule
from suites.turns.failures import ServerDiedError
from suites.turns.run import run_slices

pytestmark = pytest.mark.server

BUILDS = {"postgres": "postgres_18", "mysql": "mysql_9", "mariadb": "mariadb_11"}
SUITE = load_suite("insert-benchmark")
SLICE, SLICES = 0.25, 5


@dataclass
class Started:
    """A server with the loaded data, on which steps follow one another."""

    server: Server
    room: Sizes
    generator: Generator
    committed: Counter[str] = field(default_factory=Counter)

    @property
    def checks(self) -> DataChecks:
        return DataChecks(SUITE.checks, "smoke", self.room.data.rows_by_table)

    def measure(self, step: Step, seconds: float = SLICE) -> Measurement:
        """What a step gives in one slice of warm-up and some more."""
        share = Share(Schedule(seconds, (0,) * SLICES, 1), 1, max_transactions(step, self.room))
        servers, committed = [self.server], [self.committed]
        (measured,) = run_slices(
            servers, self.generator, step, share, 0.0, checks=self.checks, committed=committed
        )
        assert measured.values.keys() <= METRICS.keys()
        return measured


@pytest.fixture(params=BUILDS)
def started(server_folder: Path, request: pytest.FixtureRequest) -> Iterator[Started]:
    yield from _started(server_folder, request.getfixturevalue(BUILDS[request.param]))


@pytest.fixture
def postgres(server_folder: Path, postgres_18: Build) -> Iterator[Started]:
    yield from _started(server_folder, postgres_18)


def _started(folder: Path, build: Build) -> Iterator[Started]:
    profile = SUITE.profile("smoke").model_copy(update={"scale": (1, 1)})
    room = sizes(SUITE, profile, Hardware(2, 1), SUITE.steps)
    server = make_server(build, room, Durability.RELAXED, folder / "s", {})
    try:
        server.create()
        server.start()
        generator = make_generator(SUITE, room, [build])
        generator.load(server.address)
        yield Started(server, room, generator)
    finally:
        server.destroy()


def step_of(name: str, suite: Suite = SUITE, **changes: object) -> Step:
    (step,) = suite.select((name,))
    return step.model_copy(update=changes)


def test_every_step_keeps_its_promises(started: Started) -> None:
    assert started.checks.require(started.server.address, CheckOccasion.LOADED) is not None
    loaded = started.measure(step_of("l-i0"))
    assert 0 < loaded.values["transactions"] <= 100, "fixed work, and the check has counted the rows"
    assert "overload" not in loaded.values
    indexed = started.measure(step_of("l-x"))
    assert indexed.values["statement_seconds"] == pytest.approx(1 / indexed.values["qps"])
    started.committed.clear()  # what was inserted into another table
    for name in ("qr1000", "qp1000", "l-i1-held"):
        step = step_of(name)
        measured = started.measure(step)
        inserted, deleted = (started.committed[kind] for kind in ("insert", "delete"))
        assert inserted == deleted > 0, name
        assert measured.values["most_apart"] <= 8
        if any(step.background.values()):
            # Beside other work no server holds a rate.
            assert measured.values["overload"] == any("overloaded" in text for text in measured.warnings)
            assert 0 < measured.values["background_share"] <= 1
            assert set(measured.kinds) == {"insert", "delete", str(step.options["workload"])}
            assert measured.values["tps"] == pytest.approx(measured.values["qps"])
            assert measured.kinds["insert"]["latency_second_ms"] <= measured.kinds["insert"]["latency_max_ms"]
    debt = measured.values.get("debt_dead_tuples", 50 * measured.values.get("debt_history", 0))
    held = measured.kinds["delete"]["transactions"]
    assert debt >= 50 * held, "nothing is removed while the transaction is open"
    with connected(started.server.address) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM purchases WHERE transactionid > 9000")
    with pytest.raises(DataError, match=r"check constant .*check purchases"):
        started.checks.require(started.server.address, CheckOccasion.STEP, "l-i1-held", started.committed)


def test_writers_that_miss_their_rate_give_no_verdict(postgres: Started) -> None:
    step = step_of("qr1000", background={"insert": 100_000.0, "delete": 100_000.0})
    measured = postgres.measure(step)
    assert measured.values["overload"] == 1
    assert measured.values["background_share"] < 0.95
    assert any("inserts that were due" in warning for warning in measured.warnings)


def test_a_server_that_is_killed_during_the_step_is_blamed(postgres: Started) -> None:
    def kill() -> None:
        deadline = time.monotonic() + 20
        with connected(postgres.server.address) as connection, connection.cursor() as cursor:
            while time.monotonic() < deadline:
                cursor.execute("SELECT COUNT(*) FROM purchases WHERE transactionid > 10000")
                if cursor.fetchone()[0]:
                    break
                time.sleep(0.01)
        os.kill(postgres.server.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.raises(ServerDiedError, match="died during l-i1-held: killed by") as error:
            postgres.measure(step_of("l-i1-held", most_work_to_rows=1.0), seconds=1.0)
    finally:
        killer.join()
    assert error.value.place == 0
