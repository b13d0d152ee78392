"""Counts guide a bisect of throughput: where they differ they come first, and rounds confirm them."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.bisects.bisect_ranges import (
    SimulatedRange,
    no_step,
    normal,
    one_step,
    search,
    wobbling,
)
from build.finished_build import Build
from build.version import Version
from history.store.bisects import EventKind
from runners.bisect.domain.rules import Measure, Observation, SearchVerdict
from runners.bisect.inference.commit_prior import suggested, uniform
from runners.bisect.inference.guided_search import TRUST, GuidedSearch
from runners.bisect.inference.search import Search
from runners.bisect.report.render import markdown, text
from runners.bisect.report.replay import read_file, replay
from runners.bisect.report.state import BisectState, export
from runners.bisect.run.ahead import CompilingAhead
from runners.bisect.run.bisect import BisectRequest, BisectRun
from runners.measuring.request import Exact, Sampled
from tests.runners.bisect.conftest import SLOWER, Line, asked, verdict_of
from tests.runners.bisect.stand import FakeRounds, Fuse, KilledError, Stand, a_question, total_rounds

Made = Callable[..., Stand]

QUESTION = a_question("good", "bad")
COUNTED = a_question("good", "bad", metric="instructions_per_op").rules()
BUILD_ROUNDS = 2.5
SCATTER = 0.001


# --- a search by counts alone


@pytest.mark.parametrize(("size", "length"), [(0.01, 251), (0.3, 251), (0.007, 64)])
def test_counts_need_hardly_more_than_a_pass_a_commit(size: float, length: int) -> None:
    for seed in range(4):
        rng = np.random.default_rng((21, seed))
        commits = wobbling(rng, one_step(rng, length, -size), SCATTER / 2)
        outcome = search(commits, normal(rng, SCATTER), COUNTED)
        assert commits.right(outcome.verdict)
        assert outcome.builds - 2 <= 1.2 * math.log2(length)
        assert outcome.rounds <= outcome.builds + (12 if size < 0.01 else 2)


def test_counts_that_scatter_are_no_change() -> None:
    for seed in range(10):
        rng = np.random.default_rng((22, seed))
        outcome = search(wobbling(rng, no_step(64), SCATTER / 2), normal(rng, SCATTER), COUNTED)
        assert outcome.verdict.kind == "none"
        assert outcome.verdict.smallest_seen < 0.005
        assert outcome.rounds <= 4


def test_a_pass_near_the_edge_is_repeated() -> None:
    """Good and bad are 1 % apart; a first pass lies half-way between them."""
    search_ = Search(3, COUNTED)
    for position, level in ((3, 0.0100), (3, 0.0102), (2, 0.0100), (1, 0.0050)):
        search_.observe(Observation(position, level))
    assert search_.next() == Measure((1,))
    search_.observe(Observation(1, 0.0098))
    search_.observe(Observation(1, 0.0101))
    found = search_.next()
    assert isinstance(found, SearchVerdict)
    assert found.high == 1


# --- counts first, then rounds


def guided(
    commits: SimulatedRange, counts: SimulatedRange, seed: int, noise: float
) -> tuple[SearchVerdict, int, int]:
    """A search with counts: its verdict, rounds and passes."""
    search_ = GuidedSearch(commits.length, QUESTION.rules(), BUILD_ROUNDS, QUESTION.counted_rules())
    rng = np.random.default_rng((23, seed))
    rounds = passes = 0
    while not isinstance(probe := search_.next(), SearchVerdict):
        (position,) = probe.positions
        for _ in range(probe.rounds):
            if probe.counted:
                passes += 1
                level = counts.levels[position] + rng.normal(0, SCATTER)
            else:
                rounds += 1
                level = commits.levels[position] + rng.normal(0, noise)
            search_.observe(Observation(position, float(level), probe.counted))
    return probe, rounds, passes


def stepped(length: int, at: int, size: float) -> SimulatedRange:
    levels = np.zeros(length + 1)
    levels[at:] = math.log1p(size)
    return SimulatedRange(levels, (at,))


@pytest.mark.deep("searches that are simulated many times")
def test_counts_find_where_and_rounds_confirm_it() -> None:
    commits, counts = stepped(256, 100, -0.04), stepped(256, 100, 0.03)
    verdict, rounds, passes = guided(commits, counts, 1, 0.03)
    assert commits.right(verdict)
    assert passes <= 12
    _, alone, none = guided(commits, no_step(256), 1, 0.03)
    assert none <= 4, "ends that do not differ in counts are counted no more"
    assert rounds < alone


def test_rounds_confirm_both_sides_of_what_counts_name() -> None:
    search_ = GuidedSearch(64, QUESTION.rules(), BUILD_ROUNDS, QUESTION.counted_rules())
    for value in (-0.1, -0.11, -0.09, -0.1):
        search_.observe(Observation(64, value))
    while isinstance(probe := search_.next(), Measure) and probe.counted:
        (position,) = probe.positions
        search_.observe(Observation(position, 0.08 if position >= 30 else 0.0, counted=True))
    assert search_.posterior[30] == pytest.approx(TRUST, abs=0.07), "counts alone name nobody"
    timed = set()
    while isinstance(probe := search_.next(), Measure):
        (position,) = probe.positions
        timed.add(position)
        search_.observe(Observation(position, -0.1 if position >= 30 else 0.0))
    assert timed >= {29, 30}
    assert (probe.kind, probe.high) == ("culprit", 30)


@pytest.mark.deep("searches that are simulated many times")
def test_counts_that_change_elsewhere_are_contradicted() -> None:
    commits = stepped(64, 20, -0.08)
    for seed in range(3):
        verdict, _, passes = guided(commits, stepped(64, 50, 0.05), seed, 0.02)
        assert passes > 4
        assert commits.right(verdict)


def test_a_small_change_of_counts_is_no_cause_of_a_large_one_of_throughput() -> None:
    commits = stepped(64, 20, -0.2)
    verdict, _, passes = guided(commits, stepped(64, 50, 0.01), 1, 0.02)
    assert commits.right(verdict)
    assert passes <= 4


def test_fewer_instructions_explain_no_loss() -> None:
    commits = stepped(64, 20, -0.05)
    verdict, _, passes = guided(commits, stepped(64, 50, -0.05), 1, 0.02)
    assert commits.right(verdict)
    assert passes <= 4


def test_a_suggested_prior_is_a_prior() -> None:
    weights = np.zeros(10)
    weights[6] = 1.0
    prior = suggested(weights, 0.9)
    assert prior.shares((0, 6, 7, 10)) == pytest.approx([0.06, 0.91, 0.03])
    assert prior.of_commits(np.array([0.5, 0.5]), (0, 5, 10)).sum() == pytest.approx(1.0)
    assert prior.dividing(0, 10, 0.5) == pytest.approx(6.5, abs=0.5)
    even = uniform(10)
    assert even.dividing(2, 8, 0.25) == 3.5
    assert even.share(2, 5, 8) == 0.5


def test_what_comes_next_is_foreseen_where_the_outcome_is_the_likelier_one() -> None:
    """A compile takes as long as many passes, so that a third of them saved is worth the wrong ones."""
    commits, search_ = stepped(200, 30, 0.05), GuidedSearch(200, COUNTED, BUILD_ROUNDS)
    right = guesses = 0
    foreseen = None
    while isinstance(wanted := search_.next(), Measure):
        (position,) = wanted.positions
        if foreseen is not None:
            guesses += 1
            right += foreseen == position
        foreseen = search_.foreseen(wanted)
        for _ in range(wanted.rounds):
            search_.observe(Observation(position, float(commits.levels[position])))
    assert guesses >= 4
    assert right >= guesses / 3
    assert search_.foreseen(Measure((30,))) is None, "nothing comes after the answer"


# --- on a made-up machine


def counts_of(line: Line, *steps: tuple[int, float]) -> dict[str, float]:
    """Instructions per query by version; `steps` as Line.rates has them."""
    return line.rates(*steps)


@pytest.mark.deep("searches that are simulated many times")
def test_a_bisect_counts_first_and_says_so(stand: Made, line: Line, tmp_path: Path) -> None:
    machine = stand((11, SLOWER), counts=counts_of(line, (11, 1.05)))
    log = machine.bisect(asked(line))
    state = BisectState(log)
    assert verdict_of(log).high == 11
    assert 4 <= state.passes == machine.counted <= 9
    timed = {observed.position for observed in state.measured()}
    assert {10, 11} <= timed, "rounds confirm the culprit"
    assert len(timed) < len({observed.position for observed in state.counted()})
    assert "counted passes" in text(state)
    assert "1.05" in text(state).partition("Instructions per query")[2]
    assert "Instructions per query" in markdown(state)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(export(state)))
    lines = list(replay(read_file(path)))
    assert any("next: count 1 x" in said for said in lines)
    (profiled,) = machine.profiled
    assert (profiled.exact, profiled.counts_functions) == (Exact.ONLY, True)
    assert [str(version) for version in profiled.versions] == [line.version(10), line.version(11)]
    machine.bisect(asked(line))
    assert len(machine.profiled) == 1, "once is enough"
    for _ in range(2):
        machine.bisect(asked(line), perf=True)
    assert [request.perf for request in machine.profiled] == [None, Sampled.AFTER], "samples, once too"
    assert any("verdict: culprit, 10 to 11" in said for said in lines)


def test_without_counts_it_is_as_it_was(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER), counts=counts_of(line, (11, 1.05)))
    log = machine.bisect(asked(line), counts=False)
    assert machine.counted == 0
    assert machine.profiled == []
    assert "counted_rules" not in log.bisect.question
    assert verdict_of(log).high == 11


def test_a_commit_that_cannot_be_counted_is_timed(stand: Made, line: Line) -> None:
    failing = [line.version(place) for place in (8, 11)]
    machine = stand((11, SLOWER), counts=counts_of(line, (11, 1.05)), uncountable=failing)
    log = machine.bisect(asked(line))
    assert verdict_of(log).high == 11
    assert not list(BisectState(log).excluded())
    assert any(event.detail.get("counted") for event in log.bisect.events)


def test_bad_that_cannot_be_counted_leaves_everything_to_rounds(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER), counts=counts_of(line, (11, 1.05)), uncountable=[line.version(16)])
    log = machine.bisect(asked(line))
    assert verdict_of(log).high == 11
    assert machine.counted == 1


def test_killed_between_passes_it_goes_on_without_counting_twice(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER), counts=counts_of(line, (11, 1.05)), fuse=Fuse(left=22))
    with pytest.raises(KilledError):
        machine.bisect(asked(line))
    assert machine.counted > 0
    machine.fuse = Fuse()
    log = machine.bisect(asked(line))
    assert verdict_of(log).high == 11
    state = BisectState(log)
    assert state.rounds + state.passes == total_rounds(machine.store)
    assert [event.kind for event in log.bisect.events[-2:]] == [EventKind.VERDICT, EventKind.PROFILED]


def test_a_valgrind_that_is_gone_stops_the_counting(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER), counts=counts_of(line, (11, 1.05)))
    machine.bisect(asked(line), budget_seconds=4 * 60.0)
    before, machine.counts = machine.counted, None
    log = machine.bisect(asked(line))
    assert machine.counted == before
    assert verdict_of(log).high == 11


def test_the_next_commit_compiles_beside_passes_and_never_beside_rounds(
    stand: Made, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = stand((11, SLOWER), counts=counts_of(line, (11, 1.05)))
    ahead: list[str] = []
    compiling: list[bool] = [False]
    timed = FakeRounds.measure_round

    def provided(version: Version, git: str | None) -> Build:
        ahead.append(str(version))
        build = machine.provide(version, git)
        machine.built.pop()  # in another process
        return build

    def start(_: CompilingAhead, what: int, compile_next: Callable[[], object]) -> None:
        compile_next()
        compiling[0] = True

    def end(_: CompilingAhead, *, but: int | None = None) -> None:
        compiling[0] = False

    def measured(*given: Any) -> None:
        assert not compiling[0]
        timed(*given)

    monkeypatch.setattr(CompilingAhead, "start", start)
    monkeypatch.setattr(CompilingAhead, "end", end)
    monkeypatch.setattr(FakeRounds, "measure_round", measured)
    known = replace(machine.dependencies, provide_silently=provided)
    asked_ = BisectRequest(asked(line), machine.address)
    log = BisectRun(asked_, machine.home, machine.store, machine.progress, known).run()
    assert verdict_of(log).high == 11
    assert set(ahead) & set(machine.built), "some guesses are right"
    assert not compiling[0]
