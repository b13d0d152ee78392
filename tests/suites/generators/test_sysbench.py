"""Reading what sysbench prints: real captures, cut and mangled ones; and its command line."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.version import Engine
from suites.definition import load_suite
from suites.generators.load import LoadError, WorkLimit
from suites.generators.sysbench import Sysbench
from suites.generators.transcript import SysbenchTranscript
from suites.processes import ProcessError, run
from suites.server import Address
from tests.suites.golden import lines, require_golden
from tests.suites.servers import small

CAPTURE = "sysbench-update-index.txt"
ADDRESS = Address(Engine.POSTGRES, Path("/srv/data/1/.s.PGSQL.5432"), "someone", "somewhere")


def transcript(*read: str) -> SysbenchTranscript:
    made = SysbenchTranscript()
    for line in read:
        made.read(line)
    return made


# --- a whole report


def test_a_real_report() -> None:
    load = transcript(*lines(CAPTURE)).load()
    require_golden("sysbench-update-index.json", json.dumps(asdict(load), indent=1) + "\n")


def test_the_numbers_of_a_real_report_agree_with_each_other() -> None:
    read = transcript(*lines(CAPTURE))
    load = read.load()
    begins, ends = zip(*read.threads, strict=True)
    assert len(begins) == 2
    assert load.seconds == max(ends) - min(begins)
    assert sum(read.counts) == load.transactions == load.queries
    assert len(load.per_second) == 3
    assert sum(load.per_second) / 3 == pytest.approx(load.queries / load.seconds, rel=0.01)
    latency = load.latency_ms
    assert round(latency["mean"], 2) == read.summary["avg"]
    assert latency["mean"] != read.summary["avg"], "sysbench rounds it to a hundredth"
    assert latency.keys() == {"mean", "max", "p50", "p95", "p99", "p999"}
    assert latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["p999"] <= latency["max"]
    reported = next(float(line.split()[-1]) for line in lines(CAPTURE) if "99th percentile:" in line)
    assert latency["p99"] == pytest.approx(reported, rel=0.05), "sysbench's histogram has 1024 buckets"


def test_seconds_come_from_the_report_when_the_script_says_nothing() -> None:
    read = [line for line in lines(CAPTURE) if not line.startswith("tidemark:")]
    (total,) = [line.split()[-1] for line in read if "total time:" in line]
    assert transcript(*read).load().seconds == float(total.removesuffix("s"))


def test_errors_and_queries_of_a_transaction_with_many() -> None:
    report = [
        "    transactions:                        50     (24.93 per sec.)",
        "    queries:                             1003   (499.98 per sec.)",
        "    ignored errors:                      3      (1.50 per sec.)",
        "    total time:                          2.0052s",
        "         avg:                                   40.10",
        "         max:                                  112.33",
    ]
    load = transcript(*report).load()
    assert (load.transactions, load.queries, load.errors) == (50, 1003, 3)
    assert load.latency_ms == {"mean": 40.10, "max": 112.33}


def test_the_idle_second_after_the_end_does_not_count() -> None:
    ticks = [f"[ {second}s ] thds: 1 tps: 5.00 qps: {second}.00 (r/w/o: 0/0/0)" for second in (1, 2, 3)]
    whole = [line for line in lines(CAPTURE) if not line.startswith(("tidemark", "["))]
    ended = "tidemark: thread 0 from 10.000000 to 12.100000"
    assert transcript(*ticks, ended, *whole).load().per_second == (1.0, 2.0)


# --- what is incomplete


@pytest.mark.parametrize("name", ["sysbench-server-killed.txt", "sysbench-no-table.txt"])
def test_the_report_of_a_failed_run(name: str) -> None:
    with pytest.raises(LoadError) as caught:
        transcript(*lines(name)).load()
    assert caught.value.what == "sysbench's report is incomplete"
    assert caught.value.where == "missing: avg, max, queries, total time, transactions"


def test_every_cut_before_the_last_needed_line_is_noticed() -> None:
    whole = lines(CAPTURE)
    last = next(place for place, line in enumerate(whole) if line.strip().startswith("max:"))
    transcript(*whole[: last + 1]).load()
    for end in range(last + 1):
        with pytest.raises(LoadError):
            transcript(*whole[:end]).load()


def test_a_run_without_a_transaction() -> None:
    none = [line.replace("transactions:   ", "transactions: 0 ") for line in lines(CAPTURE)]
    with pytest.raises(LoadError, match="finished no transaction"):
        transcript(*none).load()


pieces = st.sampled_from(
    ["[ 1s ] ", "qps: ", "1.2.3", "...", ".", " |***  ", "7", "٣", "transactions:", "max: ", "  avg:  ",
     "tidemark: thread ", "from ", " to ", "total time:", "-nan", "1e9", "s", " "]
)  # fmt: skip


@given(st.lists(st.one_of(st.text(), st.lists(pieces).map("".join)), max_size=20))
def test_no_line_is_too_strange_to_read(read: list[str]) -> None:
    made = transcript(*read)
    try:
        made.load()
    except LoadError:
        assert made.summary.get("transactions", 0) == 0 or len(made.summary) < 5


@pytest.mark.deep("simulates many rounds, or waits for real processes")
@given(st.lists(st.text(), max_size=10), st.integers(0, 1000))
def test_lines_that_mean_nothing_change_nothing(noise: list[str], place: int) -> None:
    whole = lines(CAPTURE)
    noise = ["# " + line for line in noise]
    cut = place % len(whole)
    assert transcript(*whole[:cut], *noise, *whole[cut:]).load() == transcript(*whole).load()


# --- the command line


def arguments(step: str, work: WorkLimit, threads: int = 3) -> list[str]:
    suite = load_suite("write-heavy")
    generator = Sysbench(suite, small(rows=5000, tables=2, threads=threads))
    return generator.arguments(ADDRESS, suite.select((step,))[0], work)


def test_the_command_line_says_everything_that_a_step_depends_on() -> None:
    words = set(arguments("read-write-10", WorkLimit(7.4, 123)))
    assert words >= {
        "--db-driver=pgsql",
        "--pgsql-host=/srv/data/1",
        "--pgsql-port=5432",
        "--pgsql-user=someone",
        "--pgsql-db=somewhere",
        "--tables=2",
        "--table_size=5000",
        "--threads=3",
        "--rand-seed=20260107",  # the suite's and the step's place
        "--rand-type=uniform",
        "--time=7",
        "--events=123",
        "--workload=read-write",
        "--range_size=10",
    }


def test_work_without_a_limit_is_zero_events_and_a_short_time_is_not_no_limit() -> None:
    words = arguments("insert", WorkLimit(0.2, None))
    assert "--events=0" in words
    assert "--time=1" in words


def test_sysbench_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProcessError) as caught:
        Sysbench(load_suite("write-heavy"), small())
    assert caught.value.what == "sysbench is not installed"
    assert caught.value.hint == "run ./tidemark setup, which installs it"


def test_a_script_anywhere_finds_the_shared_module_and_modules_of_its_own(tmp_path: Path) -> None:
    """Whatever the working folder has under the same name."""
    text = (load_suite("write-heavy").folder / "suite.toml").read_text()
    (tmp_path / "suite.toml").write_text(text.replace("write_heavy.lua", "mine.lua"))
    (tmp_path / "rows.lua").write_text('return {pad = {"Length of the pad", 60}}\n')
    (tmp_path / "mine.lua").write_text(
        'require("tidemark").script {options = require("rows"), event = function() end}\n'
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tidemark.lua").write_text("return nil\n")
    generator = Sysbench(load_suite(f"{tmp_path}/"), small())
    environment = {**os.environ, **generator.environment}
    command = [generator.program, str(tmp_path / "mine.lua"), "help"]
    said = run(command, what="sysbench help", cwd=elsewhere, env=environment)
    assert "--pad=N" in said
    assert "--walk_from=N" in said
