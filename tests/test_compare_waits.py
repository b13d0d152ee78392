"""What queries wait for, as compare.py tells it beside a change of throughput."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison
from history.comparison.verdict import Verdict
from history.open import open_store
from history.rendering.csv_text import render_csv
from history.rendering.json_text import render_json
from history.store.records import SessionStatus
from suites.measurement import Measurement
from suites.profiling.stacks import CLIENT_STATES, StepProfile
from tests.history.handmade import NIGHT, run_record, session_start
from tests.test_compare_costs import BASE, CONTENDER, flat, terminal

LOCK, FLUSH, CPU = "waiting;LWLock:WALInsert", "waiting;IO:WalSync", "working;CPU"
FAST, SLOW = (20_000, 20_040, 19_980), (15_000, 15_020, 14_990)
SECONDS = 10


def waits(queries: float, lock: int, flush: int, cpu: int) -> StepProfile:
    return StepProfile(CLIENT_STATES, 10, queries, 0, {LOCK: lock, FLUSH: flush, CPU: cpu})


def compared(
    path: Path, sides: Sequence[tuple[Sequence[float], Sequence[tuple[int, int, int]]]]
) -> Comparison:
    """One step: of base and contender QPS, and the samples of lock, flush and CPU, in each round."""
    with open_store(path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start())
        for version, (rates, samples) in zip((BASE, CONTENDER), sides, strict=True):
            for number, (qps, counts) in enumerate(zip(rates, samples, strict=True), start=1):
                values = {"qps": float(qps), "server_cpu_us_per_op": 80.0}
                record = run_record(values, version=version, step="insert", repetition=number)
                taken = Measurement(values, (), waits=waits(qps * SECONDS, *counts))
                store.record_run(session, replace(record, measurement=taken))
        store.finish_session(session, SessionStatus.FINISHED)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())


QUICK = (FAST, [(10, 90, 300), (13, 95, 308), (9, 88, 296)])
HELD = (SLOW, [(161, 66, 228), (155, 70, 231), (158, 64, 226)])
"""As much per query for CPU and flushing, and 10 µs a query more for the lock."""


def test_a_regression_that_costs_nothing_names_its_wait(tmp_path: Path) -> None:
    comparison = compared(tmp_path, (QUICK, HELD))
    (step,) = comparison.contenders[0].steps
    assert (step.judged.verdict, exit_code(comparison)) == (Verdict.REGRESSION, 1)
    text = flat(terminal(comparison))
    assert "insert: waits: LWLock:WALInsert +100 µs of +101 µs per query (+79.3 to +121)" in text
    assert "IO:WalSync" not in text, "it takes as long as before"
    assert "regression?" not in text, "the wait explains it"
    assert "not explained by cost" not in text


def test_a_wait_that_exceeds_the_whole_change_is_no_part_of_it(tmp_path: Path) -> None:
    """Queries wait longer for the lock, and shorter for the flush."""
    flushed = (SLOW, [(161, 12, 228), (155, 15, 231), (158, 11, 226)])
    text = flat(terminal(compared(tmp_path, (QUICK, flushed))))
    assert "insert: waits: LWLock:WALInsert +100 µs (+80.0 to +120), in all +64.5 µs per query" in text


def test_machines_read_all_of_the_client_time(tmp_path: Path) -> None:
    comparison = compared(tmp_path, (QUICK, HELD))
    (step,) = json.loads(render_json(comparison))["contenders"][0]["steps"]
    first, *others = step["client_time"]["events"]
    assert (first["event"], first["is_wait"], first["is_certain"]) == ("LWLock:WALInsert", True, True)
    assert {event["event"]: event["is_wait"] for event in others} == {"CPU": False, "IO:WalSync": True}
    row, *_ = csv.DictReader(io.StringIO(render_csv(comparison)))
    assert row["explained_by"] == "wait"


def test_an_improvement_names_the_wait_that_is_gone(tmp_path: Path) -> None:
    text = flat(terminal(compared(tmp_path, (HELD, QUICK))))
    assert "insert: waits: LWLock:WALInsert -100 µs of -101 µs per query" in text


def test_a_step_that_is_not_slower_names_none(tmp_path: Path) -> None:
    """However its waits moved: throughput is what is judged."""
    comparison = compared(tmp_path, (QUICK, (FAST, HELD[1])))
    assert comparison.contenders[0].steps[0].client_time is None
    assert "waits" not in terminal(comparison)


def test_a_regression_without_a_wait_says_where_the_time_went(tmp_path: Path) -> None:
    """As of a lock that is held over a spin, on one core: nobody waits for it while its owner works."""
    working = (SLOW, [(8, 67, 325), (9, 71, 331), (7, 64, 319)])
    text = flat(terminal(compared(tmp_path, (QUICK, working))))
    assert "insert: waits: none moved by much; CPU or waiting for a core +" in text


def test_a_wait_of_one_round_alone_explains_nothing(tmp_path: Path) -> None:
    comparison = compared(tmp_path, (QUICK, (SLOW, [(455, 66, 228), (8, 70, 231), (11, 64, 226)])))
    text = flat(terminal(comparison))
    assert "insert: waits: LWLock:WALInsert +" in text
    assert ", not certain)" in text
    assert "no cost explains it; 33 % is waiting" in text
    assert "regression?" in text, "nothing that is certain explains it"
