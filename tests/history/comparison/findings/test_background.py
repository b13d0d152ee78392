"""Shares of background work, as compare.py tells them in words and in JSON."""

from dataclasses import replace
from pathlib import Path

import pytest

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.options import CompareOptions
from history.comparison.rounds.background import background_shares
from history.open import open_store
from history.rendering.json_text import render_json
from history.store.records import SessionStatus
from suites.accounting.activity import CHECKPOINT, LOG_WAIT, PURGE, VACUUM, Activity
from suites.metric import QPS
from tests.history.comparison.findings.test_onset import BASE, CONTENDER
from tests.history.handmade import NIGHT, run_record, session_start

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
