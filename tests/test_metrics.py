"""The metric registry: what follows from a row follows from it alone, and a row has a producer."""

import ast
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from build.home import ROOT
from build.version import Engine, parse_version
from history.changes.confirmation import series_count
from history.comparison.compare import compare
from history.comparison.explanation import imported_stand_ins
from history.comparison.result import Comparison
from history.comparison.verdict import MetricChange
from history.metric_words import WORDS, Words, label_of, words_of
from history.open import open_store
from history.rendering.json_text import render_json
from history.rendering.plain_table import Screen
from history.rendering.terminal import render_terminal
from history.series.series import find_series
from history.store.records import SessionStatus
from runners.bisect.domain.question import SHORT_NAMES, metric_named
from suites.generators.load import PERCENTILES
from suites.metrics import (
    MEMORY_GROWTH,
    METRICS,
    PRIMARIES,
    PRIMARY,
    QPS,
    STALL_LIMITS,
    TAIL_LIMITS,
    Better,
    Metric,
    Role,
    beside_verdict,
    followed_metrics,
    judged_metrics,
    of_role,
)
from suites.turns.turn import LATENCY
from tests.history.handmade import MACHINE, NIGHT, run_record, session_start

BASE, NEW = "postgres@18.5", "postgres@18.6"


PRIMARIES_OF_SESSIONS = ("qps", "connection_kib", "operation_ms")
"""The metrics that suites and imported sessions can be judged by."""


FSYNCS = Metric(
    "fsyncs_per_op",
    "fsyncs/query",
    Better.LOWER,
    Role.COST,
    "flushes of files per query",
    followed=True,
    judged=True,
)
"""A row of a metric that Tidemark has not."""

CALLED = Words("flushes", column="fs", legend="flushes of files (fs)")
"""What it is called."""

OF_FIXED_WORK = (
    *("wal_record_bytes_per_transaction", "wal_image_bytes_per_transaction"),
    *("redo_bytes_per_transaction", "binlog_bytes_per_transaction"),
)
"""Metrics of bytes that are written for fixed work."""


# --- the lists that rows make


def test_the_lists_of_the_rows() -> None:
    """Their order is that of columns, of rows in tables and of series in new histories."""
    beside = {name for primary in PRIMARIES_OF_SESSIONS for name in beside_verdict(primary=primary)}
    assert {*followed_metrics()} == beside | {*PRIMARIES}, (
        "nights follow what comparisons show, and the reverse"
    )
    assert {*judged_metrics()} <= {*followed_metrics()}
    assert set(judged_metrics()) == {
        *("qps", "tps", "server_cpu_us_per_op", "server_instructions_per_op", "server_written_kb_per_op"),
        *("wal_bytes_per_op", "reset_seconds", "table_bytes", "index_bytes", "instructions_per_op"),
        *("server_memory_bytes", "connection_kib", "operation_ms", "latency_mean_ms"),
        *OF_FIXED_WORK,
        *("connection_kib", "operation_ms"),
        *("reset_vacuum_seconds", "reset_wal_bytes", "log_file_bytes", "undo_bytes"),
        *("reset_not_visible_share", "reset_not_frozen_share"),
    }
    counted = [name for name, metric in METRICS.items() if metric.is_counted]
    assert counted == ["instructions_per_op", *OF_FIXED_WORK]
    assert {*counted} <= {*judged_metrics()}
    assert beside_verdict() == (
        *("server_cpu_us_per_op", "client_cpu_us_per_op", "server_cs_per_op", "server_read_kb_per_op"),
        *("server_written_kb_per_op", "wal_bytes_per_op", "binlog_bytes_per_op"),
        *("companion_cpu_us_per_op", "server_instructions_per_op", "instructions_per_op"),
        *OF_FIXED_WORK,
        *("latency_p99_ms", "qps_cv", "qps_p1_over_median", "qps_cv_detrended", "qps_worst_second"),
        "recovery_seconds",
        *("debt_dead_tuples", "debt_history", "reset_table_bytes_before", "reset_index_bytes_before"),
        *("reset_log_file_bytes_before", "reset_undo_bytes_before"),
        *("reset_seconds", "reset_vacuum_seconds", "reset_wal_bytes", "reset_dead_items"),
        *("reset_not_visible_share", "reset_not_frozen_share"),
        *("table_bytes", "index_bytes", "log_file_bytes", "undo_bytes"),
        *("background_share", "start_seconds", "first_answer_seconds", "connect_ms"),
        *("log_syncs_per_commit", "server_memory_bytes", "companion_lag_bytes", "statement_seconds"),
    )
    assert beside_verdict(primary="connection_kib") == (
        *("connection_kib", "connection_kib_low", "connection_kib_high", "connection_page_tables_kib"),
        *("connection_rss_kib", "connects_per_second", "connection_statements"),
    )
    assert SHORT_NAMES == {
        "connection-memory": "connection_kib",
        "cpu-per-op": "server_cpu_us_per_op",
        "cs-per-op": "server_cs_per_op",
        "hardware-instructions-per-op": "server_instructions_per_op",
        "instructions-per-op": "instructions_per_op",
        "server-memory": "server_memory_bytes",
        "wal-per-op": "wal_bytes_per_op",
        "written-per-op": "server_written_kb_per_op",
    }
    assert imported_stand_ins() == {
        f"server_{what}": f"machine_{what}"
        for what in ("cpu_us_per_op", "cs_per_op", "read_kb_per_op", "written_kb_per_op")
    }
    assert beside_verdict(primary="operation_ms") == ("latency_mean_ms",)
    assert (of_role(Role.THROUGHPUT), PRIMARY) == (("qps", "tps"), "qps")


