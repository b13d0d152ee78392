"""Kinds of transactions as compare.py tells them, and steps that were overloaded."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison
from history.comparison.verdict import Gap, Verdict
from history.open import open_store
from history.rendering.json_text import render_json
from history.rendering.markdown import render_markdown
from history.rendering.plain_table import Screen
from history.rendering.terminal import render_terminal
from history.store.records import SessionStatus
from history.store.writer import Store
from suites.measurement import Measurement
from suites.metric_names import OVERLOADED, REFUSED, TPS
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"


def kinds(payments: float, deletes: float) -> dict[str, dict[str, float]]:
    return {
        "payment": {
            TPS: payments,
            "transactions": payments,
            "latency_p50_ms": 2.0,
            "latency_p99_ms": 1e4 / payments,
            "retried_deadlock": 5.0,
            "retried_serialisation": 0.0,
            "retried_duplicate_key": 0.0,
            REFUSED: 0.0,
        },
        "delete": {TPS: deletes, "transactions": deletes, "latency_p50_ms": 1.0, "latency_p99_ms": 3.0},
    }


def record(store: Store, overload: float = 0.0) -> None:
    """The whole is as fast as before; payments are a fifth slower, deletes much faster."""
    session = store.start_session(session_start())
    for version, payments, deletes in ((BASE, 1000.0, 50.0), (CONTENDER, 800.0, 250.0)):
        for repetition, wobble in enumerate((0.999, 1.0, 1.002), start=1):
            run = run_record(
                {"qps": 4200 * wobble, OVERLOADED: overload if version == CONTENDER else 0.0},
                version=version,
                step="payments",
                repetition=repetition,
            )
            assert isinstance(run.measurement, Measurement)
            measured = replace(run.measurement, kinds=kinds(payments * wobble, deletes * wobble))
            store.record_run(session, replace(run, measurement=measured))
    store.finish_session(session, SessionStatus.FINISHED)


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record(store)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())


def test_each_kind_has_a_verdict_and_none_sets_the_exit_code(comparison: Comparison) -> None:
    (contender,) = comparison.contenders
    assert [step.judged.verdict for step in contender.steps] == [Verdict.UNCHANGED]
    assert {kind.kind: kind.judged.verdict for kind in contender.kinds} == {
        "payment": Verdict.REGRESSION,
        "delete": Verdict.IMPROVEMENT,
    }
    payment = next(kind for kind in contender.kinds if kind.kind == "payment")
    assert payment.judged.value == pytest.approx(0.8, abs=0.01)
    assert payment.latencies["latency_p99_ms"].value == pytest.approx(1.25, abs=0.01)
    assert payment.retried[1] == pytest.approx(5 / 800, rel=0.01)
    assert list(payment.refused) == [0, 0]
    assert exit_code(comparison) == 0


def test_kinds_are_shown_when_asked_for(comparison: Comparison) -> None:
    file = io.StringIO()
    render_terminal(comparison, Screen(file, 140), kinds=True)
    with_kinds = file.getvalue()
    assert "payment" in with_kinds
    assert "tx/s" in with_kinds
    assert "| payments | payment |" in render_markdown(comparison, kinds=True)
    assert "tx/s" not in render_markdown(comparison)
    names = [kind["kind"] for kind in json.loads(render_json(comparison))["contenders"][0]["kinds"]]
    assert names == ["delete", "payment"]


def test_a_version_that_does_not_keep_up_gets_no_verdict(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record(store, overload=1.0)
        found = compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())
    (contender,) = found.contenders
    assert [step.judged.gap for step in contender.steps] == [Gap.OVERLOADED]
    assert {kind.judged.gap for kind in contender.kinds} == {Gap.OVERLOADED}
    assert exit_code(found) == 2
