"""Which rounds have a counted pass, and what becomes of passes that fail or disagree: without servers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from build.errors import TidemarkError
from build.progress import ProgressTask, Silent, SilentTask
from history.store.records import RunStatus
from history.store.resume import recorded
from runners.measuring import rounds
from runners.measuring.passes import counted_passes
from runners.measuring.passes.base_work import DONE_BEFORE, BaseWork
from runners.measuring.request import Exact, counted_once
from suites.counting.callgrind import CallgrindError
from suites.generators.load import LoadError, LongPassError
from suites.metrics import COUNTED_TRANSACTIONS, INSTRUCTIONS
from suites.sizing import Hardware
from tests.runners.measuring.journal import Journal
from tests.runners.measuring.passes.stand import STEPS, SUITE, Passes, as_recorded, counted, session, shown
from tests.suites.servers import wait_for


def test_the_first_two_rounds_have_a_pass_and_the_first_one_a_profile(passes: Passes) -> None:
    journal, failures = session(4, Exact.BESIDE)
    assert not failures
    assert counted(journal, "18.6", "delete") == [1000.0, 1000.0, None, None]
    assert sorted(passes.done)[:3] == ["17.11 delete", "17.11 delete stacks", "17.11 update-index"]
    assert len(passes.done) == 2 * 2 * 2


def test_of_the_levels_of_a_step_the_first_is_counted(passes: Passes) -> None:
    levels = SUITE.select(("delete@4", "delete@16"))
    journal, failures = session(2, Exact.BESIDE, steps=levels)
    assert not failures
    assert counted(journal, "18.6", "delete@4") == [1000.0, 1000.0]
    assert counted(journal, "18.6", "delete@16") == [None, None]
    assert [step.name for step in counted_once(levels)] == ["delete@4"]


@pytest.mark.parametrize("counts", [[1000.0, 1004.0, 1003.9], [1010.0]], ids=["disagree", "show a change"])
def test_passes_that_do_not_decide_are_followed_by_others(passes: Passes, counts: list[float]) -> None:
    passes.counts["18.6 delete"] = list(counts)
    journal, _ = session(5, Exact.BESIDE)
    *four, fifth = counted(journal, "18.6", "delete")
    assert four == (counts + [counts[-1]] * 3)[:4]
    assert fifth is None
    assert counted(journal, "17.11", "delete")[3] is not None, "the versions of a round are counted together"
    assert counted(journal, "18.6", "update-index")[2] is None


def test_passes_that_rounds_have_no_room_for_are_rounds_of_their_own(passes: Passes) -> None:
    passes.counts["18.6 delete"] = [1010.0]
    journal, failures = session(3, Exact.BESIDE)
    assert not failures
    assert counted(journal, "18.6", "delete") == [1010.0] * 4
    measured = {
        record.repetition: record.measurement.values.keys()
        for record in journal.records
        if record.step == "delete" and record.measurement
    }
    assert measured[4] == {INSTRUCTIONS, COUNTED_TRANSACTIONS}
    assert INSTRUCTIONS in measured[3]
    assert len(measured[3]) > 1
    assert len(counted(journal, "18.6", "update-index")) == 3


def test_passes_of_both_versions_that_rise_alike_decide(passes: Passes) -> None:
    for name in ("17.11 delete", "18.6 delete"):
        passes.counts[name] = [1000.0, 1004.0]
    journal, _ = session(3, Exact.BESIDE)
    assert counted(journal, "18.6", "delete") == [1000.0, 1004.0, None]


def test_a_session_of_passes_alone_has_no_slices(passes: Passes) -> None:
    passes.counts["17.11 delete"] = [1000.0, 1004.0, 1004.1]
    journal, failures = session(2, Exact.ONLY)
    assert not failures
    assert not [line for line in journal.lines if line.startswith("run")]
    assert [len(counted(journal, "18.6", step.name)) for step in STEPS] == [2, 4]
    assert {frozenset(record.measurement.values) for record in journal.records if record.measurement} == {
        frozenset({INSTRUCTIONS, COUNTED_TRANSACTIONS})
    }


def test_a_pass_that_fails_is_a_warning_of_its_round(passes: Passes) -> None:
    passes.counts["18.6 delete"] = [CallgrindError("unknown instruction")]
    journal, failures = session(2, Exact.BESIDE)
    assert not failures, "the slices were measured"
    last = [
        record for record in journal.records if (record.build.release, record.step) == ("18.6", "delete")
    ][-1]
    assert last.status is RunStatus.FINISHED
    assert last.measurement is not None
    assert list(last.measurement.warnings) == ["no exact count: unknown instruction"]


@pytest.mark.parametrize("error", [CallgrindError("it died"), LoadError("sysbench is still running")])
def test_a_pass_that_fails_alone_is_a_failed_run_and_the_session_goes_on(
    passes: Passes, error: TidemarkError
) -> None:
    passes.counts["18.6 update-index"] = [error]
    journal, failures = session(2, Exact.ONLY)
    assert journal.rounds_of("18.6", "update-index") == [(1, RunStatus.FAILED), (2, RunStatus.FAILED)]
    assert journal.rounds_of("17.11", "update-index") == [(1, RunStatus.FINISHED), (2, RunStatus.FINISHED)]
    assert counted(journal, "18.6", "delete") == [1000.0, 1000.0]
    assert len(failures) == 2
    assert error.what in failures[0]


def test_all_passes_of_a_step_count_as_many_transactions(passes: Passes) -> None:
    """As many as the first to ask can afford, in rounds after a resumption too."""
    passes.affordable = {"17.11 delete": 12, "18.6 delete": 12, "17.11 update-index": 3}
    first, _ = session(2, Exact.ONLY)
    assert counted(first, "18.6", "delete", COUNTED_TRANSACTIONS) == [12.0, 12.0]
    both = [counted(first, build, "update-index", COUNTED_TRANSACTIONS) for build in ("17.11", "18.6")]
    assert both in ([[3.0, 3.0]] * 2, [[400.0, 400.0]] * 2)
    passes.affordable = {"17.11 delete": 100, "18.6 delete": 100}
    passes.counts["18.6 delete"] = [1000.0, 1004.0]
    again, _ = session(3, Exact.ONLY, recorded(as_recorded(first)))
    assert counted(again, "17.11", "delete", COUNTED_TRANSACTIONS) == [12.0]


def test_a_long_pass_tells_how_far_it_is(passes: Passes) -> None:
    told: list[str] = []
    session(1, Exact.ONLY, progress=shown(told))
    assert told[0] == "or more passes of steps"
    assert f"pass 1: {STEPS[0].name} (2 steps open)" in told
    assert "the server of postgres@18.6 starts under callgrind" in told
    assert "postgres@18.6 has run 100 of 400 transactions under callgrind, about 30 s left" in told


def test_passes_that_are_certain_to_come_are_counted_from_the_first_on(passes: Passes) -> None:
    """And what is added later is announced: `4 of 4 or more passes of steps`."""
    counts: list[tuple[float, float | None]] = []

    class Task(SilentTask):
        def update(self, done: float, total: float | None = None) -> None:
            counts.append((done, total))

    class Shown(Silent):
        @contextmanager
        def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
            assert (total, unit) == (4, "or more passes of steps")
            yield Task()

    passes.counts["18.6 delete"] = [1000.0, 1100.0, 1000.0, 1100.0]
    session(2, Exact.ONLY, progress=Shown())
    assert counts == [(1, 4), (2, 4), (3, 4), (4, 4), (5, 5), (6, 6)]


def test_once_a_pass_has_ended_the_one_that_is_waited_for_is_told(
    passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted_passes, "this_machine", lambda: Hardware(2, 24 * 1024**3))
    told: list[str] = []
    passes.before["18.6 delete"] = lambda: wait_for(lambda: any("17.11 has run" in text for text in told))
    passes.after["17.11 delete"] = lambda: wait_for(
        lambda: "postgres@17.11 has run" in told[-1] and any("18.6 has run" in text for text in told)
    )
    session(1, Exact.ONLY, progress=shown(told), steps=STEPS[1:])


def test_a_pass_that_reached_its_limit_is_not_tried_again(passes: Passes) -> None:
    passes.counts["18.6 delete"] = [LongPassError("ended after 600 s"), 1000.0]
    journal, failures = session(2, Exact.ONLY)
    assert journal.rounds_of("18.6", "delete") == [(1, RunStatus.FAILED), (2, RunStatus.FAILED)]
    assert journal.rounds_of("17.11", "delete") == [(1, RunStatus.FINISHED), (2, RunStatus.FINISHED)]
    assert len([name for name in passes.done if name.startswith("18.6 delete")]) == 1
    assert len(failures) == 2


def test_a_resumed_session_knows_the_passes_it_has(passes: Passes) -> None:
    passes.counts["18.6 delete"] = [1000.0, 1004.0]
    first, _ = session(2, Exact.BESIDE)
    again, _ = session(3, Exact.BESIDE, recorded(as_recorded(first)))
    assert counted(again, "18.6", "delete") == [1004.0] * 2, "rounds 3 and 4 have passes"
    assert counted(again, "18.6", "update-index") == [None]


def order(journal: Journal) -> list[tuple[str, int]]:
    """Steps and rounds, in the order in which they were recorded."""
    return list(dict.fromkeys((record.step, record.repetition) for record in journal.records))


WITHIN: dict[str, Any] = {"until_decided": True, "has_deadline": True}


def test_within_a_budget_counts_come_first_and_rounds_go_where_they_leave_doubt(passes: Passes) -> None:
    passes.counts["18.6 delete"] = [1030.0]
    journal, _ = session(3, Exact.FIRST, budget_seconds=3600.0, **WITHIN)
    first = SUITE.profile("smoke").most_rounds + 1
    expected = [(step.name, first) for step in STEPS] + [(step.name, first + 1) for step in STEPS]
    # A change needs four passes.
    expected += [("delete", first + 2), ("delete", first + 3)]
    expected += [("delete", number) for number in (1, 2, 3)]
    expected += [("update-index", number) for number in (1, 2, 3)]
    assert order(journal) == expected
    assert [name for name in passes.done if "stacks" in name] == [
        f"{release} {step.name} stacks" for step in STEPS for release in ("17.11", "18.6")
    ]


def test_a_budget_that_is_used_up_leaves_the_counts(passes: Passes) -> None:
    journal, _ = session(3, Exact.FIRST, budget_seconds=0.0, **WITHIN)
    assert len(order(journal)) == 4, "two passes of two steps, no round"
    assert counted(journal, "18.6", "delete") == [1000.0, 1000.0]
    journal, _ = session(3, Exact.NO, budget_seconds=0.0, **WITHIN)
    assert not journal.records


def test_passes_of_minutes_leave_half_of_the_budget_to_rounds(
    passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of one step come before the next one."""
    monkeypatch.setattr(rounds, "is_slowly_counted", lambda version: True)
    monkeypatch.setattr(rounds, "SLOW_PASS_SECONDS", 0.0)
    journal, _ = session(3, Exact.FIRST, budget_seconds=3600.0, **WITHIN)
    first = SUITE.profile("smoke").most_rounds + 1
    names = [step.name for step in STEPS]
    assert order(journal)[:4] == [(name, number) for name in names for number in (first, first + 1)]
    monkeypatch.setattr(rounds, "SLOW_PASS_SECONDS", 1000.0)
    told = Silent()
    journal, _ = session(3, Exact.FIRST, budget_seconds=3600.0, progress=told, **WITHIN)
    assert order(journal)[0] == (names[0], 1)
    assert [note for note in told.notes if note.startswith("not counted: ")] == [
        f"not counted: {', '.join(names)}: a pass takes about 17 min, and half of the budget is for rounds; "
        "--exact-only counts all"
    ]


