"""Counted instructions in a comparison: beside throughput, alone, and by function."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.options import CompareOptions, Instructions
from history.comparison.profile_diff import differential
from history.comparison.result import Comparison
from history.comparison.verdict import Gap, Verdict
from history.open import open_store
from history.rendering.next_step.closing import closing
from history.rendering.plain_table import Screen
from history.rendering.terminal import render_terminal
from history.store.records import EXACT, ONLY, SessionStatus
from history.store.writer import Store
from runners.commands.demo import summary
from suites.measurement import Measurement
from suites.metrics import INSTRUCTIONS
from suites.profiling.stacks import COUNTED_EVENT, COUNTED_FREQUENCY, StepProfile
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.6", "postgres@18.6#planted"
OPEN, SLOWER = [[1000.0, 1010, 990], [980.0, 1030, 970]], [[1000.0, 1001, 999], [900.0, 901, 899]]
Counts = Sequence[Sequence[float]]
"""Of base and contender, by pass."""


def counted(work: int, loop: int) -> StepProfile:
    """Ten queries, each with one index scan, in which a loop may be planted."""
    stacks = {"client backend;PostgresMain;_bt_first": 10 * work}
    calls = {"_bt_first": 10}
    if loop:
        stacks["client backend;PostgresMain;_bt_first;planted_loop"] = 10 * loop
        calls["planted_loop"] = 10
    return StepProfile(COUNTED_EVENT, COUNTED_FREQUENCY, 10.0, 0, stacks, calls)


def record(store: Store, counts: Mapping[str, Counts], qps: Counts | None = None) -> None:
    """A session with the counts of each step, and with rates of each round unless there are none."""
    exact = {"tool": "valgrind-3.19.0", "passes": 2, "when": "beside" if qps else ONLY}
    start = replace(session_start(repetitions=3 if qps else 2), options={EXACT: exact})
    session = store.start_session(start)
    for place, (step, both) in enumerate(counts.items(), start=1):
        for which, version in enumerate((BASE, CONTENDER)):
            for number in range(1, 1 + max(len(both[which]), len(qps[which]) if qps else 0)):
                values = {"qps": qps[which][number - 1]} if qps and number <= len(qps[which]) else {}
                if number <= len(both[which]):
                    values[INSTRUCTIONS] = both[which][number - 1]
                loop = int(both[which][0] - both[0][0]) if which else 0
                profile = counted(int(both[0][0]), max(0, loop)) if number == 1 else None
                record_made = run_record(
                    values, version=version, step=step, step_position=place, repetition=number
                )
                store.record_run(
                    session, replace(record_made, measurement=Measurement(values, (), counted=profile))
                )
    store.finish_session(session, SessionStatus.FINISHED)


def compared(
    path: Path, counts: Mapping[str, Counts], qps: Counts | None = None, options: CompareOptions | None = None
) -> Comparison:
    with open_store(path / "history.db", clock=lambda: NIGHT) as store:
        record(store, counts, qps)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], options)


def terminal(comparison: Comparison) -> str:
    file = io.StringIO()
    render_terminal(comparison, Screen(file, 110))
    return " ".join(file.getvalue().split())


MORE: dict[str, Counts] = {"update-index": [[50_000, 50_010] * 2, [52_450, 52_440] * 2]}


@pytest.mark.parametrize(
    ("instructions", "qps", "code"),
    [
        (Instructions.UNDECIDED, OPEN, 1),
        (Instructions.NEVER, OPEN, 2),
        (Instructions.ALWAYS, [SLOWER[0], SLOWER[0]], 1),
        (Instructions.UNDECIDED, [SLOWER[0], SLOWER[0]], 0),
    ],
)
def test_more_instructions_are_a_finding_where_throughput_is_open(
    tmp_path: Path, instructions: Instructions, qps: Counts, code: int
) -> None:
    comparison = compared(tmp_path, MORE, qps, CompareOptions(instructions=instructions))
    assert exit_code(comparison) == code
    said = "update-index: 4.9 % more instructions per query (50005 -> 52445); throughput undecided"
    assert (said in terminal(comparison)) is (qps is OPEN)
    assert " instr " in terminal(comparison)
    assert " 1.049+ " in terminal(comparison)


def test_they_explain_a_regression_of_throughput(tmp_path: Path) -> None:
    (step,) = compared(tmp_path, MORE, SLOWER).contenders[0].steps
    assert step.judged.verdict is Verdict.REGRESSION
    assert step.explained_by == (INSTRUCTIONS,)


def test_the_next_command_compares_profiles_only_where_there_are_any(tmp_path: Path) -> None:
    (contender,) = compared(tmp_path, MORE).contenders
    assert f"profile diff {BASE} '{CONTENDER}' --step update-index" in closing(contender, {})
    pruned = replace(
        contender, steps=tuple(replace(step, gained_instructions=()) for step in contender.steps)
    )
    assert closing(pruned, {}).endswith("--costs")


@pytest.mark.parametrize(
    ("passes", "said"), [(2, "no command measures this again"), (4, "after 4 passes, the most that are ")]
)
def test_more_passes_are_offered_only_where_they_are_counted(tmp_path: Path, passes: int, said: str) -> None:
    near = [50_260.0, 50_240, 50_260, 50_240]
    (contender,) = compared(tmp_path, {"insert": [[50_000.0] * passes, near[:passes]]}).contenders
    assert contender.steps[0].judged.verdict is Verdict.INCONCLUSIVE
    text = closing(contender, {})
    assert text.startswith("undecided in 1 of 1 step")
    assert said in text
    assert text.endswith("--metric instructions_per_op --exact-threshold 1") is (passes == 4)


def test_a_session_of_counts_alone_is_judged_by_them(tmp_path: Path) -> None:
    counts: dict[str, Counts] = {
        **MORE,
        "insert": [[60_000, 60_020], [60_100, 60_090]],
        "delete": [[7e4, 7e4], [7e4, 7.1e4]],
        "update-one": [[5e4, 5.1e4, 5e4, 5e4], [5.1e4, 5.1e4, 5.1e4, 5e4]],
        "update-zipf": [[5e4, 5e4], [5.1e4, 5.1e4]],
        "update-inlist": [[5e4, 5.1e4], [5e4, 5.1e4]],
        "write-only": [[5e4] * 4, [5.5e4, 5.5e4, 5.55e4, 5.5e4]],
    }
    comparison = compared(tmp_path, counts)
    steps = {step.step: step.judged for step in comparison.contenders[0].steps}
    assert comparison.metric.name == INSTRUCTIONS
    assert steps["update-index"].verdict is Verdict.REGRESSION
    assert steps["insert"].verdict is Verdict.UNCHANGED
    assert (steps["delete"].verdict, steps["delete"].gap) == (None, Gap.DISAGREE)
    text = terminal(comparison)
    assert "update-index 50005 52445 1.049 1.045–1.052 regression" in text
    assert "no verdict: delete: the ratios of 2 counted passes are 1.4 % apart, more than 0.3 %" in text
    assert steps["update-one"].gap is Gap.DISAGREE
    said = "the ratios of 4 counted passes are 2.0 % apart, more than 0.3 %: the count has two levels or more"
    assert f"update-one: {said}" in text
    assert steps["update-zipf"].verdict is Verdict.INCONCLUSIVE, "two levels do the same in one of eight"
    assert "update-zipf: a count may have two levels, so a change needs 4 counted passes" in text
    assert steps["update-inlist"].verdict is Verdict.UNCHANGED, "both rise from the first pass to the second"
    assert steps["write-only"].verdict is Verdict.REGRESSION, "of 10 or 11 %, but a change"
    assert "update-index: instructions per query gained by planted_loop +2,450 (100 %)" in text
    assert "2 passes" in text
    assert " cs " not in text, "columns of what was not measured"


def test_a_function_that_is_called_more_is_told_from_one_that_costs_more() -> None:
    base = StepProfile(
        COUNTED_EVENT, COUNTED_FREQUENCY, 10.0, 0, {"c;f": 1000, "c;g": 1000}, {"f": 10, "g": 10}
    )
    both = differential(
        {1: base}, {1: replace(base, stacks={"c;f": 2000, "c;g": 2000}, calls={"f": 20, "g": 10})}
    )
    by_name = {function.name: function for function in both.functions}
    assert by_name["f"].is_called_more is True
    assert by_name["g"].is_called_more is False
    assert by_name["f"].calls == (1.0, 2.0)


def test_what_was_counted_is_read_back(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record(store, MORE)
        session = store.latest_session([parse_version(CONTENDER)])
        assert session is not None
        profiles = store.counted_profiles(session.id, "update-index", parse_version(CONTENDER))
    assert profiles == {1: counted(50_000, 2450)}


def test_the_demo_says_what_was_found_in_five_lines(tmp_path: Path) -> None:
    timed = compared(tmp_path, MORE, OPEN)
    (tmp_path / "counted").mkdir()
    planted = compared(tmp_path / "counted", {**MORE, "insert": [[6e4, 6e4], [6e4, 6e4]]})
    lines = list(summary(timed, [planted]))
    assert lines[1].startswith("- Throughput: 1 of 1 steps are open")
    assert (
        lines[2] == "- Planted slow-down: postgres@18.6#planted executes more than postgres@18.6 in 1 of 2 "
        "steps: update-index +4.9 %; not in insert."
    )
    assert lines[3].startswith(
        "- Guilty function: planted_loop, +2450 instructions per query in update-index"
    )
    assert list(summary(timed, []))[2].startswith("- Instructions were not counted")
