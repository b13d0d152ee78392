"""Which rounds have a counted pass, and what becomes of passes that fail or disagree: without servers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from build.build import Build
from build.errors import TidemarkError
from build.progress import Progress, ProgressTask, Silent, SilentTask
from build.version import parse_version
from history.stats.repeated_intervals import Design
from history.store.records import RunStatus
from history.store.resume import Recorded, recorded
from runners.measuring import round_measurement, rounds
from runners.measuring.failures.policy import FailurePolicy
from runners.measuring.passes import counted_passes
from runners.measuring.request import Exact, Request, counted_once
from runners.measuring.round_measurement import RoundMeasurement
from runners.measuring.rounds import Rounds
from runners.measuring.run_recorder import RunRecorder
from runners.measuring.sequential_verdicts import SequentialVerdicts
from suites.counting.callgrind import CallgrindError
from suites.counting.counted_pass import CountedPass, PassTerms
from suites.counting.tool import Callgrind
from suites.definition import load_suite
from suites.generators.load import LoadError, LongPassError
from suites.keys.step import Step
from suites.metric_names import COUNTED_TRANSACTIONS, INSTRUCTIONS
from suites.sizing import Hardware, sizes
from tests.runners.measuring.journal import FakeGenerator, FakeServer, Journal

SUITE = load_suite("write-heavy")
STEPS = SUITE.select(("update-index", "delete"))


def a_build(release: str) -> Build:
    return Build(parse_version(f"postgres@{release}"), release, f"key {release}", Path("/nowhere"), {})


OLD, NEW = a_build("17.11"), a_build("18.6")


class Passes:
    """What passes count, in place of a server under callgrind."""

    def __init__(self) -> None:
        self.counts: dict[str, list[float | TidemarkError]] = {}
        """`release step` to what its passes count, one after the other; the last one is repeated."""
        self.affordable: dict[str, int] = {}
        """`release step` to the transactions that its passes can afford."""
        self.done: list[str] = []

    def __call__(
        self,
        server: FakeServer,
        generator: Any,
        step: Step,
        room: Any,
        callgrind: Any,
        terms: PassTerms,
        *,
        stacks: bool,
    ) -> CountedPass:
        name = f"{server.build.release} {step.name}"
        self.done.append(f"{name} stacks" if stacks else name)
        values = self.counts.get(name, [1000.0])
        value = values.pop(0) if len(values) > 1 else values[0]
        transactions = terms.agree(self.affordable.get(name, 400))
        terms.tell(transactions // 4, transactions, 10.0)
        if isinstance(value, TidemarkError):
            raise value
        return CountedPass({INSTRUCTIONS: value, COUNTED_TRANSACTIONS: float(transactions)}, None)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    class Undisturbed:
        def __init__(self, ours: object) -> None: ...

        def begin(self) -> None: ...

        def end(self) -> "Undisturbed":
            return self

        def metrics(self) -> dict[str, float]:
            return {}

        def reasons(self, limits: object) -> tuple[str, ...]:
            return ()

    monkeypatch.setattr(round_measurement, "DisturbanceWatch", Undisturbed)
    passes = Passes()
    monkeypatch.setattr(counted_passes, "count", passes)
    return passes


def session(
    repetitions: int,
    exact: Exact,
    before: Recorded | None = None,
    progress: Progress | None = None,
    steps: tuple[Step, ...] = STEPS,
    earlier: counted_passes.BasePasses | None = None,
    **changes: Any,
) -> tuple[Journal, list[str]]:
    """What a session of two versions and two steps records, and its failures."""
    journal, servers = Journal(), dict[str, FakeServer]()
    versions = (OLD.version, NEW.version)
    request = Request(versions, SUITE, "smoke", steps, repetitions, exact=exact, **changes)

    def serve(build: Build, folder: Path) -> FakeServer:
        servers[build.release] = FakeServer(build, journal)
        return servers[build.release]

    room = sizes(SUITE, SUITE.profile("smoke"), Hardware(2, 24 * 1024**3))
    store: Any = journal
    generator: Any = FakeGenerator(journal, servers)
    verdicts = SequentialVerdicts(str(OLD.version), [str(NEW.version)], Design(2, 3, 20), 0.02, {})
    recorder = RunRecorder(request, store, 1, Silent(), before or {})
    callgrind = Callgrind("valgrind", "valgrind-3.19.0")
    counting = counted_passes.session_passes(
        request, str(OLD.version), room, generator, callgrind, before or {}, earlier
    )
    policy = FailurePolicy(recorder, verdicts, request.least_rounds, passes=counting)
    measurement = RoundMeasurement(request, room, generator)
    rounds = Rounds(request, serve, measurement, recorder, policy, verdicts, progress or Silent())
    rounds.run((OLD, NEW), Path("/nowhere"))
    return journal, recorder.failures


def counted(journal: Journal, release: str, step: str, metric: str = INSTRUCTIONS) -> list[float | None]:
    """The instructions of each round of a version on a step."""
    return [
        record.measurement.values.get(metric) if record.measurement else None
        for record in journal.records
        if (record.build.release, record.step) == (release, step)
    ]


def as_recorded(journal: Journal) -> list[Any]:
    """The runs of the first two rounds, as they are read from a history."""
    return [
        SimpleNamespace(
            id=1,
            version=str(record.build.version),
            step=record.step,
            repetition=record.repetition,
            position=record.position,
            status=record.status,
            failure=None,
            warnings=(),
            values=record.measurement.values if record.measurement else {},
        )
        for record in journal.records
        if record.repetition <= 2
    ]


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

    class Task(SilentTask):
        def detail(self, text: str) -> None:
            told.append(text)

        def rename(self, label: str) -> None:
            told.append(label)

    class Shown(Silent):
        @contextmanager
        def task(self, label: str, total: float | None = None, unit: str = "") -> Iterator[ProgressTask]:
            told.append(unit)
            yield Task()

    session(1, Exact.ONLY, progress=Shown())
    assert told[0] == "passes of steps"
    assert f"pass 1: {STEPS[0].name} (2 steps open)" in told
    assert "the server of postgres@18.6 starts under callgrind" in told
    assert "postgres@18.6 has run 100 of 400 transactions under callgrind, about 30 s left" in told


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


def test_steps_that_are_named_first_are_decided_first(passes: Passes) -> None:
    journal, _ = session(3, Exact.NO, budget_seconds=3600.0, first_steps=("delete",), **WITHIN)
    assert [step for step, _ in order(journal)] == ["delete"] * 3 + ["update-index"] * 3


def test_passes_of_the_base_serve_the_sessions_after_them(passes: Passes) -> None:
    """Those that no session before had are counted, and no pass of the version beside it is spared."""
    earlier = counted_passes.BasePasses()
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
        bool(record.measurement and counted_passes.COUNTED_BEFORE in record.measurement.warnings)
        for record in journal.records
        if (record.build.release, record.step) == ("17.11", "delete")
    ]
    assert told == [True, True, False, False]


def test_a_pass_of_another_length_does_not_serve(passes: Passes) -> None:
    earlier = counted_passes.BasePasses()
    session(3, Exact.ONLY, earlier=earlier)
    passes.affordable = dict.fromkeys(("17.11 delete", "18.6 delete"), 12)
    passes.counts["18.6 delete"] = [1000.0, 1004.0]
    short, _ = session(2, Exact.ONLY)
    passes.done.clear()
    again, _ = session(3, Exact.ONLY, recorded(as_recorded(short)), earlier=earlier)
    assert set(counted(again, "17.11", "delete", COUNTED_TRANSACTIONS)) == {12.0}
    assert "17.11 delete" in passes.done
