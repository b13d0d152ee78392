"""compare.py: outcomes, exit codes, refusals, and its output in every format.

The expected outputs lie in tests/golden/compare/. After a wanted change of an output rewrite them, and read
the difference before it is committed:

    TIDEMARK_REWRITE_GOLDENS=1 .venv/bin/python -m pytest tests/test_compare.py
"""

import csv
import io
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

import compare as program
from benchmarks.output.intervals import ratio_interval
from build.home import ROOT
from build.version import Engine, parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison
from history.comparison.verdict import Gap, Verdict
from history.errors import ComparisonError
from history.open import open_store
from history.rendering.csv_text import render_csv
from history.rendering.json_text import render_json
from history.rendering.plain_table import Screen
from history.rendering.terminal import render_terminal
from history.store.records import RunStatus, SessionStatus
from suites.measurement import Measurement
from suites.metrics import METRICS, beside_verdict
from tests.history.handmade import NIGHT, record_steps, run_record, session_start
from tests.history.outcomes import BASE, CONTENDER, OUTCOMES, record_outcomes
from tests.suites.golden import of_any_checkout, require_golden

GOLDEN = ROOT / "tests/golden/compare"

REGRESSION, IMPROVEMENT = Verdict.REGRESSION, Verdict.IMPROVEMENT
UNCHANGED, INCONCLUSIVE = Verdict.UNCHANGED, Verdict.INCONCLUSIVE


# --- one session with one step for each outcome


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """A history with one interrupted session."""
    path = tmp_path / "history.db"
    with open_store(path, clock=lambda: NIGHT) as store:
        record_outcomes(store)
    return path


def compared(path: Path, base: str = BASE, contender: str = CONTENDER, **options: object) -> Comparison:
    with open_store(path) as store:
        chosen = replace(CompareOptions(), **options)  # type: ignore[arg-type]
        return compare(store, parse_version(base), [parse_version(contender)], chosen)


def test_one_step_for_each_outcome(night: Path) -> None:
    (contender,) = compared(night).contenders
    said = {step.step: step.judged.verdict or step.judged.gap for step in contender.steps}
    assert said == {
        "update-inlist": UNCHANGED,
        "update-index": IMPROVEMENT,
        "update-nonindex": REGRESSION,
        "update-one": INCONCLUSIVE,
        "update-zipf": Gap.TOO_FEW,
        "read-write-range100": Gap.FAILED,
        "delete": IMPROVEMENT,
        "insert": Gap.MISSING,
    }
    assert contender.judged_steps == 5
    by_name = {step.step: step.judged for step in contender.steps}
    assert by_name["update-zipf"].reason == "2 paired rounds: a verdict needs 3, run 1 more"
    assert [step.step for step in contender.steps if step.is_unexplained] == [
        "update-index",  # CPU time explains a sixth of it
        "update-nonindex",
        "delete",
    ]
    assert [failure.repetitions for failure in contender.failures] == [(2,), (1, 2, 3)]


