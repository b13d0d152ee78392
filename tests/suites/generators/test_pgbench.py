"""Reading what pgbench prints and logs, from real captures; and its command line."""

import json
import math
from dataclasses import asdict
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from build.version import Engine
from suites.definition import load_suite
from suites.generators.load import LoadError, WorkLimit
from suites.generators.pgbench.client import Pgbench
from suites.generators.pgbench.transcript import (
    PgbenchTranscript,
    histogram_of,
    kinds_in,
    logged_transactions,
)
from suites.server import Address
from tests.suites.engines.test_postgres_configuration import build_of
from tests.suites.golden import lines, require_golden
from tests.suites.servers import small

ADDRESS = Address(Engine.POSTGRES, Path("/srv/data/1/.s.PGSQL.5432"), "someone", "somewhere")
NOTHING = np.empty((0, 3))


def transcript(*read: str) -> PgbenchTranscript:
    made = PgbenchTranscript()
    for line in read:
        made.read(line)
    return made


# --- reports


@pytest.mark.parametrize("major", [13, 18])
def test_a_real_report(major: int) -> None:
    load = transcript(*lines(f"pgbench-{major}.txt")).load(7, NOTHING)
    require_golden(f"pgbench-{major}.json", json.dumps(asdict(load), indent=1) + "\n")


@pytest.mark.parametrize("major", [13, 18])
def test_the_numbers_of_a_real_report_agree_with_each_other(major: int) -> None:
    load = transcript(*lines(f"pgbench-{major}.txt")).load(7, NOTHING)
    assert load.queries == 7 * load.transactions
    assert load.seconds == pytest.approx(3, abs=0.1)
    assert load.errors == 0
    assert len(load.per_second) in (2, 3)
    assert load.watched_seconds == pytest.approx(len(load.per_second) - 1, abs=0.1)
    assert load.watched_queries == pytest.approx(sum(load.per_second[1:]), rel=0.02)
    assert load.watched_queries < load.queries
    assert load.latency_ms.keys() == {"mean"}


def test_failed_transactions_are_errors() -> None:
    load = transcript(*lines("pgbench-failures.txt")).load(4, NOTHING)
    (processed,) = [line for line in lines("pgbench-failures.txt") if "actually processed" in line]
    assert load.errors > 0
    assert processed.endswith(f": {load.transactions}/60")
    assert load.transactions + load.errors == 60


def test_a_second_without_a_transaction_is_a_second() -> None:
    """pgbench 18 prints zeros for it, and 13 a latency that is not a number."""
    ticks = [
        "progress: 1.0 s, 100.0 tps, lat 9.9 ms stddev 0.1, 0 failed",
        "progress: 2.0 s, 0.0 tps, lat 0.000 ms stddev 0.000, 0 failed",
        "progress: 3.0 s, 0.0 tps, lat -nan ms stddev -nan",
    ]
    whole = [line for line in lines("pgbench-18.txt") if not line.startswith("progress")]
    assert transcript(*ticks, *whole).load(2, NOTHING).per_second == (200.0, 0.0, 0.0)


def test_ticks_are_told_from_other_lines() -> None:
    said = [PgbenchTranscript().read(line) for line in lines("pgbench-18.txt")]
    assert sum(said) == 3


def test_every_cut_report_is_noticed() -> None:
    whole = lines("pgbench-18.txt")
    for end in range(len(whole)):
        with pytest.raises(LoadError, match="is incomplete"):
            transcript(*whole[:end]).load(7, NOTHING)


def test_a_run_without_a_transaction() -> None:
    none = [line.replace("processed: ", "processed: 0 of ") for line in lines("pgbench-18.txt")]
    with pytest.raises(LoadError, match="finished no transaction"):
        transcript(*none).load(7, NOTHING)


wording = (
    "progress: |1.0 s, |. s, |1.2.3 tps|7.5 tps|tps = |nan|5|٣| ms|latency average = "
    "|number of failed transactions: | (without initial connection time)"
)
pieces = st.sampled_from(wording.split("|"))


beginnings = st.sampled_from(["progress: 1.0 s, 7.5 tps", "latency average = 5 ms", "tps = ", ""])


@given(st.one_of(st.text(), st.tuples(beginnings, st.lists(pieces).map("".join)).map("".join)))
def test_any_line_is_a_tick_a_figure_of_the_report_or_nothing(line: str) -> None:
    read = transcript()
    assert read.read(line) == (len(read.ticks) == 1)
    figures = [*chain.from_iterable(read.ticks), *read.summary.values()]
    assert all(math.isfinite(figure) and figure >= 0 for figure in figures)
    assert len(figures) == (2 if read.ticks else len(read.summary))
    assert not figures or line.startswith(("progress: ", "number of ", "latency average = ", "tps = "))


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_tick_holds_its_figures(seconds: float, rate: float) -> None:
    read = transcript(f"progress: {seconds:.1f} s, {rate:.1f} tps, lat 0.5 ms stddev 0.1, 0 failed")
    (tick,) = read.ticks
    assert tick == pytest.approx((seconds, rate), abs=0.051)


