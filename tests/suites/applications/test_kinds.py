"""Kinds of transactions and arrivals at a rate, as sysbench prints them. No server."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.generators.kinds import BUCKET_WIDTH, BUCKETS, kind_in
from suites.generators.load import LoadError
from suites.generators.transcript import SysbenchTranscript
from suites.metrics import METRICS, OVERLOADED
from suites.turns.turn import MAX_LATE_SECONDS, MIN_ACHIEVED, kind_values, load_values, overload
from tests.suites.generators.test_sysbench import transcript
from tests.suites.golden import lines

SLICES = "sysbench-slices.txt"


def kind_line(
    latencies_us: list[float], name: str = "payment", thread: int = 0, deadlocks: int = 0, refused: int = 0
) -> str:
    """What suites/generators/tidemark/transactions.lua prints of one thread."""
    buckets: dict[int, int] = {}
    for latency in latencies_us:
        bucket = min(math.floor(math.log(max(latency, 1)) / math.log(BUCKET_WIDTH)), BUCKETS - 1)
        buckets[bucket] = buckets.get(bucket, 0) + 1
    counted = "".join(f" {bucket}:{count}" for bucket, count in sorted(buckets.items()))
    return (
        f"tidemark: kind {name} of thread {thread} done {len(latencies_us)} failed {deadlocks}"
        f" serialisation 0 deadlock {deadlocks} duplicate-key 0 refused {refused} all {len(latencies_us) + 3}"
        f" sum_ms {sum(latencies_us) / 1000:.3f} max_ms {max(latencies_us, default=0) / 1000:.3f}:{counted}"
    )


def reading(*said: str) -> SysbenchTranscript:
    return transcript(*lines(SLICES), *said)


@pytest.mark.deep("simulates many rounds, or waits for real processes")
@given(
    st.lists(st.lists(st.floats(1, 1e8), max_size=40), min_size=1, max_size=4).filter(
        lambda threads: sum(map(len, threads)) > 0
    )
)
def test_percentiles_over_threads_are_within_two_per_cent(threads: list[list[float]]) -> None:
    """The percentile is the least latency up to which there is that share of all."""
    said = [kind_line(latencies, thread=number) for number, latencies in enumerate(threads)]
    kind = reading(*said).load().kinds["payment"]
    everything = sorted(latency for latencies in threads for latency in latencies)
    assert kind.transactions == len(everything)
    assert kind.committed == len(everything) + 3 * len(threads)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        exact = everything[math.ceil(share * len(everything) - 1e-9) - 1] / 1000
        assert kind.latency_ms[name] == pytest.approx(exact, rel=0.02, abs=1e-3), name


def test_kinds_are_told_apart_and_become_metrics() -> None:
    load = reading(
        kind_line([1000, 2000], deadlocks=2),
        kind_line([4000], thread=1, deadlocks=1, refused=4),
        kind_line([500], name="delete"),
        kind_line([], name="never"),
    ).load()
    assert load.errors == 3
    values = kind_values(load)
    assert values.keys() == {"payment", "delete", "never"} - {"never"}
    assert values["payment"]["tps"] == pytest.approx(3 / load.seconds)
    assert (values["payment"]["retried_deadlock"], values["payment"]["refused_transactions"]) == (3, 4)
    assert load_values(load)["retried_deadlock"] == 3
    assert {name for kind in values.values() for name in kind} <= METRICS.keys()


@pytest.mark.parametrize(
    "damaged",
    [
        kind_line([1000, 2000]).replace("done 2", "done 3"),
        kind_line([1000, 2000]).replace("all 5", "all 1"),
        kind_line([1000]) + f" {BUCKETS}:1",
    ],
)
def test_a_histogram_that_does_not_add_up_is_refused(damaged: str) -> None:
    with pytest.raises(LoadError, match="cannot be"):
        reading(damaged).load()


def test_other_lines_are_no_kinds() -> None:
    assert kind_in("tidemark: kind Payment of thread 0 done 1") is None
    assert kind_in(kind_line([1.0]).replace("done 1", f"done {'9' * 400}")) is None


def test_at_a_rate_latency_counts_from_when_it_was_due() -> None:
    """sysbench's own latency begins with the transaction, however long that waited."""
    waited = [250_000.0] * 3
    arrivals = "tidemark: arrivals of thread 0 due 3 late_ms 249.000"
    load = reading(kind_line(waited), arrivals).load()
    assert load.latency_ms["mean"] == pytest.approx(250)
    assert load.due == 3
    assert load.late_seconds == pytest.approx(0.249)
    assert reading(kind_line(waited)).load().latency_ms["mean"] < 100


def test_a_server_that_does_not_keep_up_is_overloaded() -> None:
    done = reading(kind_line([1000.0])).load().transactions
    for due, late, expected in (
        (done, 0, 0),
        (int(done / MIN_ACHIEVED), 0, 0),
        (int(done / MIN_ACHIEVED) + 2, 0, 1),
        (done, MAX_LATE_SECONDS * 1000 + 1, 1),
    ):
        load = reading(
            kind_line([1000.0]), f"tidemark: arrivals of thread 0 due {due} late_ms {late:.3f}"
        ).load()
        assert len(overload(load)) == expected
        assert load_values(load)[OVERLOADED] == expected
