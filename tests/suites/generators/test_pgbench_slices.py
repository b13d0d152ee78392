"""pgbench on servers that take turns: one run for each slice, added up."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.version import Engine
from suites.definition import load_suite
from suites.generators.load import KindLoad, Load, LoadError, Observer, Share, WorkLimit
from suites.generators.pgbench.client import Pgbench
from suites.generators.separate_runs.slices import sum_of
from suites.keys.step import Step
from suites.server import Address
from suites.slices import Schedule
from suites.turns.turn import kind_values, load_values
from tests.suites.engines.test_postgres_configuration import build_of
from tests.suites.generators.test_sysbench_slices import Noting
from tests.suites.servers import small

SUITE = load_suite("pgbench")
SCHEDULE = Schedule(3, (0, 1, 0, 1, 1, 0), warming=2)
ADDRESSES = [Address(Engine.POSTGRES, Path(f"/srv/{n}/.s.PGSQL.5432"), "someone", "it") for n in (1, 2)]

amounts = st.integers(1, 10**6)
loads = st.builds(
    Load,
    transactions=amounts,
    queries=amounts.map(float),
    seconds=st.floats(0.5, 100),
    errors=st.integers(0, 10),
    per_second=st.lists(st.floats(0, 1e6), max_size=4).map(tuple),
    latency_ms=st.fixed_dictionaries(
        {"mean": st.floats(0, 10), "p99": st.floats(0, 100), "max": st.floats(0, 1000)}
    ),
    watched_queries=amounts.map(float),
    watched_seconds=st.floats(0, 100),
)


@given(st.lists(loads, min_size=1, max_size=5))
def test_the_sum_of_loads(parts: list[Load]) -> None:
    whole = sum_of(parts)
    for name in ("transactions", "queries", "seconds", "errors", "watched_queries", "watched_seconds"):
        assert getattr(whole, name) == pytest.approx(sum(getattr(part, name) for part in parts))
    assert whole.per_second == tuple(
        rate for part in parts for rate in part.per_second[1:] or part.per_second
    )
    assert whole.latency_ms["max"] == max(part.latency_ms["max"] for part in parts)
    for name in ("mean", "p99"):
        found = [part.latency_ms[name] for part in parts]
        assert min(found) - 1e-9 <= whole.latency_ms[name] <= max(found) + 1e-9


def test_the_sum_of_one_load_is_that_load() -> None:
    load = Load(5, 35.0, 1.0, 0, (35.0,), {"mean": 1.0, "p99": 2.0, "max": 3.0}, 30.0, 0.9)
    assert sum_of([load]) == replace(load, restarted=True)


def test_the_first_second_of_a_restarted_run_does_not_count_in_its_rate() -> None:
    """Clients that connect fill their caches: of slices of 3 s that would cost the rate some per cent."""
    cold = Load(250, 1750.0, 3.0, 0, (700.0, 700.0), {"mean": 1.0}, 1400.0, 2.0)
    values = load_values(sum_of([cold, cold]))
    assert (values["qps"], values["tps"]) == (700.0, 100.0)
    assert load_values(cold)["tps"] == pytest.approx(250 / 3)
    shortest = sum_of([replace(cold, watched_queries=0.0, watched_seconds=0.0)])
    assert load_values(shortest)["tps"] == pytest.approx(250 / 3)


def test_a_percentile_that_one_part_lacks_is_not_of_the_whole() -> None:
    """A slice in which nothing was logged."""
    known = Load(5, 35.0, 1.0, 0, (), {"mean": 1.0, "p99": 2.0, "max": 3.0}, 30.0, 0.9)
    bare = Load(5, 35.0, 1.0, 0, (), {"mean": 3.0}, 30.0, 0.9)
    assert sum_of([known, bare]).latency_ms == {"mean": 2.0}


class Recording(Pgbench):
    """Notes each run instead of carrying it out; a server's load is its number of transactions."""

    def __init__(self) -> None:
        super().__init__(SUITE, small(), build_of("18.6"))
        self.runs: list[tuple[str, WorkLimit, int]] = []
        self.fails_at = -1

    def run(self, address: Address, step: Step, work: WorkLimit, observer: Observer, turn: int = 0) -> Load:
        server = address.socket.parent.name
        if len(self.runs) == self.fails_at:
            raise LoadError("pgbench failed", place=0)
        self.runs.append((server, work, turn))
        observer.begin(len(self.runs))
        observer.end(len(self.runs))
        return Load(int(server), 7.0 * int(server), 1.0, 0, (), {"mean": 1.0}, 1.0, 1.0)


