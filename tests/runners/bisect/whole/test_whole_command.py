"""A bisect that goes on after its first answer: what it tells, resumes and replays."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import htpy as h
import pytest

from history.store import bisects
from history.store.bisects import EventKind
from report.pages.bisect import bisect_page
from report.values.clearance import Clearance
from runners.bisect.domain.question import Question
from runners.bisect.report.render import markdown, result, text
from runners.bisect.report.replay import read_file, replay
from runners.bisect.report.state import BisectState, export
from runners.bisect.report.wording import headline
from runners.commands.bisect import UNDECIDED, code
from runners.reporting.bisects import bisect_values
from tests.runners.bisect.conftest import Line, asked, verdict_of
from tests.runners.bisect.stand import Fuse, KilledError, Stand, total_rounds
from tests.runners.bisect.whole.stepped import adds_up

Made = Callable[..., Stand]

SMALL, LARGE = 0.965, 0.75
"""What two commits leave of the throughput; the first is too small for the first answer."""


@pytest.mark.deep("searches that are simulated many times")
def test_it_goes_on_and_reuses_its_rounds(stand: Made, line: Line, tmp_path: Path) -> None:
    machine = stand((4, SMALL), (11, LARGE))
    first = machine.bisect(asked(line))
    assert (verdict_of(first).kind, verdict_of(first).whole) == ("culprit", None)
    before = total_rounds(machine.store)
    log = machine.bisect(asked(line), whole=True)
    assert log.bisect.uid == first.bisect.uid
    verdict, state = verdict_of(log), BisectState(log)
    assert [step.high for step in verdict.steps] == [4, 11]
    assert [point for point in log.span.points if point.message] == state.blamed(), "of the new one too"
    assert adds_up(verdict)
    assert state.rounds == total_rounds(machine.store)
    assert [event.kind for event in log.bisect.events].count(EventKind.VERDICT) >= 3
    told = text(state)
    assert "two steps" in headline(state)
    assert "is not explained" in headline(state)
    for shown in (told, markdown(state), result(state)):
        assert "not explained" in shown
        assert "whole difference" in shown
    file = tmp_path / "log.json"
    file.write_text(json.dumps(export(state)), encoding="utf-8")
    assert list(replay(read_file(file))) == list(replay(log))
    machine.bisect(asked(line), whole=True)
    assert total_rounds(machine.store) == state.rounds > before


@pytest.mark.deep("searches that are simulated many times")
def test_killed_while_it_goes_on_it_measures_nothing_twice(stand: Made, line: Line) -> None:
    machine = stand((4, SMALL), (11, LARGE))
    machine.bisect(asked(line))
    for left in range(3, 40, 4):
        machine.fuse = Fuse(left=left)
        try:
            machine.bisect(asked(line), whole=True)
        except KilledError:
            continue
        break
    machine.fuse = Fuse()
    log = machine.bisect(asked(line), whole=True)
    assert [step.high for step in verdict_of(log).steps] == [4, 11]
    assert BisectState(log).rounds == total_rounds(machine.store)


def test_an_exhausted_budget_is_no_answer_about_the_rest(stand: Made, line: Line) -> None:
    machine = stand((4, SMALL), (11, LARGE))
    machine.bisect(asked(line))
    log = machine.bisect(asked(line), whole=True, budget_seconds=-1, perf=True)
    state = BisectState(log)
    assert log.bisect.is_open
    assert machine.profiled == [], "the rest may name another commit"
    assert code(state) == UNDECIDED
    assert "--all goes on" in text(state)
    with machine.store.database.reading() as connection:
        assert next(bisects.load_all(connection)).verdict is not None


DENSE = {2: 1.03, 4: 0.96, 5: 1.05, 8: 0.9, 9: 1.02, 13: 1.15, 16: 0.985}
"""What commits make of the instructions: most of what was counted before one of them differs after it."""


def counting(stand: Made, line: Line, **changes: object) -> Stand:
    return stand(counts=line.rates(*DENSE.items()), counts_alone=True, **changes)


def by_counts(line: Line) -> Question:
    return asked(line, metric="instructions_per_op", direction="either")


def test_by_counts_it_is_a_list_of_all_commits_even_when_killed(
    stand: Made, line: Line, tmp_path: Path
) -> None:
    machine = counting(stand, line)
    for left in range(5, 400, 15):
        machine.fuse = Fuse(left=left)
        with contextlib.suppress(KilledError):
            machine.bisect(by_counts(line), whole=True)
            break
    machine.fuse = Fuse()
    log = machine.bisect(by_counts(line), whole=True)
    verdict, state = verdict_of(log), BisectState(log)
    assert {step.high: round(step.size, 2) for step in verdict.steps} == pytest.approx(DENSE, abs=0.006)
    assert adds_up(verdict)
    assert state.rounds == total_rounds(machine.store)
    assert code(state) == 0
    assert headline(state).startswith("7 steps: together they change")
    table = text(state).partition("What makes up the difference")[2].splitlines()[2:12]
    assert [row.split()[0] for row in table] == [
        *(state.point(place).short for place in DENSE), "together", "not", "whole",
    ]  # fmt: skip
    assert "Where the change is" not in text(state), "there is no one place"
    assert [tuple(map(str, request.versions)) for request in machine.profiled] == [
        tuple(state.point(place).version for place in (step.low, step.high)) for step in verdict.steps
    ], "each of them once, whatever was killed"
    page = bisect_values(state)
    assert {at.position: at.probability for at in page.positions if at.probability} == {
        step.high: step.confidence for step in verdict.steps
    }
    assert page.nobody is None
    assert f"; {state.rounds} passes, confidence" in text(state), "what is counted is no round"
    shown = str(h.div[bisect_page(page, Clearance()).body])
    assert [at.commit for at in page.positions if at.commit in shown] == [
        at.commit for at in page.positions if at.rounds or at.position == 0
    ], "nobody asks for commits about which nothing is known"
    file = tmp_path / "log.json"
    file.write_text(json.dumps(export(state)), encoding="utf-8")
    told = list(replay(read_file(file)))
    assert told == list(replay(log))
    assert "likeliest" not in "".join(told).partition("the rest of the range is searched")[2]


def test_by_counts_a_commit_that_does_not_compile_makes_a_range(stand: Made, line: Line) -> None:
    broken = line.version(8)
    machine = counting(stand, line, uncompilable={broken: "error: no"})
    verdict = verdict_of(machine.bisect(by_counts(line), whole=True))
    assert [(step.low, step.high) for step in verdict.steps][3] == (7, 9)
    assert len(verdict.steps) == len(DENSE) - 1
    assert adds_up(verdict)
