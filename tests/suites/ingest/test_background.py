"""Transactions beside the clients, timed steps and held transactions, as far as no server is needed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from build.version import Engine
from suites.accounting.costs import Meter
from suites.definition import load_suite
from suites.generators.kinds import background_in, kind_in, merged
from suites.generators.load import (
    BackgroundLoad,
    Load,
    LoadError,
    Observer,
    Share,
    WorkLimit,
    committed_in,
)
from suites.generators.sysbench import TIMED_SECONDS, Sysbench
from suites.generators.transcript import SysbenchTranscript
from suites.keys.step import Step
from suites.metrics import METRICS, OVERLOADED
from suites.server import Address
from suites.sizing import Hardware, sizes
from suites.slices import Schedule
from suites.turns.turn import MAX_LATE_SECONDS, MIN_ACHIEVED, kind_values, load_values, overload
from tests.suites.applications.test_kinds import SLICES, kind_line
from tests.suites.golden import lines
from tests.suites.servers import small
from tests.suites.turns.test_step import NOBODY

SUITE = load_suite("insert-benchmark")
SCHEDULE = Schedule(0.5, (0, 1, 1, 0, 0, 1), warming=2)
ADDRESSES = [Address(Engine.POSTGRES, Path(f"/srv/{n}/.s.PGSQL.5432"), "someone", "it") for n in (1, 2)]


def step_of(name: str) -> Step:
    (step,) = SUITE.select((name,))
    return step


def beside(kind: str, due: int, done: int, late_ms: float = 1.0, apart: int = 1, thread: int = 1) -> str:
    """What suites/generators/tidemark.lua prints of a connection in the background."""
    return (
        f"tidemark: background {kind} of thread {thread} due {due} done {done}"
        f" late_ms {late_ms:.3f} apart {apart}"
    )


def reading(*said: str, queries: float | None = 1.0) -> SysbenchTranscript:
    read = SysbenchTranscript(queries)
    for line in (*lines(SLICES), *said):
        read.read(line)
    return read


# --- what sysbench prints


def test_a_real_report_of_queries_beside_writers() -> None:
    read = SysbenchTranscript(1.0)
    for line in lines("sysbench-background.txt"):
        read.read(line)
    load = read.load()
    assert load.queries == load.transactions == load.kinds["range"].transactions == 1254
    assert read.summary["queries"] > load.watched_queries + 2 * 59, "sysbench counts the writers' too"
    assert {kind: (tally.due, tally.done) for kind, tally in load.background.items()} == {
        "insert": (59, 59),
        "delete": (59, 59),
    }
    assert load.kinds["insert"].latency_ms["second"] == 49.93
    assert committed_in(load)["insert"] == committed_in(load)["delete"] == 89
    assert not overload(load)


def test_queries_are_those_of_the_clients_alone() -> None:
    """sysbench counts the queries of all its connections, of which the others are no part of the step."""
    load = reading(queries=3.0).load()
    counted = reading(queries=None)
    assert load.queries == 3 * load.transactions
    assert load.watched_queries == 3 * (load.transactions + counted.warming)
    assert counted.load().queries != pytest.approx(load.queries)


LOADS = st.builds(
    BackgroundLoad,
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6).map(lambda late: late / 1000),
    st.integers(0, 100),
)


@given(st.lists(LOADS, min_size=1, max_size=5))
def test_threads_of_a_kind_add_up(threads: list[BackgroundLoad]) -> None:
    said = [
        beside("delete", thread.due, thread.done, thread.late_seconds * 1000, thread.most_apart, number)
        for number, thread in enumerate(threads)
    ]
    read = [found for line in said if (found := background_in(line))]
    assert [kind for kind, _ in read] == ["delete"] * len(threads)
    total = None
    for _, tally in read:
        total = merged(total, tally)
    assert total is not None
    assert (total.due, total.done) == (
        sum(thread.due for thread in threads),
        sum(thread.done for thread in threads),
    )
    assert total.late_seconds == pytest.approx(max(thread.late_seconds for thread in threads))
    assert total.most_apart == max(thread.most_apart for thread in threads)


@given(st.lists(st.lists(st.integers(0, 10**7), max_size=6), min_size=1, max_size=4))
def test_the_slowest_of_each_second_is_that_of_all_threads(threads: list[list[int]]) -> None:
    said = [
        f"tidemark: longest insert of thread {number}:"
        + "".join(f" {longest / 1000:.3f}" for longest in seconds)
        for number, seconds in enumerate(threads)
    ]
    load = reading(kind_line([10.0], "insert"), *said).load()
    wanted = [
        max((seconds[second] for seconds in threads if second < len(seconds)), default=0) / 1000
        for second in range(max(map(len, threads)))
    ]
    assert load.kinds["insert"].longest_ms == pytest.approx(wanted)
    median = kind_values(load)["insert"].get("latency_second_ms")
    assert (median is None) == (not any(wanted))
    assert median is None or min(value for value in wanted if value) <= median <= max(wanted)


def test_other_lines_are_nothing_in_the_background() -> None:
    assert background_in(beside("delete", 1, 1).replace("apart 1", "apart")) is None
    assert background_in(beside("delete", 1, 1) + " more") is None
    assert kind_in("tidemark: longest insert of thread 0: 1.5 x") is None


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(LoadError, match="cannot be"):
        reading(beside("delete", 10**14, 1)).load()


# --- rates that are missed


@pytest.mark.parametrize(
    ("due", "done", "late_ms", "expected"),
    [
        (100, 100, 0.0, 0),
        (100, round(100 * MIN_ACHIEVED), 0.0, 0),
        (100, round(100 * MIN_ACHIEVED) - 1, 0.0, 1),
        (100, 100, MAX_LATE_SECONDS * 1000 + 1, 1),
        (0, 7, 5000.0, 0),
    ],
)
def test_a_step_whose_background_is_late_or_incomplete_is_overloaded(
    due: int, done: int, late_ms: float, expected: int
) -> None:
    load = reading(beside("insert", 100, 100), beside("delete", due, done, late_ms, apart=5)).load()
    values = load_values(load)
    assert values.keys() <= METRICS.keys()
    assert values[OVERLOADED] == expected == len(overload(load))
    assert values["background_share"] == pytest.approx(done / due if due else 1)
    assert values["most_apart"] == 5
    assert all("deletes that" in said or "a delete began" in said for said in overload(load))


def test_without_a_rate_nothing_is_overloaded() -> None:
    values = load_values(reading(beside("delete", 0, 100)).load())
    assert values["most_apart"] == 1
    assert not values.keys() & {OVERLOADED, "background_share"}


# --- command lines and sizes


def test_each_client_has_connections_of_its_own_beside_it() -> None:
    step = step_of("qr1000").at(2)
    room = sizes(SUITE, SUITE.profile("smoke"), Hardware(4, 2**34), [step])
    assert room.connections == 2 * 3
    argv = Sysbench(SUITE, room).arguments_of_turns(ADDRESSES[0], step, Share(SCHEDULE, 1), 0, 100.0)
    assert {"--threads=6", "--background=insert:20,delete:20"} <= set(argv)


class Once(Sysbench):
    """sysbench of which only the order of its runs is of interest."""

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer) -> Load:
        assert (work.seconds, work.transactions) == (TIMED_SECONDS, 1)
        seconds = float(address.socket.parent.name)
        return Load(1, 1, seconds, 0, (), {}, 1, seconds)


@pytest.mark.parametrize("order", [(0, 1, 1, 0), (1, 0, 0, 1)])
def test_a_timed_step_runs_once_on_each_server(order: tuple[int, ...]) -> None:
    step = step_of("l-x")
    generator = Once(SUITE, small(threads=4))
    meters = [Meter(NOBODY, shared=True) for _ in ADDRESSES]
    loads = generator.alternate(ADDRESSES, step, Share(Schedule(0.5, order), 1), meters)
    assert [load.seconds for load in loads] == [1, 2]
    assert generator.sizes.clients_of(step) == 1


# --- what a suite.toml may say


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"rate": 5.0, "background": {"delete": 1.0}}, "background: not beside rate"),
        ({"timed": True, "background": {"delete": 1.0}}, "timed: one transaction has no rate"),
        ({"timed": True, "most_work_to_rows": 1.0}, "timed: one transaction has no rate"),
        ({"background": {"delete": -1.0}}, "greater than or equal to 0"),
        ({"background": {"Delete": 1.0}}, "String should match pattern"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(keys: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Step.model_validate({"name": "some", "title": "some", **keys})


def test_every_paced_step_is_checked() -> None:
    for step in SUITE.steps:
        if "delete" in step.background:
            asked = {check.name for check in SUITE.checks if step.name in check.steps}
            assert "pace" in asked, step.name
            assert asked & {"purchases", "few"}, step.name
