"""compare.py of sessions in rounds: what each step can show, looks, disturbed rounds, drift of the base.

Rewrite the expected outputs as those of test_compare.py.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import compare as program
from build.home import ROOT
from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison
from history.comparison.verdict import Verdict
from history.open import open_store
from history.rendering.json_text import render_json
from history.rendering.markdown import render_markdown
from history.rendering.notes import notes as lines_below
from history.store.records import DroppedRound, RunRecord, SessionStart, SessionStatus, StepNoise
from history.store.writer import Store
from suites.measurement import Measurement
from tests.history.handmade import MACHINE, NIGHT, run_record, session_start
from tests.suites.golden import of_any_checkout, require_golden

BASE, CONTENDER = "postgres@17.11", "postgres@18.6"
GOLDEN = ROOT / "tests/golden/compare"

Rates = Mapping[str, tuple[Sequence[float], Sequence[float]]]
"""Step -> QPS of base and contender in each round."""

STEAL = "disturbed: the host withheld {:.1f} % of the CPU time that was wanted (limit 2.0 %)"
CRON = "disturbed: other processes used {:.1f} % of a core (limit 10.0 %): most of it cron (812)"


def until_decided(least: int = 3, cap: int = 20) -> SessionStart:
    plan = {"least": least, "cap": cap, "until_decided": True}
    return replace(session_start(repetitions=least), options={"rounds": plan})


def record(
    store: Store, start: SessionStart, rates: Rates, warnings: Mapping[tuple[str, int], Sequence[str]] = {}
) -> int:
    """A finished session; `warnings` are by step and round, and both versions have them."""
    session = store.start_session(start)
    for position, (step, both) in enumerate(rates.items(), start=1):
        for version, numbers in zip((BASE, CONTENDER), both, strict=True):
            for number, qps in enumerate(numbers, start=1):
                run: RunRecord = run_record(
                    version=version, step=step, step_position=position, repetition=number, position=number
                )
                measured = Measurement({"qps": qps}, (), list(warnings.get((step, number), ())))
                store.record_run(session, replace(run, measurement=measured))
    store.finish_session(session, SessionStatus.FINISHED)
    return session


def calibrate(store: Store, uid: str, noise: Sequence[StepNoise], start: SessionStart | None = None) -> None:
    session = store.start_session(start or session_start(uid))
    store.record_noise(session, noise)
    store.finish_session(session, SessionStatus.FINISHED)


def compared(store: Store, **options: object) -> Comparison:
    chosen = replace(CompareOptions(), **options)  # type: ignore[arg-type]
    return compare(store, parse_version(BASE), [parse_version(CONTENDER)], chosen)


def notes(comparison: Comparison) -> list[str]:
    lines = render_markdown(comparison).splitlines()
    return [line.removeprefix("- ") for line in lines if line.startswith("- ")]


def around(level: float, spread: float, rounds: int) -> list[float]:
    """QPS that scatters evenly around a level, by a fraction of it."""
    return [level * (1 + spread * (-1 if number % 2 else 1)) for number in range(rounds)]


# --- a night with everything


def record_night(store: Store) -> None:
    """Calibrated; a step was decided in 5 rounds, one not in 20; most were disturbed, some measured again."""
    calibrate(
        store,
        "20260228-1100-db1",
        [
            StepNoise("update-index", "qps", 0.012, 9, 10),
            StepNoise("delete", "qps", 0.03, 9, 10),
            StepNoise("insert", "qps", 0.13, 9, 10),
        ],
    )
    rates: Rates = {
        "update-index": ([21000, 21100, 20950, 21040, 20980], [18200, 18340, 18120, 18250, 18170]),
        "delete": (
            [180000 - 1100 * number for number in range(20)],
            [(180000 - 1100 * number) * (1.03 if number % 2 else 0.98) for number in range(20)],
        ),
        "write-only": ([8000, 8010, 7990], [8001, 8009, 7992]),
    }
    stolen = {("update-index", 2): [STEAL.format(3.1), CRON.format(34.0)]}
    stolen |= {("delete", number): [STEAL.format(2.4 + number / 2)] for number in (*range(3, 19), 20)}
    session = record(
        store, until_decided(), rates, {**stolen, ("write-only", 1): ["the reset took too long"]}
    )
    for number, reasons in ((2, [STEAL, CRON]), (2, [STEAL]), (19, [STEAL])):
        reason = "; ".join(text.format(10.0 + number) for text in reasons).replace("disturbed: ", "")
        store.record_dropped(session, DroppedRound("update-index", number, reason, {BASE: 9000.0}))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rounds.txt", []),
        ("rounds.md", ["--format", "markdown"]),
        ("rounds.json", ["--format", "json", "--step", "delete", "--step", "update-index"]),
    ],
)
def test_output(
    name: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record_night(store)
    program.main([BASE, CONTENDER, "--history", "history.db", *arguments])
    found = capsys.readouterr().out
    require_golden(name, of_any_checkout(found), GOLDEN)
    assert name != "rounds.txt" or max(map(len, found.splitlines()[:-1])) <= 100, "all but a command"


# --- until decided


@pytest.mark.parametrize(("cap", "rounds"), [(20, 20), (20, 6)], ids=["the cap", "the budget"])
def test_a_step_without_a_verdict_at_the_end_is_inconclusive(tmp_path: Path, cap: int, rounds: int) -> None:
    """Calm on average, and not unchanged: so many rounds leave more room than the threshold."""
    with open_store(tmp_path / "history.db") as store:
        rates = {"insert": (around(1000, 0.0, rounds), around(1000, 0.04, rounds))}
        record(store, until_decided(cap=cap), rates)
        comparison = compared(store)
    (step,) = comparison.contenders[0].steps
    assert step.judged.interval is not None
    assert step.judged.interval.estimate == pytest.approx(1, abs=0.001)
    assert (step.judged.verdict, exit_code(comparison)) == (Verdict.INCONCLUSIVE, 2)


def test_an_interval_over_all_looks_is_wider_than_one_of_so_many_rounds(tmp_path: Path) -> None:
    rates = {"insert": (around(1000, 0.0, 6), around(1000, 0.01, 6))}
    widths = []
    with open_store(tmp_path / "history.db") as store:
        for start in (session_start("fixed", repetitions=6), replace(until_decided(), uid="looking")):
            record(store, start, rates)
            comparison = compared(store, session=start.uid)
            interval = comparison.contenders[0].steps[0].judged.interval
            assert interval is not None
            widths.append(interval.high - interval.low)
            (said,) = [note for note in notes(comparison) if note.startswith("Intervals of")]
            assert "1 of 1 steps, 6 rounds each" in said
            assert ("at all looks" in said) == (start.uid == "looking")
    assert widths[0] < widths[1]


def test_a_session_that_ended_before_its_first_look_has_too_few_rounds(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db") as store:
        record(store, until_decided(least=5), {"insert": (around(1000, 0, 4), around(1000, 0, 4))})
        comparison = compared(store)
    assert "no verdict: insert: 4 paired rounds: a verdict needs 5, run 1 more" in notes(comparison)
    assert exit_code(comparison) == 2


# --- what each step can show

ONE_STEP: Rates = {"insert": (around(1000, 0.0, 5), around(1000, 0.01, 5))}
NOISE = StepNoise("insert", "qps", 0.02, 9, 10)


def test_without_a_calibration_it_is_not_known_how_to_find_out_is(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db") as store:
        other = replace(session_start("elsewhere"), machine=replace(MACHINE, fingerprint="beef"))
        calibrate(store, "", [NOISE], other)
        calibrate(store, "", [NOISE], session_start("another suite", suite="pgbench"))
        calibrate(store, "another metric", [replace(NOISE, metric="tps")])
        record(store, session_start(repetitions=5), ONE_STEP)
        comparison = compared(store)
        undirected = compared(store, metric="transactions")
    assert comparison.contenders[0].steps[0].smallest_visible is None
    assert "sees" not in render_markdown(comparison)
    command = "./tidemark calibrate --suite write-heavy --profile short --step insert postgres@17.11"
    assert f"Not calibrated: {command}" in notes(comparison)
    assert "calibrate" not in render_markdown(undirected)


def test_a_later_calibration_shows_what_can_be_seen_and_changes_no_verdict(tmp_path: Path) -> None:
    times = iter(NIGHT + timedelta(minutes=minute) for minute in range(99))
    with open_store(tmp_path / "history.db", clock=lambda: next(times)) as store:
        record(store, session_start(repetitions=5), ONE_STEP)
        before = compared(store).contenders[0].steps[0]
        calibrate(store, "afterwards", [NOISE])
        after = compared(store).contenders[0].steps[0]
        record(store, session_start("next", repetitions=5), ONE_STEP)
        following = compared(store).contenders[0].steps[0]
    assert before.smallest_visible is None
    assert after.smallest_visible is not None
    assert after.judged == before.judged
    assert following.judged.interval != before.judged.interval


def test_a_calibration_is_not_judged_by_itself(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = record(store, session_start(repetitions=5), ONE_STEP)
        before = compared(store)
        store.record_noise(session, [NOISE])
        assert compared(store).contenders == before.contenders


# --- drift and disturbance


@pytest.mark.parametrize(
    ("drifting", "drift", "said"),
    [
        ([1000.0, 950.0, 880.0], 0.88, "-12 %"),
        ([1000.0, 950.0, 1150.0], 1.15, "+15 %"),
        ([1000.0, 950.0, 1015.0], 1.015, None),
        # One block with an autovacuum at the end, or at the beginning, is no drift.
        ([1000.0] * 8 + [320.0], 1.0, None),
        ([320.0] + [1000.0] * 8, 1.0, None),
        ([1000.0] * 6 + [880.0, 1000.0, 880.0], 0.88, "-12 %"),
    ],
)
def test_a_base_that_drifts_is_named(
    tmp_path: Path, drifting: list[float], drift: float, said: str | None
) -> None:
    with open_store(tmp_path / "history.db") as store:
        calm = [1000.0] * (len(drifting) - 1) + [1001.0]
        record(store, session_start(), {"insert": (calm, calm), "delete": (drifting, drifting)})
        comparison = compared(store)
    found = [note for note in notes(comparison) if "drifted" in note]
    wanted = f"the base drifted by {said} from the first to the last third of the rounds of delete"
    assert found == ([wanted] if said else [])
    (contender,) = json.loads(render_json(comparison))["contenders"]
    assert [step["base_drift"] for step in contender["steps"]] == [1.001 if len(calm) < 6 else 1.0, drift]


def test_a_hundred_disturbed_runs_are_one_line(tmp_path: Path) -> None:
    calm = around(1000, 0.001, 50)
    with open_store(tmp_path / "history.db") as store:
        warnings = {("insert", number): [STEAL.format(2 + number / 10)] for number in range(1, 51)}
        record(store, session_start(repetitions=50), {"insert": (calm, calm)}, warnings)
        (line,) = compared(store).contenders[0].warnings
    assert line == (
        "disturbed, 50 rounds: the host withheld 2.1 to 7.0 % of the CPU time that was wanted: insert 1-50"
    )


def test_a_stalled_round_is_left_out_of_the_ratio_too_and_named(tmp_path: Path) -> None:
    calm = around(1000, 0.002, 8)
    stalled = [*calm[:7], 400.0]
    with open_store(tmp_path / "history.db") as store:
        record(store, session_start(repetitions=8), {"insert": (calm, stalled), "delete": (calm, calm[::-1])})
        comparison = compared(store)
    (insert,) = [step for step in comparison.contenders[0].steps if step.step == "insert"]
    assert insert.judged.value == pytest.approx(1.0, abs=0.001)
    assert "rounds far from all others, left out as stalled: insert 1 of 8" in notes(comparison)


# --- rounds that contradict their interval


def test_a_drift_is_no_verdict_and_everybody_reads_why(tmp_path: Path) -> None:
    """By its interval alone it would be a regression; but all steps rise from round to round."""
    base = around(20000, 0.001, 16)
    rise = [1 + 0.004 * (place - 8) for place in range(16)]
    slower = [0.9 * rate * up for rate, up in zip(base, rise, strict=True)]
    beside = [rate * up for rate, up in zip(base, rise, strict=True)]
    rates: Rates = {"update-index": (base, slower), "insert": (base, beside), "delete": (base, beside)}
    with open_store(tmp_path / "history.db") as store:
        record(store, session_start(repetitions=16), rates)
        comparison = compared(store)
        (step, *_) = json.loads(render_json(comparison))["contenders"][0]["steps"]
        text = render_markdown(comparison)
    assert (step["verdict"], step["doubts"]) == ("inconclusive", ["drifting"])
    assert step["interval"]["high"] == 1, "no change is possible, as the rounds drift"
    assert step["metrics"]["qps"]["change"] == "unknown"
    assert "update-index: the ratios of all steps drift from round to round" in text
    assert exit_code(comparison) == 2


START = """no exact count: the server did not start: exit status 1; the end of its log:
    2026-11-28  6:3{0}:29 0 [Note] ready for connections.
    2026-11-28  6:3{0}:31 0 [Note] Normal shutdown
    2026-11-28  6:3{0}:50 0 [ERROR] InnoDB: Cannot map innodb_buffer_pool_size_max=8388608m
    2026-11-28  6:3{0}:50 0 [ERROR] Plugin initialization aborted
    2026-11-28  6:3{0}:51 0 [ERROR] Aborting
      where: /somewhere/s{0}/server.log
      to do: free some memory"""
"""Why a server did not start, with the end of its log, which has other times in every round."""

TOLD = (
    "no exact count: the server did not start: exit status 1; the end of its log: [ERROR] InnoDB: Cannot map "
    "innodb_buffer_pool_size_max=8388608m; [ERROR] Plugin initialization aborted; to do: free some memory"
)
"""What is told of it."""

FULL = "the table is full"


def test_what_fails_for_one_reason_is_one_line(tmp_path: Path) -> None:
    steps = ("insert", "delete", "scan", "update-one")
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start(repetitions=2))
        for place, (step, number) in enumerate(product(steps, (1, 2))):
            where: dict[str, Any] = {"step": step, "step_position": 1 + place // 2, "repetition": number}
            reason = FULL if (step, number) == ("scan", 2) else START.format(place)
            store.record_run(session, run_record({"qps": 1.0}, position=2 * place + 1, **where))
            failed = run_record(version="postgres@18.5", position=2 * place + 2, failure=reason, **where)
            store.record_run(session, failed)
        store.finish_session(session, SessionStatus.FINISHED)
        comparison = compare(store, parse_version("postgres@18.6"), [parse_version("postgres@18.5")])
    lines = [
        line for line in lines_below(comparison, comparison.contenders[0]) if line.startswith("failed: ")
    ]
    assert lines == [
        f"failed: insert, delete, update-one, postgres@18.5, rounds 1, 2: {TOLD}",
        f"failed: scan, postgres@18.5, round 1: {TOLD}",
        f"failed: scan, postgres@18.5, round 2: {FULL}",
    ]
