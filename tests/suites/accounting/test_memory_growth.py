"""Growth per query: a leak is its bytes, and what is allocated once is none, whenever that is."""

from collections.abc import Callable, Mapping

import pytest

from suites.accounting.memory_growth import memory_values
from suites.accounting.work_curve import TotalsReading
from suites.metrics import BUFFER_POOL, MEMORY_GROWTH, SERVER_MEMORY

QPS, SECONDS, EVERY = 2000.0, 7.0, 0.25
PAGE = 4096
CLIENTS = (11, 12, 13, 14)
POSTMASTER, CHECKPOINTER, WORKER = 1, 2, 99

Memory = Callable[[float], Mapping[int, float]]
"""The private bytes of each process after so many queries."""


def measured(
    memory: Memory, pool: Callable[[float], float] | None = None, *, restarted: bool = False
) -> dict[str, float]:
    """The metrics of a server that works all the time, read in pages at moments that no slice knows."""
    readings = []
    for number in range(round(SECONDS / EVERY) + 4):
        seconds = 0.1 + number * EVERY
        done = min(QPS * seconds, QPS * SECONDS)
        private = {pid: int(held // PAGE) * PAGE for pid, held in memory(done).items()}
        totals = {} if pool is None else {BUFFER_POOL: pool(done)}
        readings.append(TotalsReading(seconds, totals, private))
    return memory_values(readings, ((0.0, 0.0), (SECONDS, QPS * SECONDS)), restarted=restarted)


def backends(grown: Callable[[float, int], float]) -> Memory:
    """Processes of Postgres, of which each backend has grown by so much, given queries and its place."""

    def memory(done: float) -> Mapping[int, float]:
        grow = {pid: 3e6 + grown(done, place) for place, pid in enumerate(CLIENTS)}
        return {POSTMASTER: 5e6, CHECKPOINTER: 1e6, **grow}

    return memory


@pytest.mark.parametrize("leak", [20, 136, 520])
def test_a_leak_is_its_bytes_a_query(leak: int) -> None:
    values = measured(backends(lambda done, _: leak * done / len(CLIENTS)))
    assert values[MEMORY_GROWTH] == pytest.approx(leak, rel=0.02, abs=3)
    assert values[SERVER_MEMORY] == pytest.approx(18e6 + 0.75 * leak * QPS * SECONDS, rel=0.02)


@pytest.mark.parametrize("at", [0.1, 0.55, 0.75, 0.9])
def test_what_grows_once_is_no_leak(at: float) -> None:
    """A sort of 4 MB, or caches of a connection: all of it in the warm-up, or at any one moment."""
    step = measured(backends(lambda done, _: 4e6 * (done > at * QPS * SECONDS)))
    assert step[MEMORY_GROWTH] == 0
    assert (step[SERVER_MEMORY] > 30e6) is (at < 0.75), "the median of the second half"
    scattered = measured(backends(lambda done, place: 4e6 * (done > (at + place / 8) * QPS * SECONDS)))
    assert 0 <= scattered[MEMORY_GROWTH] < 20
    warm = measured(backends(lambda done, _: min(done, 3000) * 1000))
    assert warm[MEMORY_GROWTH] == 0


def test_memory_that_queries_take_and_give_back_is_no_leak() -> None:
    """A hash table of 8 MB that fills within four readings, and is freed at once."""
    values = measured(backends(lambda done, _: done % 2000 * 4000))
    assert values[MEMORY_GROWTH] <= 0


def test_processes_that_come_and_go_are_no_growth() -> None:
    def memory(done: float) -> Mapping[int, float]:
        vacuums = {WORKER: 9e6} if int(done / 3000) % 2 else {}
        return {**backends(lambda done, _: 0.0)(done), **vacuums}

    values = measured(memory)
    assert values[MEMORY_GROWTH] == 0
    assert values[SERVER_MEMORY] == pytest.approx(18e6, rel=0.001)


def test_connections_of_each_slice_show_the_leak_and_not_their_beginning() -> None:
    """As of pgbench: connections are opened anew every 3,500 queries, and then grow."""

    def memory(done: float) -> Mapping[int, float]:
        slice_, within = divmod(done, 3500)
        grown = 2e6 * min(1, within / 400) + 136 * within / len(CLIENTS)
        clients = {100 * (1 + int(slice_)) + pid: 3e6 + grown for pid in CLIENTS}
        return {POSTMASTER: 5e6, **clients}

    assert measured(memory)[MEMORY_GROWTH] == pytest.approx(136, abs=8)


def test_a_connection_for_each_transaction_shows_nothing_of_growth() -> None:
    values = measured(lambda done: {POSTMASTER: 5e6, 100 + int(done): 3e6})
    assert MEMORY_GROWTH not in values
    assert values[SERVER_MEMORY] == pytest.approx(8e6, rel=0.01)


def test_a_buffer_pool_that_fills_is_no_growth_of_its_process() -> None:
    def pool(done: float) -> float:
        return 1e7 + 600 * done

    values = measured(lambda done: {1: 4e8 + pool(done) + 50 * done}, pool)
    assert values[MEMORY_GROWTH] == pytest.approx(50, abs=3)
    assert values[SERVER_MEMORY] == pytest.approx(4e8, rel=0.01)
    assert values[BUFFER_POOL] == pytest.approx(pool(QPS * SECONDS), rel=0.02)


def test_new_connections_of_each_run_are_no_leak() -> None:
    grows = backends(lambda done, _: 500 * done)
    assert MEMORY_GROWTH in measured(grows)
    values = measured(grows, restarted=True)
    assert MEMORY_GROWTH not in values
    assert values[SERVER_MEMORY] > 0


def test_nothing_is_known_of_work_that_no_reading_saw() -> None:
    assert memory_values([TotalsReading(1.0, {}, {1: 5})], ()) == {}
    assert memory_values([TotalsReading(9.0, {}, {1: 5})], ((0.0, 0.0), (1.0, 100.0))) == {}