def test_a_version_whose_passes_fail_one_after_the_other_is_not_tried_again(passes: Passes) -> None:
    """Of any step; one that works in between begins the row anew."""
    broken: list[float | TidemarkError] = [CallgrindError("it does not start")]
    passes.counts["18.6 update-index"] = [*broken, 1000.0, *broken]
    passes.counts["18.6 delete"] = broken
    session(6, Exact.BESIDE, beside_passes=6)
    tried = [name.removesuffix(" stacks") for name in passes.done if name.startswith("18.6")]
    assert tried == ["18.6 update-index", "18.6 delete"] * 3
    assert passes.done.count("17.11 delete") == 5


def test_steps_that_are_named_first_are_decided_first(passes: Passes) -> None:
    journal, _ = session(3, Exact.NO, budget_seconds=3600.0, first_steps=("delete",), **WITHIN)
    assert [step for step, _ in order(journal)] == ["delete"] * 3 + ["update-index"] * 3


def test_passes_of_the_base_serve_the_sessions_after_them(passes: Passes) -> None:
    """Those that no session before had are counted, and no pass of the version beside it is spared."""
    earlier = BaseWork()
    passes.counts["17.11 delete"] = [1000.0, 1001.0, 5000.0]
    session(2, Exact.ONLY, earlier=earlier)
    passes.done.clear()
    passes.counts["18.6 delete"] = [1001.0, 1030.0, 1030.0]
    journal, failures = session(2, Exact.ONLY, earlier=earlier)
    assert not failures
    assert counted(journal, "17.11", "delete") == [1000.0, 1001.0, 5000.0, 5000.0]
    assert sorted(name.removesuffix(" stacks") for name in passes.done) == [
        *["17.11 delete"] * 2,
        *["18.6 delete"] * 4,
        *["18.6 update-index"] * 2,
    ]
    told = [
        bool(record.measurement and DONE_BEFORE in record.measurement.warnings)
        for record in journal.records
        if (record.build.release, record.step) == ("17.11", "delete")
    ]
    assert told == [True, True, False, False]


def test_a_pass_of_another_length_does_not_serve(passes: Passes) -> None:
    earlier = BaseWork()
    session(3, Exact.ONLY, earlier=earlier)
    passes.affordable = dict.fromkeys(("17.11 delete", "18.6 delete"), 12)
    passes.counts["18.6 delete"] = [1000.0, 1004.0]
    short, _ = session(2, Exact.ONLY)
    passes.done.clear()
    again, _ = session(3, Exact.ONLY, recorded(as_recorded(short)), earlier=earlier)
    assert set(counted(again, "17.11", "delete", COUNTED_TRANSACTIONS)) == {12.0}
    assert "17.11 delete" in passes.done