def alternate(generator: Pgbench, observers: Sequence[Noting], number: int = 1) -> list[Load]:
    return generator.alternate(ADDRESSES, SUITE.steps[0], Share(SCHEDULE, number), observers)


def test_one_run_for_each_slice_that_counts() -> None:
    generator, observers = Recording(), [Noting(), Noting()]
    found = alternate(generator, observers)
    assert [server for server, _, _ in generator.runs] == ["1", "2", "2", "1"]
    assert {work for _, work, _ in generator.runs} == {WorkLimit(3, None)}
    assert [load.transactions for load in found] == [2, 4]
    assert [pid for _, pid in observers[1].told] == [2, 2, 3, 3]
    for load in found:
        assert [queries for _, queries in load.progress] == [0, *[load.queries / 2] * 2, load.queries]
    times = [[seconds for seconds, _ in load.progress] for load in found]
    outer, inner = times
    assert [*outer[:2], *inner, *outer[2:]] == sorted(outer + inner), "A B B A"


def test_it_is_told_which_server_works_next() -> None:
    """So that no other one is asked meanwhile."""
    told: list[int] = []
    Recording().alternate(
        ADDRESSES, SUITE.steps[0], Share(SCHEDULE, 1, works=told.append), [Noting(), Noting()]
    )
    assert told == [0, 1, 1, 0]


def test_all_servers_draw_the_same_and_new_numbers_in_each_slice_and_round() -> None:
    seen = []
    for number in (1, 2, 3):
        generator = Recording()
        alternate(generator, [Noting(), Noting()], number)
        drawn, other = ([turn for server, _, turn in generator.runs if server == name] for name in ("1", "2"))
        assert drawn == other
        seen += drawn
    assert len(set(seen)) == len(seen) == 6
    assert 0 not in seen, "the seed of a server that works alone"
    words = generator.arguments(ADDRESSES[0], SUITE.steps[0], WorkLimit(3, None), 5)
    assert f"--random-seed={SUITE.seed + 5}" in words


@pytest.mark.parametrize(("run", "place"), [(0, 0), (1, 1), (2, 1), (3, 0)])
def test_a_run_that_fails_is_blamed_on_its_server(run: int, place: int) -> None:
    generator = Recording()
    generator.fails_at = run
    with pytest.raises(LoadError) as caught:
        alternate(generator, [Noting(), Noting()])
    assert caught.value.place == place


def test_histograms_of_slices_are_one_if_all_are_known() -> None:
    load = Load(10, 10.0, 1.0, 3, (10.0,), {"mean": 1.0}, 10.0, 1.0)
    parts = [replace(load, histogram=histogram) for histogram in ({1.0: 7, 2.0: 3}, {2.0: 9, 30.0: 1})]
    assert sum_of(parts).histogram == {1.0: 7, 2.0: 12, 30.0: 1}
    assert sum_of([*parts, load]).histogram == {}


def test_the_scripts_of_slices_are_summed_and_their_mean_is_over_transactions() -> None:
    load = Load(10, 10.0, 1.0, 3, (10.0,), {"mean": 1.0}, 10.0, 1.0)
    first = {"a": KindLoad(6, {}, 0, 6, {"mean": 1.0, "max": 2.0}), "b": KindLoad(4, {}, 0, 4, {"mean": 5.0})}
    second = {"a": KindLoad(2, {}, 0, 2, {"mean": 3.0, "max": 9.0}), "b": KindLoad(0, {}, 0, 0, {})}
    whole = sum_of([replace(load, kinds=kinds) for kinds in (first, second)])
    assert whole.kinds == {
        "a": KindLoad(8, {}, 0, 8, {"mean": 1.5, "max": 9.0}),
        "b": KindLoad(4, {}, 0, 4, {"mean": 5.0}),
    }
    assert not {"retried_deadlock", "refused_transactions"} & load_values(whole).keys(), (
        "pgbench does not say"
    )
    assert kind_values(whole)["a"]["tps"] == pytest.approx(8 / 20 * load_values(whole)["tps"])


def test_causes_of_failures_that_did_not_occur_are_counted_too() -> None:
    """A cause is compared only where both versions have it, so that none of it is a count as well."""
    load = Load(10, 10.0, 1.0, 3, (10.0,), {"mean": 1.0}, 10.0, 1.0, longest_ms=(7.0,))
    parts = [replace(load, failed={"serialisation": count, "deadlock": 0}) for count in (0, 3)]
    assert sum_of(parts).failed == {"serialisation": 3, "deadlock": 0}
    assert sum_of(parts).longest_ms == (7.0, 7.0)
    assert sum_of([load]).failed == {}
