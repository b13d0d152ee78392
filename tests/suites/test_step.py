"""One step: the order of its parts, what it records, and who is to blame when it fails. No real server."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.build import Build
from build.version import Engine
from suites.definition import Profile, Step, load_suite
from suites.generators.load import Load, LoadError, Observer, Share, Work
from suites.measurement import METRICS
from suites.server import Address, ResetError, ServerError
from suites.step import load_values, most_transactions, run_step, spread
from tests.suites.servers import small
from tests.suites.test_configuration import build_of

LOAD = Load(
    transactions=500,
    queries=1000.0,
    seconds=2.0,
    errors=3,
    per_second=(400.0, 600.0),
    latency_ms={"mean": 4.0, "p50": 3.0, "p99": 9.0},
    watched_queries=800.0,
    watched_seconds=1.6,
)
STEP = Step(name="insert", title="Insert")
NOBODY = 2**22 + 1
"""No process has this id: pid_max is 2**22 at the most (proc(5))."""


class Fakes:
    """A server and a load generator that note what is asked of them."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.build: Build = build_of("18.6")
        self.address = Address(Engine.POSTGRES, Path("/nowhere/.s.PGSQL.5432"), "someone", "somewhere")
        self.pid = NOBODY
        self.cores = 1
        self.load_fails: Exception | None = None
        self.reset_fails: Exception | None = None

    def create(self) -> None:
        self.calls.append("create")

    start = stop = abandon = keep = restore = destroy = create

    def settings(self) -> Mapping[str, str]:
        return {}

    def death(self) -> str | None:
        self.calls.append("death")
        return "killed by SIGKILL; the end of its log:\nPANIC" if self.calls.count("death") == 2 else None

    def counters(self) -> Mapping[str, float]:
        self.calls.append("counters")
        return {"wal_bytes": 1000.0 if self.calls.count("counters") == 1 else 51_000.0}

    def reset(self) -> Mapping[str, float]:
        self.calls.append("reset")
        if self.reset_fails:
            raise self.reset_fails
        return {"reset_seconds": 0.5}

    def version(self) -> str:
        return "fake 1.0"

    def load(self, address: Address) -> None:
        del address

    def run(self, address: Address, step: Step, work: Work, observer: Observer) -> Load:
        assert (address, step, work) == (self.address, STEP, Work(1, 10))
        self.calls.append("load")
        observer.begin(NOBODY)
        observer.end(NOBODY)
        if self.load_fails:
            raise self.load_fails
        return LOAD

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        raise AssertionError("one server takes no turns")


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    made = Fakes()
    monkeypatch.setattr(time, "sleep", lambda seconds: made.calls.append(f"sleep {seconds:g}"))
    return made


def profile() -> Profile:
    return load_suite("write-heavy").profile("smoke").model_copy(update={"settle_seconds": 7.0})


# --- run_step


def test_the_order_of_a_step(fakes: Fakes) -> None:
    measurement = run_step(fakes, fakes, STEP, Work(1, 10), profile())
    assert fakes.calls == ["counters", "load", "counters", "reset", "sleep 7"]
    assert measurement.warnings == []
    assert measurement.per_second == (400.0, 600.0)


def test_what_a_step_records(fakes: Fakes) -> None:
    values = run_step(fakes, fakes, STEP, Work(1, 10), profile()).values
    assert values.keys() <= METRICS.keys()
    assert values["qps"] == 500
    assert values["wal_bytes_per_op"] == 50
    assert values["reset_seconds"] == 0.5
    assert values["server_cpu_us_per_op"] == 0
    assert "machine_cpu_us_per_op" in values


def test_a_reset_that_could_not_be_finished_is_a_warning(fakes: Fakes) -> None:
    fakes.reset_fails = ResetError("77 dead tuples are left", where="process 12")
    measurement = run_step(fakes, fakes, STEP, Work(1, 10), profile())
    assert measurement.warnings == ["not reset: 77 dead tuples are left\n  where: process 12"]
    assert measurement.values["qps"] == 500
    assert "reset_seconds" not in measurement.values
    assert fakes.calls[-1] == "sleep 7"


