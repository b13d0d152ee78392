"""Plans beside verdicts: a change that comes with another plan says so, with both."""

from dataclasses import replace
from pathlib import Path

import pytest

import compare as program
from history.open import open_store
from suites.plans.trees import normalized
from tests.history.handmade import record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@18.6"
BITMAP, INDEX = "Bitmap Heap Scan on t\n  ->  Bitmap Index Scan on k", "Index Scan using k on t"


def compared(path: Path, new_qps: float, /, *options: str, **new_plans: str) -> None:
    steps = {"point": {BASE: [100.0] * 3, NEW: [new_qps] * 3}, "scan@8": {BASE: [100.0] * 3, NEW: [80.0] * 3}}
    start = replace(session_start(), options={"versions": [BASE, NEW], "threads": 8})
    with open_store(path) as store:
        session = record_steps(store, start, steps, status=None)
        store.record_plans(session, BASE, {"point": BITMAP, "scan": "Seq Scan on t"})
        store.record_plans(session, NEW, {"point": BITMAP, "scan": "Seq Scan on t", **new_plans})
    program.main([BASE, NEW, "--history", str(path), "--format", "markdown", *options])


@pytest.mark.parametrize("qps", [80.0, 100.0, 130.0])
def test_another_plan_is_a_line_whatever_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], qps: float
) -> None:
    compared(tmp_path / "h.db", qps, point=INDEX)
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if "another plan" in line]
    change = "Index Scan using k on t instead of Bitmap Heap Scan on t"
    assert line == f"- point: another plan: {change}; 80 -> {8000 / qps:.3g} ms"
    assert "Both plans of each step whose plan changed: --plans." in out
    assert "Bitmap Index Scan" not in out


def test_the_same_plan_is_no_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(tmp_path / "h.db", 80.0, point=BITMAP.replace(" on t", " on t (rows=9)"))
    out = capsys.readouterr().out
    assert "another plan" not in out
    assert "--plans" not in out


def test_whole_plans_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(tmp_path / "h.db", 100.0, "--plans", point=INDEX)
    out = capsys.readouterr().out
    assert "point, plan of base:\n\n    Bitmap Heap Scan on t\n      ->  Bitmap Index Scan on k\n" in out
    assert "point, plan of new:\n\n    Index Scan using k on t\n" in out


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_why_no_plan_is_shown_is_said_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    compared(tmp_path / "h.db", 80.0, "--plans", "--format", form)
    assert "No plan changed." in capsys.readouterr().out
    start = replace(session_start("scripts"), options={"versions": [BASE, NEW], "threads": 8})
    with open_store(tmp_path / "scripts.db") as store:
        record_steps(store, start, {"own": {BASE: [100.0] * 3, NEW: [80.0] * 3}})
    words = [BASE, NEW, "--history", str(tmp_path / "scripts.db"), "--format", form]
    program.main([*words, "--plans"])
    said = " ".join(capsys.readouterr().out.split())
    assert "No plans: the session has none of both versions." in said
    assert "pgbench does not print the statements of its scripts." in said
    program.main([*words, "--plans", "--kinds", "--since", "2026-01-01"])
    said = " ".join(capsys.readouterr().out.split())
    assert "No plans: they are compared within one session, not over nights." in said
    assert "No kinds: they are compared within one session, not over nights." in said


@pytest.mark.parametrize(
    ("over", "means"),
    [
        ({NEW}, "at most what they show"),
        ({BASE}, "at least what they show"),
        ({BASE, NEW}, "unknown: they are not bounds of it"),
    ],
)
def test_means_without_censored_steps_are_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], over: set[str], means: str
) -> None:
    start = replace(session_start(), options={"versions": [BASE, NEW]})
    steps = {"q1": {BASE: [1.0] * 3, NEW: [1.0] * 3}, "q9": {BASE: [0.0], NEW: [0.0]}}
    reason = f"censored at 10 s on {', '.join(sorted(over))}"
    with open_store(tmp_path / "h.db") as store:
        record_steps(store, start, steps, failure=reason, over=over)
    program.main([BASE, NEW, "--history", str(tmp_path / "h.db"), "--format", "markdown"])
    said = capsys.readouterr().out
    assert f"- over the limit: q9; of all steps the geometric means are {means}" in said
    assert f"- failed: q9, {NEW}, round 1: {reason}" in said


@pytest.mark.parametrize(
    ("over", "took", "code", "said"),
    [
        ({NEW}, 0.0315, 1, "- q9: took longer than 10 s, base 0.0315 s"),
        ({BASE}, 0.0315, 2, "- q9: took 0.0315 s, base longer than 10 s"),
        ({NEW}, 6.0, 2, ""),  # by how much it took longer is not known
        ({NEW}, None, 2, ""),  # recorded by an older Tidemark
    ],
)
def test_a_query_that_only_the_new_version_cannot_end_is_a_regression(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    over: set[str],
    took: float | None,
    code: int,
    said: str,
) -> None:
    start = replace(session_start(), options={"versions": [BASE, NEW]})
    steps = {"q1": {BASE: [1.0] * 3, NEW: [1.0] * 3}, "q9": {BASE: [0.0], NEW: [0.0]}}
    with open_store(tmp_path / "h.db") as store:
        record_steps(store, start, steps, failure="censored at 10 s", over=over, took=took)
    words = [BASE, NEW, "--history", str(tmp_path / "h.db"), "--format", "markdown"]
    assert program.main(words) == code
    out = capsys.readouterr().out
    assert said in out
    assert said or "- q9: took" not in out


def test_a_failure_is_no_limit_because_of_its_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = replace(session_start(), options={"versions": [BASE, NEW]})
    steps = {"q1": {BASE: [1.0] * 3, NEW: [1.0] * 3}, "q9": {BASE: [1.0], NEW: [0.0]}}
    with open_store(tmp_path / "h.db") as store:
        record_steps(store, start, steps, failure=f"censored at 10 s on {NEW}")
    program.main([BASE, NEW, "--history", str(tmp_path / "h.db"), "--format", "markdown"])
    assert "over the limit" not in capsys.readouterr().out


def test_a_level_has_the_plan_of_its_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared(tmp_path / "h.db", 100.0, scan=INDEX)
    line = "- scan@8: another plan: Index Scan using k on t instead of Seq Scan on t"
    assert line in capsys.readouterr().out


@pytest.mark.parametrize(
    ("plan", "without"),
    [
        ("-> Index scan  (cost=0.35 rows=1)", "-> Index scan (rows=1)"),
        ("-> Scan on t  (cost=1e+3 rows=9) (actual time=1)", "-> Scan on t (rows=9) (actual time=1)"),
        ("  Index Cond: (id = ANY ('{1,2,3,4,50}'::bigint[]))", "Index Cond: (id = ANY ('{…}'::bigint[]))"),
        ("Filter: (id >= 1500) AND (id <= 1599)", "Filter: (id >= 1500) AND (id <= 1599)"),
        ("range scan on t over (id = 1) OR (id = 2) OR (98 more)", "range scan on t over (…)"),
    ],
)
def test_what_differs_between_equal_plans_is_left_out(plan: str, without: str) -> None:
    assert normalized(plan) == without