@pytest.mark.deep("compares whole histories in every format")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("terminal.txt", []),
        ("markdown.md", ["--format", "markdown"]),
        ("json.json", ["--format", "json"]),
        ("csv.csv", ["--format", "csv"]),
        ("costs.txt", ["--costs", "--step", "update-index", "--step", "delete"]),
        ("costs.md", ["--costs", "--step", "delete", "--format", "markdown"]),
        ("latency.txt", ["--metric", "latency_p99_ms", "--threshold", "5", "--confidence", "90"]),
        ("transactions.txt", ["--metric", "transactions", "--step", "update-index"]),
    ],
)
def test_output(
    name: str,
    arguments: list[str],
    night: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(night.parent)
    program.main([BASE, CONTENDER, "--history", night.name, *arguments])
    output = capsys.readouterr()
    assert output.err == ""
    require_golden(name, of_any_checkout(output.out), GOLDEN)


def test_the_table_fits_a_hundred_columns(night: Path) -> None:
    wide, narrow = io.StringIO(), io.StringIO()
    starts = [f"{step} " for step in OUTCOMES]
    for file, width in ((wide, 200), (narrow, 100)):
        render_terminal(compared(night), Screen(file, width))
    rows = [
        [
            line.rstrip()
            for line in file.getvalue().splitlines()
            if line.startswith(tuple(starts)) and "worse" not in line
        ]
        for file in (wide, narrow)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == len(OUTCOMES)


def test_json_and_csv_hold_absolute_values_with_units(
    night: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = json.loads(render_json(compared(night)))
    step = whole["contenders"][0]["steps"][1]
    assert set(step["metrics"]) == {"qps", *beside_verdict({Engine.POSTGRES})}
    assert step["metrics"]["server_cpu_us_per_op"] == {
        "unit": "µs/query",
        "better": "lower",
        "base": 80.0,
        "contender": 68.0,
        "ratio": 0.85,
        "interval": {"low": 0.85, "high": 0.85},
        "pairs": 3,
        "change": "less",
    }
    assert (step["variation"], "server_cs_per_op" in step["explained_by"]) == ("worse", True)
    lines = list(csv.DictReader(io.StringIO(render_csv(compared(night)))))
    assert len(lines) == len(OUTCOMES) * (1 + len(beside_verdict({Engine.POSTGRES})))
    (line,) = [row for row in lines if row["step"] == "update-index" and row["metric"] == "wal_bytes_per_op"]
    assert (line["base_value"], line["unit"], line["ratio"]) == ("410.0", "bytes/query", "0.85")
    assert (line["low"], line["high"], line["change"]) == ("0.85", "0.85", "less")


# --- exit codes

CALM, SLOWER, NOISY = [1000.0, 1001.0, 999.0], [900.0, 901.0, 899.0], [1000.0, 1200.0, 850.0]
RESTLESS = [1000.0, 1030.0, 975.0]
Steps = dict[str, tuple[list[float], list[float]]]


@pytest.mark.parametrize(
    ("steps", "status", "code"),
    [
        ({"insert": (CALM, CALM)}, SessionStatus.FINISHED, 0),
        ({"insert": (SLOWER, CALM)}, SessionStatus.FINISHED, 0),
        ({"insert": (CALM, SLOWER)}, SessionStatus.FINISHED, 1),
        ({"insert": (CALM, SLOWER), "delete": (CALM, RESTLESS)}, SessionStatus.FINISHED, 1),
        ({"insert": (CALM, SLOWER), "delete": (CALM, [])}, SessionStatus.INTERRUPTED, 1),
        ({"insert": (CALM, NOISY)}, SessionStatus.FINISHED, 2),
        ({"insert": (CALM, CALM[:2])}, SessionStatus.FINISHED, 2),
        ({"insert": (CALM, CALM), "delete": (CALM, [])}, SessionStatus.FINISHED, 2),
        ({"insert": (CALM, CALM), "delete": (CALM, [0.0] * 3)}, SessionStatus.FINISHED, 2),
        ({"insert": ([*CALM, 1000.0], [*CALM, 0.0])}, SessionStatus.FINISHED, 2),
        ({"insert": (CALM, CALM)}, SessionStatus.INTERRUPTED, 2),
        ({"insert": (CALM, CALM)}, SessionStatus.FAILED, 2),
        ({"insert": (CALM, CALM)}, None, 2),
    ],
)
def test_exit_code(tmp_path: Path, steps: Steps, status: SessionStatus | None, code: int) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        rates = {step: {BASE: old, CONTENDER: new} for step, (old, new) in steps.items()}
        record_steps(store, session_start(), rates, status)
    assert exit_code(compared(path)) == code
    assert program.main([BASE, CONTENDER, "--history", str(path), "--format", "json"]) == code


def test_a_missing_repetition_is_not_clean(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        record_steps(store, session_start(repetitions=4), {"insert": {BASE: CALM, CONTENDER: CALM}})
    comparison = compared(path)
    assert comparison.verdicts() == (UNCHANGED,)
    assert comparison.contenders[0].warnings == ("insert: judged from 3 of 4 rounds",)
    assert exit_code(comparison) == 2


def test_a_metric_without_direction_is_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        session = store.start_session(session_start())
        for version in (BASE, CONTENDER):
            for repetition in (1, 2, 3):
                values = {"qps": 1.0, "transactions": 5.0, "errors": 0.0}
                record = run_record(values, version=version, repetition=repetition)
                store.record_run(session, record)
        store.finish_session(session, SessionStatus.FINISHED)
    undirected = compared(path, metric="transactions")
    assert undirected.contenders[0].steps[0].judged.gap is Gap.NO_DIRECTION
    assert exit_code(undirected) == 0
    for metric, gap in (("errors", Gap.NO_RATIO), ("tps", Gap.MISSING)):
        comparison = compared(path, metric=metric)
        assert comparison.contenders[0].steps[0].judged.gap is gap
        assert exit_code(comparison) == 2


# --- which session, which pairs


def test_base_and_contender_come_from_one_session(tmp_path: Path) -> None:
    """The base of a later night, on a machine that has become slower, is not compared with."""
    path = tmp_path / "history.db"
    with open_store(path) as store:
        record_steps(store, session_start("together"), {"insert": {BASE: CALM, CONTENDER: CALM}})
        record_steps(store, session_start("base alone"), {"insert": {BASE: SLOWER}})
    comparison = compared(path)
    assert comparison.contenders[0].session.uid == "together"
    assert comparison.verdicts() == (UNCHANGED,)


def test_repetitions_are_paired_by_number(tmp_path: Path) -> None:
    """A drift that base and contender share cancels, and only in pairs."""
    path = tmp_path / "history.db"
    drifting = [1000.0, 800.0, 1300.0]
    with open_store(path) as store:
        slower = [rate * 0.9 for rate in drifting]
        record_steps(store, session_start(), {"insert": {BASE: drifting, CONTENDER: slower}})
    assert compared(path).verdicts() == (REGRESSION,)


def test_steps_that_are_left_out_neither_share_the_error_nor_lend_their_noise(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        speeds = {BASE: CALM, CONTENDER: NOISY}
        record_steps(
            store, session_start(), dict.fromkeys(["insert", "delete", "update-one", "scan"], speeds)
        )
    (both,) = compared(path).contenders
    (single,) = compared(path, steps=("delete",)).contenders
    assert [step.step for step in single.steps] == ["delete"]
    shared, alone = both.steps[1].judged.interval, single.steps[0].judged.interval
    assert shared is not None
    plain = ratio_interval(CALM, NOISY, 0.98)
    assert alone is not None
    assert plain is not None
    assert (alone.low, alone.high) == pytest.approx((plain.low, plain.high))
    assert shared.estimate == alone.estimate
    # Four steps that are as noisy as each other know their noise better than one at its share of the error.
    its_share = ratio_interval(CALM, NOISY, 1 - 0.02 / 4)
    assert its_share is not None
    assert its_share.low < shared.low < shared.high < its_share.high


def test_same_binaries_are_pointed_out(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        session = store.start_session(session_start(repetitions=1))
        for version in (BASE, CONTENDER):
            store.record_run(session, run_record(version=version, key="same"))
        store.finish_session(session, SessionStatus.FINISHED)
    warnings = compared(path).contenders[0].warnings
    assert warnings == ("base and contender are the same build: every difference is noise",)


def test_an_interrupted_run_is_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        session = record_steps(store, session_start(), {"insert": {BASE: CALM, CONTENDER: CALM[:2]}}, None)
        cut_short = run_record(version=CONTENDER, repetition=3, position=9)
        measured = Measurement({"qps": 1.0}, ())
        store.record_run(session, replace(cut_short, status=RunStatus.INTERRUPTED, measurement=measured))
        store.finish_session(session, SessionStatus.FINISHED)
    (contender,) = compared(path).contenders
    assert contender.steps[0].judged.gap is Gap.TOO_FEW
    assert [(failure.status, failure.reason) for failure in contender.failures] == [
        (RunStatus.INTERRUPTED, "no reason recorded")
    ]


# --- refusals


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            [BASE, "postgres@13.23"],
            ["no session holds both", BASE, "2026-03-01 02:00", "to do: ./tidemark run --suite"],
        ),
        ([BASE, "postgres@16.1"], ["to do: ./tidemark history show lists what was measured"]),
        ([BASE, "postgres@18.66"], ["to do: did you mean postgres@18.6 instead of postgres@18.66?"]),
        ([BASE, CONTENDER, "--suite", "reads"], ["suite reads", "omit or correct --suite"]),
        ([BASE, CONTENDER, "--session", "nope"], ["session nope", "omit or correct --session"]),
        ([BASE, CONTENDER, "--step", "scan"], ["has no step scan", "update-inlist, update-index"]),
        ([BASE, BASE], ["its own contender"]),
    ],
)
def test_what_is_not_there(
    arguments: list[str], said: list[str], night: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main([*arguments, "--history", str(night)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    for text in said:
        assert text in output.err


def test_a_later_session_without_the_step_is_not_compared(
    night: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(night, clock=lambda: NIGHT + timedelta(days=1)) as store:
        session = store.start_session(session_start(uid="later", suite="read"))
        for version in (BASE, CONTENDER):
            store.record_run(session, run_record({"qps": 1000.0}, version=version, step="scan"))
        store.finish_session(session, SessionStatus.FINISHED)
    program.main([BASE, CONTENDER, "--history", str(night), "--step", "update-index"])
    assert "Session later" not in (shown := capsys.readouterr().out)
    assert "\nupdate-index " in shown
    program.main([BASE, CONTENDER, "--history", str(night)])
    assert "Session later" in capsys.readouterr().out


def test_of_many_runs_the_nearest_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.db"
    others = [f"mariadb@git:{number:012x}" for number in range(30)]
    with open_store(path) as store:
        session = store.start_session(session_start(repetitions=1))
        for version in [f"{CONTENDER}#o3", *others]:
            store.record_run(session, run_record({"qps": 1000.0}, version=version, repetition=1))
    assert program.main([BASE, CONTENDER, "--history", str(path)]) == 2
    shown = capsys.readouterr().err.splitlines()
    named = [line.split()[0] for line in shown if "session" in line and "UTC" in line]
    assert (len(named), named[0]) == (10, f"{CONTENDER}#o3")
    assert any(line.strip() == "and 21 more" for line in shown)


def test_looking_creates_no_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.db"
    assert program.main([BASE, CONTENDER, "--history", str(path)]) == 2
    assert "no history" in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [BASE],
        ["postgres", CONTENDER],
        [BASE, CONTENDER, "--metric", "furlongs"],
        [BASE, CONTENDER, "--confidence", "100"],
        [BASE, CONTENDER, "--threshold", "-1"],
        [BASE, CONTENDER, "--threshold", "much"],
    ],
)
def test_bad_arguments_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        program.main(arguments)
    assert leaving.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_unknown_metric_from_code(night: Path) -> None:
    with pytest.raises(ComparisonError, match="unknown metric"):
        compared(night, metric="furlongs")
    assert "furlongs" not in METRICS


# --- the program as a shell runs it


@pytest.mark.parametrize("call", [lambda path: [str(path)], lambda path: ["sh", str(path)]])
def test_a_shell_hands_over_to_the_launcher(tmp_path: Path, call: Callable[[Path], list[str]]) -> None:
    copy = tmp_path / "a folder" / "compare.py"
    copy.parent.mkdir()
    copy.write_bytes((ROOT / "compare.py").read_bytes())
    copy.chmod(0o755)
    launcher = copy.with_name("tidemark")
    launcher.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 7\n')
    launcher.chmod(0o755)
    done = subprocess.run([*call(copy), BASE, "a b"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, f"compare\n{BASE}\na b\n", "")


def test_it_may_be_executed() -> None:
    assert os.access(ROOT / "compare.py", os.X_OK)