# --- latencies


def test_latencies_of_a_real_log(tmp_path: Path) -> None:
    """Transactions that failed have a word where the others have their microseconds."""
    logged = lines("pgbench-failures.log")
    (tmp_path / "log.100").write_text("\n".join(logged[:20]) + "\n")
    (tmp_path / "log.100.1").write_text("\n".join(logged[20:]) + "\n")
    failed = [line for line in logged if line.split()[2] == "failed"]
    found = logged_transactions(tmp_path)
    assert failed
    assert len(found) == len(logged) - len(failed)
    assert found[:, 0].sum() == sum(int(line.split()[2]) for line in logged if line not in failed)


def test_a_log_that_was_cut_short(tmp_path: Path) -> None:
    (tmp_path / "log.100").write_text("0 1 250 3 1 500000\n0 2 skipped 0 1 2\n0 3")
    assert logged_transactions(tmp_path).tolist() == [[250.0, 1.5, 3.0]]
    assert logged_transactions(tmp_path / "nothing").size == 0


def test_percentiles_come_from_the_log_in_milliseconds() -> None:
    latencies = np.array([(latency, 7 + latency / 1000, 0) for latency in range(1, 1001)], dtype=np.float64)
    load = transcript(*lines("pgbench-18.txt")).load(7, latencies)
    latency = load.latency_ms
    assert latency["p50"] == pytest.approx(0.5005)
    assert latency["p99"] == pytest.approx(0.99001)
    assert latency["p999"] == pytest.approx(0.999001)
    assert latency["max"] == 1.0
    assert load.longest_ms == (0.999, 1.0)


def test_the_histogram_of_a_log_counts_each_transaction() -> None:
    latencies = np.array([(latency, 7, 0) for latency in (0, 1, 250, 250, 20_000)], dtype=np.float64)
    histogram = histogram_of(latencies)
    assert [*histogram.values()] == [2, 2, 1]
    assert [*histogram] == pytest.approx([0.001, 0.25, 20.0], rel=0.011)
    assert histogram_of(latencies[:0]) == {}


def logged(*transactions: tuple[float, float, int]) -> NDArray[np.float64]:
    return np.array(transactions, dtype=np.float64)


def test_each_of_several_scripts_has_its_own_share_and_latency() -> None:
    """The first second, in which clients connect and fill their caches, is in no latency."""
    cold = [(9000.0, 7.1, 0), (9000.0, 7.2, 1)]
    found = kinds_in(logged(*cold, (1000.0, 8.2, 0), (2000.0, 8.4, 1), (4000.0, 9.2, 1)), ("a", "b"), 500)
    assert {name: kind.transactions for name, kind in found.items()} == {"a": 200, "b": 300}
    assert found["a"].latency_ms["mean"] == 1.0
    assert found["b"].latency_ms["mean"] == found["b"].latency_ms["second"] == 3.0
    assert found["b"].latency_ms["max"] == 4.0
    assert kinds_in(logged(*cold), ("a", "b"), 2)["a"].latency_ms["mean"] == 9.0, "nothing came later"


def test_a_single_script_is_what_the_step_itself_is_about() -> None:
    transactions = logged((1000.0, 8.2, 0), (2000.0, 8.4, 1))
    assert kinds_in(transactions, ("a",), 2) == kinds_in(transactions, ("a", "a"), 2) == {}
    assert kinds_in(NOTHING, ("a", "b"), 0) == {}
    repeated = kinds_in(transactions, ("a", "b", "a"), 2)
    assert [kind.transactions for kind in repeated.values()] == [1, 1]


# --- the command line


def arguments(work: WorkLimit, threads: int = 4) -> list[str]:
    suite = load_suite("pgbench")
    generator = Pgbench(suite, small(threads=threads), build_of("18.6"))
    return generator.arguments(ADDRESS, suite.steps[0], work)


def test_the_command_line_says_everything_that_a_step_depends_on() -> None:
    words = arguments(WorkLimit(7.4, None))
    assert words[0] == "/nowhere/bin/pgbench"
    assert words[-1] == "--builtin=tpcb-like"
    assert set(words) >= {
        "--host=/srv/data/1",
        "--port=5432",
        "--username=someone",
        "--client=4",
        "--jobs=4",
        "--protocol=prepared",
        "--no-vacuum",
        "--random-seed=20260101",
        "--time=7",
    }


def test_fixed_work_is_shared_among_the_clients() -> None:
    words = arguments(WorkLimit(7.4, 1000))
    assert "--transactions=250" in words
    assert not any(word.startswith("--time") for word in words)
    assert "--transactions=1" in arguments(WorkLimit(1, 2))
    assert "--time=1" in arguments(WorkLimit(0.2, None))


def test_the_captures_are_of_two_wordings() -> None:
    """pgbench 13 does not say its version; its summary is worded as none since 14 words it."""
    assert any(line.startswith("pgbench (18.") for line in lines("pgbench-18.txt"))
    assert any("excluding connections establishing" in line for line in lines("pgbench-13.txt"))
