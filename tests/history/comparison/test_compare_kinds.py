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
from suites.metrics import OVERLOADED, REFUSED, TPS
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"


def kind(rate: float, milliseconds: float) -> dict[str, float]:
    """Values of a kind of which so many a second are carried out, each in so many milliseconds."""
    return {
        TPS: rate,
        "transactions": rate,
        "latency_mean_ms": milliseconds,
        "latency_p50_ms": milliseconds,
        "latency_p99_ms": 2 * milliseconds,
    }


RETRIES = {
    "retried_deadlock": 5.0,
    "retried_serialisation": 0.0,
    "retried_duplicate_key": 0.0,
    REFUSED: 0.0,
}


def record(store: Store, overload: float = 0.0) -> None:
    """Both kinds are carried out a fifth less often, because payments take longer; a delete takes less."""
    session = store.start_session(session_start())
    for version, rate, payment, delete in ((BASE, 1000.0, 2.0, 1.0), (CONTENDER, 800.0, 2.6, 0.87)):
        for repetition, wobble in enumerate((0.999, 1.0, 1.002), start=1):
            run = run_record(
                {"qps": 4200 * wobble, OVERLOADED: overload if version == CONTENDER else 0.0},
                version=version,
                step="payments",
                repetition=repetition,
            )
            assert isinstance(run.measurement, Measurement)
            done = rate * wobble
            kinds = {
                "line-10 delete": kind(done, delete / wobble),
                "line-9 payment": kind(done, payment / wobble) | RETRIES,
            }
            store.record_run(session, replace(run, measurement=replace(run.measurement, kinds=kinds)))
    store.finish_session(session, SessionStatus.FINISHED)


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record(store)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())


def test_each_kind_is_judged_by_its_own_time_and_none_sets_the_exit_code(comparison: Comparison) -> None:
    (contender,) = comparison.contenders
    assert [step.judged.verdict for step in contender.steps] == [Verdict.UNCHANGED]
    payment, delete = contender.kinds
    assert (payment.kind, payment.judged.verdict) == ("line-9 payment", Verdict.REGRESSION)
    assert (delete.kind, delete.judged.verdict) == ("line-10 delete", Verdict.IMPROVEMENT)
    assert payment.judged.value == payment.latencies["latency_p99_ms"].value == pytest.approx(1.3, abs=0.01)
    assert delete.judged.value == pytest.approx(0.87, abs=0.01)
    assert payment.throughput.value == delete.throughput.value == pytest.approx(0.8, abs=0.01)
    assert payment.retried[1] == pytest.approx(5 / 800, rel=0.01)
    assert list(payment.refused) == [0, 0]
    assert exit_code(comparison) == 0


def test_kinds_are_shown_when_asked_for(comparison: Comparison) -> None:
    file = io.StringIO()
    render_terminal(comparison, Screen(file, 140), kinds=True)
    with_kinds = file.getvalue()
    heads, payment, delete = (
        line.split() for line in with_kinds.splitlines() if "rel tx/s" in line or "line-" in line
    )
    assert heads[:4] == ["step", "kind", "base", "ms"]
    assert payment[:6] == ["payments", "line-9", "payment", "1.999", "2.599", "1.30"]
    assert payment[-1] == "regression"
    assert delete[3:6] == ["0.9997", "0.8697", "0.87"]
    assert delete[-1] == "improvement"
    assert "| payments | line-9 payment |" in render_markdown(comparison, kinds=True)
    assert "tx/s" not in render_markdown(comparison)
    told = json.loads(render_json(comparison))["contenders"][0]["kinds"]
    assert [kind["kind"] for kind in told] == ["line-9 payment", "line-10 delete"]
    assert [kind["metric"] for kind in told] == ["latency_mean_ms"] * 2
    assert told[1]["metrics"]["tps"]["ratio"] == pytest.approx(0.8, abs=0.01)


def test_a_version_that_does_not_keep_up_gets_no_verdict(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record(store, overload=1.0)
        found = compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())
    (contender,) = found.contenders
    assert [step.judged.gap for step in contender.steps] == [Gap.OVERLOADED]
    assert {kind.judged.gap for kind in contender.kinds} == {Gap.OVERLOADED}
    assert exit_code(found) == 2
