"""Steps that only read, and queries over their limit: a session with servers that only remember."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from build.progress import Silent
from history.stats.repeated_intervals import Design
from history.store.resume import Recorded
from runners.measuring.failures.policy import FailurePolicy
from runners.measuring.request import Request
from runners.measuring.round_measurement import RoundMeasurement
from runners.measuring.rounds import Rounds
from runners.measuring.run_recorder import RunRecorder
from runners.measuring.sequential_verdicts import SequentialVerdicts
from suites.definition import load_suite
from suites.sizing import Hardware, sizes
from tests.runners.measuring.journal import FakeGenerator, FakeServer, Journal
from tests.runners.measuring.resuming.test_resumed_rounds import as_recorded
from tests.runners.measuring.test_rounds import NEW, OLD

SUITE = load_suite("tpch").model_copy(update={"plans": False})


class Session:
    """A session of some steps of the suite with two versions that only remember."""

    def __init__(self, journal: Journal, names: Sequence[str], repetitions: int = 1) -> None:
        self.journal = journal
        versions = (OLD.version, NEW.version)
        self.request = Request(versions, SUITE, "smoke", SUITE.select(tuple(names)), repetitions)
        self.servers: dict[str, FakeServer] = {}

    def carry_out(self, before: Recorded | None = None) -> list[str]:
        """Run it, and return its failures; `before` are the runs that it has already."""
        store: Any = self.journal
        generator: Any = FakeGenerator(self.journal, self.servers)
        verdicts = SequentialVerdicts(str(OLD.version), [str(NEW.version)], Design(2, 3, 20), 0.02, {})
        recorder = RunRecorder(self.request, store, 1, Silent(), before or {})
        policy = FailurePolicy(recorder, verdicts, 1)
        room = sizes(SUITE, self.request.profile, Hardware(2, 24 * 1024**3))
        measurement = RoundMeasurement(self.request, room, generator)
        rounds = Rounds(self.request, self._serve, measurement, recorder, policy, verdicts, Silent())
        rounds.run((OLD, NEW), Path("/nowhere"))
        return recorder.failures

    def _serve(self, build: Any, folder: Path) -> Any:
        self.servers[build.release] = FakeServer(build, self.journal)
        return self.servers[build.release]


def after_loading(journal: Journal) -> list[str]:
    """What was done after the data were loaded."""
    return journal.lines[journal.lines.index("keep 18.6") + 1 :]


def test_servers_stay_up_between_steps_that_only_read(journal: Journal) -> None:
    session = Session(journal, ("q1", "q6", "q9", "q14"))
    *reading, first, second = session.request.steps
    writing = [step.model_copy(update={"reads_only": False}) for step in (first, second)]
    session.request = replace(session.request, steps=(*reading, *writing))
    session.carry_out()
    both = ("17.11", "18.6")
    begin = [f"{what} {release}" for release in both for what in ("restore", "start")]
    reset = [f"{what} {release}" for what in ("reset", "abandon") for release in both]

    def record(step: str) -> list[str]:
        return [f"record {release} {step} finished" for release in both]

    assert after_loading(journal) == [
        *begin,
        "run 17.11 18.6 q1",
        *record("q1"),
        "run 17.11 18.6 q6",
        *record("q6"),
        *(
            line
            for step in ("q9", "q14")
            for line in [*begin, f"run 17.11 18.6 {step}", *reset, *record(step)]
        ),
        "destroy 17.11",
        "destroy 18.6",
    ]


def test_a_server_that_died_while_it_only_read_starts_from_the_loaded_data_again(journal: Journal) -> None:
    journal.dies_in = {"18.6 q6": 1}
    Session(journal, ("q1", "q6", "q7")).carry_out()
    lines = after_loading(journal)
    failed = lines.index("run 17.11 18.6 q6")
    assert lines[failed + 1 : failed + 7] == [
        "abandon 17.11",
        "abandon 18.6",
        "record 18.6 q6 failed",
        "restore 17.11",
        "start 17.11",
        "run 17.11 q6",
    ]


@pytest.mark.parametrize("slow", ["17.11", "18.6"])
def test_a_query_over_its_limit_is_censored_for_all_versions(journal: Journal, slow: str) -> None:
    journal.over = {"q9": slow}
    failures = Session(journal, ("q9", "q10"), repetitions=3).carry_out()
    assert [line for line in journal.lines if line.startswith("run") and line.endswith("q9")] == [
        "run 17.11 18.6 q9"
    ]
    assert len([line for line in journal.lines if line.endswith("18.6 q10")]) == 3
    runs = [record for record in journal.records if record.step == "q9"]
    assert {record.status for record in runs} == {"failed"}
    where = f"censored at 10 s on postgres@{slow}"
    assert all(str(record.failure).startswith(where) for record in runs)
    (other_release,) = {"17.11", "18.6"} - {slow}
    assert {
        record.build.release: dict(record.measurement.values)
        for record in runs
        if record.measurement and record.measurement.values
    } == {slow: {"censored_seconds": 10.0}, other_release: {"statement_seconds": 2.5}}
    (other,) = {r.failure for r in runs if r.build.release != slow}
    assert "took 2.5 s" in str(other)
    assert failures == [f"q9 (round 1): {where}"]


def test_a_session_that_is_resumed_leaves_a_censored_step_alone(journal: Journal) -> None:
    journal.over = {"q9": "18.6"}
    Session(journal, ("q9", "q10")).carry_out()
    later = Journal()
    Session(later, ("q9", "q10"), repetitions=2).carry_out(as_recorded(journal))
    assert [line for line in later.lines if line.startswith("run")] == ["run 17.11 18.6 q10"]