def test_rows_are_whole() -> None:
    registry = ast.walk(ast.parse((ROOT / "suites/metrics.py").read_text()))
    calls = [node for node in registry if isinstance(node, ast.Call)]
    rows = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "Metric"]
    # Three of these calls are for all limits of stalls, of slow transactions, and for bytes of fixed work.
    several = len(STALL_LIMITS) + len(TAIL_LIMITS) + len(OF_FIXED_WORK)
    assert len(rows) - 3 + several == len(METRICS), "two rows of one name"
    beside = {name for primary in PRIMARIES_OF_SESSIONS for name in beside_verdict(primary=primary)}
    for name, metric in METRICS.items():
        assert not metric.is_counted or metric.threshold_percent, f"{name}: counted without a threshold"
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert metric.unit
        assert metric.description
        assert metric.engines
        assert metric.followed or not metric.judged, f"{name}: judged in a series that it has not"
        assert not metric.imported_for or metric.imported_for in beside
        assert not (metric.imported_for and name in beside), f"{name}: stands there for itself and another"
    assert not SHORT_NAMES.keys() & METRICS.keys()


@pytest.mark.parametrize("name", METRICS)
def test_the_bounds_of_a_metric(name: str) -> None:
    metric = METRICS[name]
    assert metric.least == (-1e12 if name == MEMORY_GROWTH else 0.0)
    assert metric.is_plausible(0.0)
    assert metric.is_plausible(1.0)
    for value in (metric.least - 1e-3, 1e300, math.inf, -math.inf, math.nan):
        assert not metric.is_plausible(value)
        assert name in metric.refusal(value)


# --- one row and one value


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(METRICS, FSYNCS.name, FSYNCS)
    monkeypatch.setitem(WORDS, FSYNCS.name, CALLED)
    return tmp_path / "history.db"


def compared(path: Path) -> Comparison:
    """A session in which a contender is slower and flushes files more often, recorded and compared."""
    with open_store(path, clock=lambda: NIGHT) as store:
        session = store.start_session(replace(session_start(), options={"versions": [BASE, NEW]}))
        for version, factor in ((BASE, 1.0), (NEW, 1.5)):
            for repetition, spread in enumerate((1.0, 1.01, 0.99), start=1):
                values = {QPS: 1000 / factor * spread, FSYNCS.name: 2 * factor * spread}
                store.record_run(session, run_record(values, version=version, repetition=repetition))
        store.finish_session(session, SessionStatus.FINISHED)
        return compare(store, parse_version(BASE), [parse_version(NEW)])


def terminal(comparison: Comparison, width: int = 200) -> str:
    file = io.StringIO()
    render_terminal(comparison, Screen(file, width), costs=True)
    return file.getvalue()


def test_a_row_alone_has_its_metric_followed_and_judged(history: Path) -> None:
    compared(history)
    with open_store(history) as store, store.database.reading() as connection:
        series = find_series(connection, metric=FSYNCS.name)
        counted = series_count(connection, MACHINE.hostname)
        described = connection.exec_driver_sql(
            "SELECT unit, better, description FROM metrics WHERE name = ?", (FSYNCS.name,)
        ).all()
    assert [key.branch for key in series] == [BASE, NEW]
    assert counted == 2 * 2, "each branch has throughput, and this"
    assert [tuple(row) for row in described] == [(FSYNCS.unit, FSYNCS.better, FSYNCS.description)]
    assert metric_named("fsyncs-per-op") is metric_named(FSYNCS.name) is FSYNCS