def test_a_server_that_dies_in_the_reset_is_no_warning(fakes: Fakes) -> None:
    fakes.reset_fails = ServerError("it died")
    with pytest.raises(ServerError, match="it died"):
        run_step(fakes, fakes, STEP, Work(1, 10), profile())


def test_a_server_that_died_is_blamed_and_not_the_load_generator(fakes: Fakes) -> None:
    """death() is asked again: clients notice a moment before the postmaster is gone."""
    fakes.load_fails = LoadError("sysbench was killed by signal 11")
    with pytest.raises(ServerError) as caught:
        run_step(fakes, fakes, STEP, Work(1, 10), profile())
    assert caught.value.what == (
        "postgres@18.6 died during insert: killed by SIGKILL; the end of its log:\nPANIC"
    )
    assert caught.value.__cause__ is fakes.load_fails
    assert "reset" not in fakes.calls


def test_a_load_generator_that_failed_is_blamed_while_the_server_lives(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.load_fails = LoadError("sysbench was killed by signal 9")
    monkeypatch.setattr(fakes, "death", lambda: None)
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with pytest.raises(LoadError) as caught:
        run_step(fakes, fakes, STEP, Work(1, 10), profile())
    assert caught.value is fakes.load_fails
    assert "reset" not in fakes.calls


# --- work


def test_most_steps_are_bound_by_time_only() -> None:
    assert most_transactions(STEP, small(rows=1000, tables=4)) is None


def test_a_step_that_uses_rows_up_ends_before_they_do() -> None:
    (delete,) = load_suite("write-heavy").select(("delete",))
    assert most_transactions(delete, small(rows=1000, tables=4)) == 2000
    assert most_transactions(delete, small(rows=1)) == 1


# --- values


def test_values_of_a_load() -> None:
    values = load_values(LOAD)
    assert values.keys() <= METRICS.keys()
    assert {name: values[name] for name in ("qps", "tps", "transactions", "seconds", "errors")} == {
        "qps": 500,
        "tps": 250,
        "transactions": 500,
        "seconds": 2,
        "errors": 3,
    }
    assert values["latency_mean_ms"] == 4
    assert values["latency_p50_ms"] == 3
    assert values["latency_p99_ms"] == 9
    assert values["qps_cv"] == pytest.approx(0.28284, abs=1e-5)


def test_spread_of_a_known_run() -> None:
    assert spread([100.0] * 10) == {"qps_cv": 0, "qps_p1_over_median": 1}
    found = spread([0.0, *[100.0] * 100])
    assert found["qps_cv"] == pytest.approx(0.1005, abs=1e-4)
    assert found["qps_p1_over_median"] == pytest.approx(1.0)
    assert spread([0.0, 0.0, 50.0, 100.0, 100.0])["qps_p1_over_median"] == pytest.approx(0.0)


@pytest.mark.parametrize("rates", [[], [5.0], [0.0, 0.0, 0.0]])
def test_too_few_seconds_have_no_spread(rates: list[float]) -> None:
    assert spread(rates) == {}


def test_a_run_that_mostly_stood_still_has_no_median_to_divide_by() -> None:
    assert spread([0.0, 0.0, 9.0]).keys() == {"qps_cv"}


rates = st.lists(st.floats(1, 1e6), min_size=2, max_size=100)


@given(rates, st.floats(0.001, 1000))
def test_spread_does_not_depend_on_the_unit(per_second: list[float], scale: float) -> None:
    scaled = spread([scale * rate for rate in per_second])
    for name, value in spread(per_second).items():
        assert scaled[name] == pytest.approx(value, rel=1e-6, abs=1e-9)


@given(rates)
def test_spread_does_not_depend_on_the_order(per_second: list[float]) -> None:
    assert spread(sorted(per_second)) == pytest.approx(spread(per_second))
    assert spread(per_second)["qps_cv"] >= 0
    assert 0 < spread(per_second)["qps_p1_over_median"] <= 1
