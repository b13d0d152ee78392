"""Shares of background work, as compare.py tells them in words and in JSON."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from build.progress import Silent
from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison, ContenderComparison
from history.comparison.rounds.background import background_shares
from history.comparison.verdict import Verdict
from history.open import open_store
from history.rendering.json_text import render_json
from history.rendering.notes import basis
from history.series.night import branches
from history.stats.repeated_intervals import Design
from history.store.records import SessionStatus
from history.store.resume import find_interrupted
from runners.measuring.failures.policy import FailurePolicy
from runners.measuring.run_recorder import RunRecorder
from runners.measuring.sequential_verdicts import SequentialVerdicts
from suites.accounting.activity import CHECKPOINT, LOG_WAIT, PURGE, VACUUM, Activity
from suites.metrics import QPS
from tests.history.comparison.findings.test_onset import BASE, CONTENDER
from tests.history.handmade import NIGHT, a_build, run_record, session_start

MANY = (Activity(CHECKPOINT, 1, 4), Activity(CHECKPOINT, 11, 14), Activity(VACUUM, 1, 20))
FEW = (Activity(CHECKPOINT, 3, 6), Activity(LOG_WAIT, 1, 20))
TOLD = (
    "checkpoints in 40 % of the seconds, base 20 %; autovacuum in 100 %, base 0 %; autovacuum in 4 of 4 "
    "blocks mostly on one side: unequal shares of background work"
)
RUNS = {
    ("update", name, number): 2 * number + (name == CONTENDER)
    for name in (BASE, CONTENDER)
    for number in (1, 2, 3, 4)
}


def seconds(of_each: int) -> list[tuple[list[float], list[float]]]:
    return [([1.0] * of_each, [1.0] * of_each)] * 4


def found(base: tuple[Activity, ...], contender: tuple[Activity, ...]) -> dict[int, tuple[Activity, ...]]:
    return {run: contender if name == CONTENDER else base for (_, name, _), run in RUNS.items()}


@pytest.mark.parametrize("mode", ["long", "rounds"])
def test_long_sessions_tell_unequal_shares_without_an_exit_code(tmp_path: Path, mode: str) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(replace(session_start(repetitions=4), options={"mode": mode}))
        for number in (1, 2, 3, 4):
            for version, activities in ((BASE, FEW), (CONTENDER, MANY)):
                run = run_record(
                    {QPS: 1000.0 + number},
                    version=version,
                    step="update",
                    repetition=number,
                    per_second=(1000.0,) * 20,
                    activities=activities,
                )
                store.record_run(session, run)
        store.finish_session(session, SessionStatus.FINISHED)
        compared = compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())
    (step,) = compared.contenders[0].steps
    lines = [finding.line for finding in step.findings]
    assert lines == ([f"update: {TOLD}"] if mode == "long" else [])
    assert exit_code(compared) == 0
    assert (TOLD in render_json(compared)) is (mode == "long")


def test_what_is_told() -> None:
    versions = (BASE, CONTENDER)
    (finding,) = background_shares(found(FEW, MANY), RUNS, versions, lambda name: seconds(20))
    assert finding.text == TOLD
    (finding,) = background_shares(
        found((Activity(PURGE, 1, 9),), FEW), RUNS, versions, lambda name: seconds(20)
    )
    assert finding.text == (
        "checkpoints in 20 % of the seconds, base 0 %; purge in 0 %, base 45 %: unequal shares of "
        "background work"
    )
    assert not [*background_shares(found(MANY, MANY), RUNS, versions, lambda name: seconds(20))]
    assert not [*background_shares(found(FEW, MANY), RUNS, versions, lambda name: seconds(14))], "too short"
    nearly = (Activity(CHECKPOINT, 1, 5), FEW[1])
    assert not [*background_shares(found(FEW, nearly), RUNS, versions, lambda name: seconds(20))]


def test_engines_have_other_kinds_of_work() -> None:
    of_mysql = {
        (step, "mysql@9.7.2" if version == CONTENDER else version, number): run
        for (step, version, number), run in RUNS.items()
    }
    versions = (BASE, "mysql@9.7.2")
    assert not [*background_shares(found(MANY, FEW), of_mysql, versions, lambda name: seconds(20))]


def test_rounds_of_one_version_alone_have_no_part() -> None:
    alone = {("update", BASE, 1): 1, ("update", CONTENDER, 2): 2}
    assert not [*background_shares({1: FEW, 2: MANY}, alone, (BASE, CONTENDER), lambda name: [])]


def test_a_vacuum_in_other_rounds_is_told_though_the_shares_are_equal() -> None:
    vacuum = (Activity(VACUUM, 3, 20),)
    several: dict[int, tuple[Activity, ...]] = dict.fromkeys(RUNS.values(), ())
    several[RUNS["update", BASE, 2]] = several[RUNS["update", CONTENDER, 4]] = vacuum
    (finding,) = background_shares(several, RUNS, (BASE, CONTENDER), lambda name: seconds(20))
    assert finding.text == (
        "autovacuum in 2 of 4 blocks mostly on one side: unequal shares of background work"
    )
    several[RUNS["update", CONTENDER, 2]], several[RUNS["update", CONTENDER, 4]] = vacuum, ()
    assert not [*background_shares(several, RUNS, (BASE, CONTENDER), lambda name: seconds(20))]


def blocks_of(tmp_path: Path, mode: str, other: str = CONTENDER) -> tuple[ContenderComparison, float]:
    """Twelve blocks, a tenth faster but for vacuums of either version; with the value of the night."""
    slow = {BASE: {9: 300.0, 10: 700.0}, other: {3: 300.0, 4: 500.0}}
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        options = {"mode": mode, "versions": [BASE, other]}
        session = store.start_session(replace(session_start(repetitions=12), options=options))
        for number in range(1, 13):
            for version, usual in ((BASE, 1000.0), (other, 1100.0)):
                run = run_record(
                    {QPS: slow[version].get(number, usual + number)},
                    version=version,
                    step="update",
                    repetition=number,
                    activities=(Activity(VACUUM, 2, 14),) if number == min(slow[version]) else (),
                )
                store.record_run(session, run)
        store.finish_session(session, SessionStatus.FINISHED)
        compared = compare(store, parse_version(BASE), [parse_version(other)], CompareOptions())
        with store.database.reading() as connection:
            query = "SELECT value FROM points JOIN series ON series.id = series_id WHERE branch = '{}'"
            base, contender = (
                connection.exec_driver_sql(query.format(branch)).scalar_one()
                for branch in branches((BASE, other), {}).values()
            )
    return compared.contenders[0], contender / base


def test_blocks_with_a_vacuum_count_neither_in_a_verdict_nor_in_a_night(tmp_path: Path) -> None:
    contender, night = blocks_of(tmp_path, "long")
    (step,) = contender.steps
    assert step.judged.interval is not None
    assert (step.judged.verdict, step.judged.pairs, step.judged.interval.n) == (Verdict.IMPROVEMENT, 12, 8)
    assert step.judged.value == pytest.approx(1.1, abs=0.001)
    assert night == pytest.approx(1.1, abs=0.001)
    text = "autovacuum in 2 of 12 blocks; 4 are left out, with those after it; all 12: +5 %"
    assert [finding.line for finding in step.findings] == [f"update: {text}"]
    comparison = Comparison(parse_version(BASE), (contender,), CompareOptions(), "")
    assert "left out as stalled" not in "\n".join(basis(comparison, contender))


@pytest.mark.parametrize(("mode", "other"), [("rounds", CONTENDER), ("long", "mysql@9.7.2")])
def test_all_are_compared_where_they_start_alike_or_engines_differ(
    tmp_path: Path, mode: str, other: str
) -> None:
    """Purge of InnoDB is in all blocks, so that vacuums are to be in those of Postgres."""
    contender, night = blocks_of(tmp_path, mode, other)
    (step,) = contender.steps
    assert not [finding for finding in step.findings if "left out" in finding.line]
    assert step.judged.verdict is Verdict.INCONCLUSIVE
    assert night == pytest.approx(1.054, abs=0.002)


@pytest.mark.parametrize("vacuums", [{}, {BASE: 4}, {BASE: 2, CONTENDER: 6}, {BASE: 8}])
def test_a_session_is_judged_as_it_was_when_it_stopped(tmp_path: Path, vacuums: dict[str, int]) -> None:
    verdicts = SequentialVerdicts(BASE, [CONTENDER], Design(steps=1, least=5, cap=30), 0.02, {})
    plan = {"until_decided": True, "least": 5, "cap": 30}
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        options = {"mode": "long", "versions": [BASE, CONTENDER], "rounds": plan}
        session = store.start_session(replace(session_start(repetitions=5), options=options))
        for number in range(1, 31):
            reached = {version for version, block in vacuums.items() if block == number}
            noise = 1 + 0.005 * (-1) ** number
            rates = {BASE: 1000.0 * noise, CONTENDER: 1060.0 / noise}
            rates |= dict.fromkeys(reached, 400.0)
            for version in (BASE, CONTENDER):
                vacuum = (Activity(VACUUM, 2, 14),) if version in reached else ()
                record = run_record(
                    {QPS: rates[version]}, version=version, repetition=number, activities=vacuum
                )
                store.record_run(session, record)
            verdicts.add("insert", number, rates, reached)
            if number >= 5 and not verdicts.open_steps(["insert"], number):
                break
        store.finish_session(session, SessionStatus.FINISHED)
        compared = compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())
    (step,) = compared.contenders[0].steps
    assert number < 15, "it does not take all 30 blocks until vacuums hide nothing"
    assert step.judged.verdict is verdicts.verdicts(CONTENDER, number)["insert"] is Verdict.IMPROVEMENT


def test_a_live_verdict_between_engines_counts_all_blocks() -> None:
    for contender, verdict in ((CONTENDER, Verdict.IMPROVEMENT), ("mysql@9.7.2", Verdict.INCONCLUSIVE)):
        verdicts = SequentialVerdicts(BASE, [contender], Design(steps=1, least=5, cap=30), 0.02, {})
        for number in range(1, 11):
            rates = {BASE: 1000.0 + number, contender: 1060.0 if number != 4 else 400.0}
            verdicts.add("insert", number, rates, [BASE] if number == 4 else [])
        assert verdicts.verdicts(contender, 10) == {"insert": verdict}


@pytest.mark.parametrize(
    ("remembers", "verdict"), [(True, Verdict.IMPROVEMENT), (False, Verdict.INCONCLUSIVE)]
)
def test_a_resumed_session_knows_which_blocks_a_vacuum_reached(
    tmp_path: Path, remembers: bool, verdict: Verdict
) -> None:
    verdicts = SequentialVerdicts(BASE, [CONTENDER], Design(steps=1, least=5, cap=30), 0.02, {})
    start = replace(session_start(), options={"mode": "long", "versions": [BASE, CONTENDER]})
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(start)
        for number in range(1, 11):
            noise = 1 + 0.005 * (-1) ** number
            for version, qps in ((BASE, 1000.0 * noise), (CONTENDER, 1060.0 / noise)):
                is_reached = (version, number) == (CONTENDER, 4)
                record = run_record(
                    {QPS: 400.0 if is_reached else qps},
                    version=version,
                    repetition=number,
                    activities=(Activity(VACUUM, 2, 14),) if is_reached else (),
                )
                store.record_run(session, record)
        store.finish_session(session, SessionStatus.INTERRUPTED)
        builds = [a_build(version) for version in (BASE, CONTENDER)]
        with store.database.reading() as connection:
            resumed = find_interrupted(connection, start, builds, NIGHT - timedelta(hours=1))
        assert resumed is not None
        bursts = resumed.bursts if remembers else ()
        request: Any = None
        recorder = RunRecorder(request, store, session, Silent(), resumed.recorded, bursts)
        FailurePolicy(recorder, verdicts, 5, keep_disturbed=False).resume(())
    assert verdicts.verdicts(CONTENDER, 10) == {"insert": verdict}