def test_a_row_alone_has_its_metric_beside_the_verdict(history: Path) -> None:
    comparison = compared(history)
    (step,) = comparison.contenders[0].steps
    assert [judged.metric for judged in step.beside] == list(beside_verdict({Engine.POSTGRES}))
    assert step.explained_by == (FSYNCS.name,), "more of a cost explains a slow-down"
    wide = terminal(comparison)
    head, row = wide.splitlines()[2], next(line for line in wide.splitlines() if line.startswith("insert "))
    assert "fs" in head.split()
    assert "1.50+" in row
    assert "Per query: flushes of files (fs). Less is better." in " ".join(wide.split())
    assert re.search(r"insert +flushes +fsyncs/query +2 +3 +1\.50", wide)
    whole = json.loads(render_json(comparison))["contenders"][0]["steps"][0]["metrics"]
    assert (whole[FSYNCS.name]["unit"], whole[FSYNCS.name]["change"]) == (FSYNCS.unit, MetricChange.MORE)


def test_words_say_when_a_column_gives_way(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORDS, FSYNCS.name, replace(CALLED, gives_way=1))
    for name in beside_verdict():
        if name != FSYNCS.name and words_of(name).gives_way:
            monkeypatch.setitem(WORDS, name, replace(WORDS[name], gives_way=WORDS[name].gives_way + 1))
    comparison = compared(history)
    width = len(terminal(comparison).splitlines()[2])
    narrow = terminal(comparison, width - 1)
    assert "Columns that do not fit: fs;" in narrow
    assert "fs" not in narrow.splitlines()[2].split()


def test_a_row_says_what_more_is(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    higher = replace(FSYNCS, better=Better.HIGHER, role=Role.CONTEXT)
    monkeypatch.setitem(METRICS, FSYNCS.name, higher)
    comparison = compared(history)
    (step,) = comparison.contenders[0].steps
    assert [judged.metric for judged in step.beside] == list(beside_verdict({Engine.POSTGRES}))
    assert beside_verdict()[-1] == FSYNCS.name, "context stands last"
    assert step.explained_by is None, "no cost was recorded"
    assert "flushes of files (fs). More is better." in " ".join(terminal(comparison).split())
    monkeypatch.setitem(WORDS, FSYNCS.name, replace(CALLED, column=""))
    assert "flushes: flushes of files (fs), more is better." in " ".join(terminal(comparison).split())


def test_a_row_of_one_engine_stands_beside_verdicts_of_that_engine_only(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METRICS, FSYNCS.name, replace(FSYNCS, engines=frozenset({Engine.MYSQL})))
    assert FSYNCS.name in beside_verdict({Engine.MYSQL, Engine.POSTGRES})
    assert FSYNCS.name not in beside_verdict({Engine.POSTGRES})
    comparison = compared(history)
    (step,) = comparison.contenders[0].steps
    assert FSYNCS.name not in [judged.metric for judged in step.beside]
    assert "flushes of files" not in terminal(comparison)


def test_a_row_that_says_nothing_is_only_recorded(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Metric(FSYNCS.name, FSYNCS.unit, FSYNCS.better, Role.CONTEXT, FSYNCS.description)
    monkeypatch.setitem(METRICS, FSYNCS.name, plain)
    monkeypatch.delitem(WORDS, FSYNCS.name)
    (contender,) = compared(history).contenders
    assert FSYNCS.name not in [metric.metric for metric in contender.steps[0].metrics]
    with open_store(history) as store, store.database.reading() as connection:
        assert not find_series(connection, metric=FSYNCS.name)
    with open_store(history) as store:
        assert all(FSYNCS.name in run.values for run in store.runs(contender.session.id))
    assert label_of(FSYNCS.name) == FSYNCS.name


def test_every_latency_of_a_load_generator_is_a_metric() -> None:
    assert LATENCY.keys() == {"mean", "max", "second", *PERCENTILES}
    assert set(LATENCY.values()) == set(of_role(Role.LATENCY))


def test_what_is_counted_has_a_threshold_of_its_own() -> None:
    for metric in METRICS.values():
        assert not metric.is_counted or metric.threshold(0.02) != 0.02
    assert METRICS["qps"].threshold(0.02) == 0.02


def test_evidence_is_counted() -> None:
    for metric in METRICS.values():
        assert not metric.evidence or METRICS[metric.evidence].is_counted
