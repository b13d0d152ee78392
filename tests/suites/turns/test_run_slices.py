"""Servers that take turns in one step: what is recorded of each, and who is to blame. No real server."""

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from build.version import Engine
from suites.control_groups.declared import DiskUse, MemoryUse
from suites.generators.load import CountedLoad, CountedWork, Load, LoadError, Observer, Share, WorkLimit
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import DEADLOCKS, METRICS
from suites.profiling.perf import Perf
from suites.profiling.profiler import Profiled, Profiling
from suites.profiling.stacks import StepProfile
from suites.server import Address, ClientStates, ResetError, Server, ServerError
from suites.slices import Schedule, mirrored
from suites.turns import run
from suites.turns.failures import ServerDiedError
from suites.turns.run import run_slices
from tests.suites.engines.test_postgres_configuration import build_of
from tests.suites.turns.test_step import LOAD, NOBODY, STEP

SHARE = Share(mirrored(range(2), 4, 1, "seed"), round=3)
GONE = "killed by SIGKILL; the end of its log:\nPANIC"


class FakeServer:
    """A server that notes in `calls` what is asked of it."""

    def __init__(self, release: str, calls: list[str]) -> None:
        self.build = build_of(release)
        self.calls = calls
        self.address = Address(Engine.POSTGRES, Path(f"/{release}/.s.PGSQL.5432"), "someone", "somewhere")
        self.pid, self.cores = NOBODY, 1
        self.chosen: dict[str, str] = {}
        self.totals = iter([1000.0, 51_000.0])
        self.fails: dict[str, Exception] = {}
        self.dies_after = 10**9
        """After so many questions whether it lives it does not."""

    def _note(self, what: str) -> None:
        self.calls.append(f"{what} {self.build.release}")
        if what in self.fails:
            raise self.fails[what]

    def keeping_row_versions(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def errors_logged(self) -> list[str]:
        return []

    def death(self) -> str | None:
        self.dies_after -= 1
        return GONE if self.dies_after < 0 else None

    def roles(self) -> Mapping[int, str]:
        return {}

    def debt(self) -> Mapping[str, float]:
        return {"debt_dead_tuples": 7.0}

    def open_client_states(self) -> contextlib.AbstractContextManager[ClientStates]:
        return contextlib.nullcontext(ClientStates(dict))

    def open_activities(self) -> contextlib.AbstractContextManager[Callable[[], Collection[str]]]:
        def read() -> Collection[str]:
            if "activities" in self.fails:
                raise self.fails["activities"]
            return ()

        return contextlib.nullcontext(read)

    def cache_use(self) -> MemoryUse:
        return MemoryUse(0, 1)

    def disk_use(self) -> DiskUse | None:
        return None

    def checkpoint_meter(self) -> Callable[[], float]:
        return lambda: True

    def log_meter(self) -> Callable[[], None]:
        return lambda: None

    def open_counters(self) -> contextlib.AbstractContextManager[Callable[[], Mapping[str, float]]]:
        def read() -> Mapping[str, float]:
            if "meanwhile" in self.fails:
                raise self.fails["meanwhile"]
            return {}

        return contextlib.nullcontext(read)

    def counters(self) -> Mapping[str, float]:
        self._note("counters")
        total = next(self.totals)
        return {"wal_bytes_per_op": total, DEADLOCKS: total}

    def reset(self) -> Mapping[str, float]:
        self._note("reset")
        return {"reset_seconds": 0.5 if self.build.release == "17.11" else 0.25}


def as_servers(fakes: Sequence[FakeServer]) -> Sequence[Server]:
    """What is asked of a server during a step is asked of the fakes."""
    return cast("Sequence[Server]", fakes)


class FakeGenerator:
    """Both servers get through the same number of queries; the second one in half the time."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        self.fails: Exception | None = None
        self.share = SHARE
        self.loads = [LOAD, replace(LOAD, seconds=1.0, watched_queries=4000.0)]

    def version(self) -> str:
        return "fake 1.0"

    def load(self, address: Address) -> None:
        raise AssertionError("the data are there")

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer) -> Load:
        raise AssertionError("they take turns")

    def statements(self, address: Address, step: Step) -> list[str]:
        return []

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        raise AssertionError("nothing is counted while others work")

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        assert (step, share) == (STEP, self.share)
        assert [address.socket.parent.name for address in addresses] == ["17.11", "18.6"][: len(observers)]
        self.calls.append("alternate")
        for observer in observers:
            observer.begin(NOBODY)
            observer.end(NOBODY)
        if self.fails:
            raise self.fails
        return self.loads


class Fakes:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.servers = [FakeServer("17.11", self.calls), FakeServer("18.6", self.calls)]
        self.generator = FakeGenerator(self.calls)

    def run(self, share: Share = SHARE, *, resets: bool = True) -> list[Measurement]:
        self.generator.share = share
        return run_slices(as_servers(self.servers), self.generator, STEP, share, 7.0, resets=resets)

    def blamed(self) -> ServerDiedError:
        with pytest.raises(ServerDiedError) as caught:
            self.run()
        return caught.value


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    made = Fakes()
    clock = iter(range(10**6))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) / 10)
    monkeypatch.setattr(time, "sleep", lambda seconds: made.calls.append(f"sleep {seconds:g}"))
    return made


def naps(fakes: Fakes) -> list[str]:
    """Everything that was done, without the waiting for a server's end."""
    return [call for call in fakes.calls if call != "sleep 0.05"]


# --- what is done and recorded


def test_the_order_of_a_step(fakes: Fakes) -> None:
    """Nothing is reset before everything is counted: it would count what is cleaned up meanwhile."""
    fakes.run()
    counters = ["counters 17.11", "counters 18.6"]
    assert fakes.calls == [*counters, "alternate", *counters, "reset 17.11", "reset 18.6", "sleep 7"]


def test_every_other_round_resets_from_the_last_to_the_first(fakes: Fakes) -> None:
    """Whoever comes second has cleaned up in the background meanwhile, and looks quicker than it is."""
    first, other = fakes.run(replace(SHARE, round=4))
    assert fakes.calls[-3:] == ["reset 18.6", "reset 17.11", "sleep 7"]
    assert (first.values["reset_seconds"], other.values["reset_seconds"]) == (0.5, 0.25)


def test_each_server_has_its_own_numbers(fakes: Fakes) -> None:
    first, other = (measured.values for measured in fakes.run())
    assert (first["qps"], other["qps"]) == (500, 1000)
    assert first.keys() == other.keys() <= METRICS.keys()
    # Divided by the queries that the counters cover: 1000 were counted, 4000 with those that warmed up.
    assert (first["wal_bytes_per_op"], other["wal_bytes_per_op"]) == (50, 12.5)
    assert first[DEADLOCKS] == other[DEADLOCKS] == 50_000, "events are counted"
    assert "server_cpu_us_per_op" not in first, "the process is nobody's"
    assert first["reset_seconds"] == 0.5


def test_the_machine_is_nobodys_while_several_work(fakes: Fakes) -> None:
    first, other = fakes.run()
    assert not any(name.startswith("machine") for name in [*first.values, *other.values])


def test_the_machine_is_that_of_a_server_alone(fakes: Fakes) -> None:
    fakes.servers.pop()
    fakes.generator.loads.pop()
    (alone,) = fakes.run(Share(Schedule(1, (0,) * 4), round=1))
    assert "machine_cpu_us_per_op" in alone.values


def test_without_a_reset(fakes: Fakes) -> None:
    """In mode long the reset comes after the last block only."""
    measured = fakes.run(resets=False)
    assert not any(call.startswith("reset") for call in fakes.calls)
    assert all("reset_seconds" not in of_server.values and not of_server.warnings for of_server in measured)


@pytest.mark.parametrize("is_last", [False, True])
def test_a_round_that_may_be_the_last_one_is_reset_once_that_is_known(fakes: Fakes, is_last: bool) -> None:
    asked: list[Sequence[Measurement]] = []

    def ends(measured: Sequence[Measurement]) -> bool:
        fakes.calls.append("asked")
        asked.append(measured)
        return is_last

    measured = run_slices(as_servers(fakes.servers), fakes.generator, STEP, SHARE, 7.0, ends=ends)
    after = fakes.calls[fakes.calls.index("asked") + 1 :]
    assert after == (["reset 17.11", "reset 18.6", "sleep 7"] if is_last else [])
    assert ["qps" in values and "reset_seconds" not in values for values in map(_values, *asked)] == [
        True
    ] * 2
    of_reset = {"reset_seconds", "debt_dead_tuples"}
    assert [of_reset <= values.keys() for values in map(_values, measured)] == [is_last] * 2
    assert [of_reset.isdisjoint(values) for values in map(_values, measured)] == [not is_last] * 2


def _values(measured: Measurement) -> Mapping[str, float]:
    return measured.values


def test_a_reset_that_could_not_be_finished_is_a_warning_of_its_server(fakes: Fakes) -> None:
    fakes.servers[1].fails["reset"] = ResetError("77 dead tuples are left", metrics={"reset_seconds": 9.0})
    first, other = fakes.run()
    assert first.warnings == []
    assert other.warnings == ["not reset: 77 dead tuples are left"]
    assert other.values["reset_seconds"] == 9
    assert fakes.calls[-1] == "sleep 7"


def test_activities_that_are_not_known_are_a_warning_of_their_server(fakes: Fakes) -> None:
    fakes.servers[0].fails["activities"] = ServerError("it does not answer")
    first, other = fakes.run()
    assert first.warnings == ["checkpoints and vacuums are not known: it does not answer"]
    assert other.warnings == []


# --- who is to blame


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("what", ["counters", "meanwhile", "reset"])
def test_a_server_that_does_not_answer(fakes: Fakes, place: int, what: str) -> None:
    fakes.servers[place].fails[what] = ServerError("it does not answer")
    error = fakes.blamed()
    assert error.place == place
    assert error.what == "it does not answer"
    assert error.__cause__ is fakes.servers[place].fails[what]


@pytest.mark.parametrize(("dead", "said"), [(1, 0), (1, 1), (0, None), (1, None)])
def test_the_dead_server_is_blamed_whoever_complains(fakes: Fakes, dead: int, said: int | None) -> None:
    fakes.generator.fails = LoadError("sysbench failed", place=said)
    fakes.servers[dead].dies_after = 0
    error = fakes.blamed()
    assert error.place == dead
    release = fakes.servers[dead].build.version
    assert error.what == f"{release} died during insert: {GONE}"
    assert error.__cause__ is fakes.generator.fails
    assert naps(fakes)[-1] == "alternate"


def test_a_server_that_is_gone_a_moment_later(fakes: Fakes) -> None:
    """Clients notice before the postmaster is gone."""
    fakes.generator.fails = LoadError("sysbench failed", place=1)
    fakes.servers[1].dies_after = 3
    error = fakes.blamed()
    assert (error.place, error.what) == (1, f"postgres@18.6 died during insert: {GONE}")


@pytest.mark.parametrize("place", [0, 1, None])
def test_a_load_generator_that_failed_while_all_servers_live(fakes: Fakes, place: int | None) -> None:
    fakes.generator.fails = LoadError("sysbench was killed by signal 9", place=place)
    error = fakes.blamed()
    assert (error.place, error.what) == (place, "sysbench was killed by signal 9")


def test_profiles_come_after_the_counters_and_before_the_resets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the profiled slices write is nobody's WAL per query; a reset would leave nothing to profile."""
    calls: list[str] = []
    servers, generator = [FakeServer("17.11", calls), FakeServer("18.6", calls)], FakeGenerator(calls)
    profile = StepProfile("cpu-clock", 997.0, 100.0, 0, {"client backend;main;a;b": 500})

    def after(*_: object) -> list[Profiled]:
        calls.append("profile")
        return [Profiled(profile), Profiled(None, "no profile: perf ended")]

    monkeypatch.setattr(run, "profile_after", after)
    profiling = Profiling(Perf("perf", "cpu-clock"), 1, 0.5)
    first, second = run_slices(as_servers(servers), generator, STEP, SHARE, 0, profiling=profiling)
    last_counters = max(place for place, call in enumerate(calls) if call.startswith("counters"))
    first_reset = min(place for place, call in enumerate(calls) if call.startswith("reset"))
    assert last_counters < calls.index("profile") < first_reset
    assert (first.profile, second.profile) == (profile, None)
    assert (list(first.warnings), list(second.warnings)) == ([], ["no profile: perf ended"])


def test_a_load_that_fails_while_it_is_profiled_costs_the_profile_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    servers, generator = [FakeServer("17.11", calls), FakeServer("18.6", calls)], FakeGenerator(calls)

    def after(*_: object) -> list[Profiled]:
        raise LoadError("sysbench failed", place=1)

    monkeypatch.setattr(run, "profile_after", after)
    profiling = Profiling(Perf("perf", "cpu-clock"), 1, 0.5)
    measured = run_slices(as_servers(servers), generator, STEP, SHARE, 0, profiling=profiling)
    assert all(of_server.values["qps"] > 0 and of_server.profile is None for of_server in measured)
    assert all("no profile: sysbench failed" in of_server.warnings[0] for of_server in measured)


def test_a_server_that_dies_while_it_is_profiled_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    servers, generator = [FakeServer("17.11", calls), FakeServer("18.6", calls)], FakeGenerator(calls)

    def after(*_: object) -> list[Profiled]:
        servers[1].dies_after = 0
        raise LoadError("sysbench failed", place=1)

    monkeypatch.setattr(run, "profile_after", after)
    profiling = Profiling(Perf("perf", "cpu-clock"), 1, 0.5)
    with pytest.raises(ServerDiedError, match="killed by SIGKILL") as caught:
        run_slices(as_servers(servers), generator, STEP, SHARE, 0, profiling=profiling)
    assert caught.value.place == 1
