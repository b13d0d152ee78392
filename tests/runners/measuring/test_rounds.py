"""What a session does, in which order, and what when something breaks: with servers that only remember."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from build.finished_build import Build
from build.progress import Progress, Silent
from build.version import parse_version
from history.stats.repeated_intervals import Design
from history.store.records import RunStatus
from history.store.resume import Recorded
from runners.measuring import round_measurement
from runners.measuring.failures.policy import MAX_DISTURBED, MAX_FAILURES, FailurePolicy
from runners.measuring.layouts import Layouts
from runners.measuring.request import Request
from runners.measuring.round_measurement import RoundMeasurement
from runners.measuring.rounds import Rounds
from runners.measuring.run_recorder import RunRecorder
from runners.measuring.sequential_verdicts import SequentialVerdicts
from runners.measuring.variants import EVERY
from suites.accounting.work_curve import WorkCurve
from suites.additions.variant import Variant
from suites.definition import Suite, load_suite
from suites.measurement import Measurement
from suites.metrics import EQUAL_WORK
from suites.sizing import Hardware, Sizes, sizes
from suites.turns.failures import ServerDiedError
from tests.manifests import a_manifest
from tests.runners.measuring.journal import FakeGenerator, FakeServer, Journal

SUITE = load_suite("write-heavy")
STEPS = SUITE.select(("update-index", "delete"))
LARGE = Hardware(2, 24 * 1024**3)


def a_build(release: str) -> Build:
    version = parse_version(f"postgres@{release}")
    return Build(version, release, f"key {release}", Path("/nowhere"), a_manifest())


OLD, NEW, OLDEST = a_build("17.11"), a_build("18.6"), a_build("15.18")


def carry_out(
    journal: Journal,
    builds: tuple[Build, ...],
    repetitions: int,
    room: Sizes | None = None,
    recorded: Recorded | None = None,
    suite: Suite = SUITE,
    layouts: Layouts | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> list[str]:
    names = tuple(built.version for built in builds)
    chosen = tuple(step for step in suite.steps if step.name in {known.name for known in STEPS})
    request = Request(names, suite, "smoke", chosen, repetitions, **options)
    servers: dict[str, FakeServer] = {}

    def serve(build: Build, folder: Path) -> Any:
        servers[build.release] = FakeServer(build, journal)
        return servers[build.release]

    room = room or sizes(suite, suite.profile("smoke"), LARGE)
    store: Any = journal
    design = Design(steps=2, least=3, cap=20)
    verdicts = SequentialVerdicts(str(names[0]), [str(name) for name in names[1:]], design, 0.02, {})
    generator: Any = FakeGenerator(journal, servers)
    recorder = RunRecorder(request, store, 1, Silent(), recorded or {})
    policy = FailurePolicy(recorder, verdicts, request.least_rounds, request.keep_disturbed)
    measurement = RoundMeasurement(request, room, generator)
    shown = progress or Silent()
    rounds = Rounds(request, serve, measurement, recorder, policy, verdicts, shown, layouts or {})
    rounds.run(builds, Path("/nowhere"))
    return recorder.failures


def loading(release: str) -> list[str]:
    return [f"{what} {release}" for what in ("create", "start", "load", "reset", "keep")]


def one_round(number: int, step: str) -> list[str]:
    both = ("17.11", "18.6")
    first = both if number % 2 else both[::-1]
    begin = [f"{what} {release}" for release in first for what in ("restore", "start")]
    end = [*(f"reset {release}" for release in first), *(f"abandon {release}" for release in both)]
    return [*begin, f"run 17.11 18.6 {step}", *end, *(f"record {active} {step} finished" for active in both)]


def test_the_order_of_everything(journal: Journal) -> None:
    carry_out(journal, (OLD, NEW), 2)
    rounds = [line for number in (1, 2) for step in STEPS for line in one_round(number, step.name)]
    assert journal.lines == [
        *loading("17.11"),
        *loading("18.6"),
        *rounds,
        "destroy 17.11",
        "destroy 18.6",
    ]
    assert [record.position for record in journal.records] == list(range(1, 9))
    assert {record.step_position for record in journal.records} == {2, 9}
    assert all(record.configuration == {"shared_buffers": "1GB"} for record in journal.records)
    measured = [record.measurement for record in journal.records if record.measurement]
    assert [measurement.values["others_cpu_share"] for measurement in measured] == [0.25] * 8


def test_another_round_draws_other_ids_and_another_order(journal: Journal) -> None:
    carry_out(journal, (OLD, NEW), 20)
    rounds = [share for share in journal.shares if share.transactions is None]
    assert [share.round for share in rounds] == list(range(1, 21))
    assert len({share.schedule.order for share in rounds}) > 5


def test_a_step_that_uses_rows_up_is_limited(journal: Journal) -> None:
    carry_out(journal, (OLD, NEW), 1)
    assert [share.transactions for share in journal.shares] == [None, 49557]  # half of the rows


@pytest.mark.deep("a whole command in a process of its own")
def test_servers_that_do_not_fit_together_work_one_after_the_other_in_a_drawn_order(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_measurement, "fit_together", lambda *_: False)
    carry_out(journal, (OLD, NEW), 20)
    runs = [line for line in journal.lines if line.startswith("run") and line.endswith("update-index")]
    assert set(runs) == {"run 17.11 update-index", "run 18.6 update-index"}
    first = runs[::2]
    assert len(runs) == 40
    assert 3 < first.count("run 18.6 update-index") < 17
    for run in range(len(journal.lines)):
        if journal.lines[run] == "run 18.6 delete":
            assert journal.lines[run + 1 : run + 3] == ["reset 18.6", "abandon 18.6"]
    assert [record.build.release for record in journal.records[:2]] == ["17.11", "18.6"]


@pytest.mark.parametrize("fits", [True, False])
def test_log_and_storage_are_compared_at_equal_work(
    fits: bool, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of servers that do not fit together and work one after the other."""
    curves = {
        "17.11": WorkCurve([0, 1000, 4000], {"wal_bytes_per_op": [5000.0, 45_000.0, 65_000.0]}),
        "18.6": WorkCurve([0, 500, 1000], {"wal_bytes_per_op": [0.0, 30_000.0, 40_000.0]}),
    }

    def costs_fall(servers: Sequence[FakeServer], *_: object, **__: object) -> list[Measurement]:
        return [Measurement({"qps": 1.0}, (), curve=curves[server.build.release]) for server in servers]

    monkeypatch.setattr(round_measurement, "fit_together", lambda *_: fits)
    monkeypatch.setattr(round_measurement, "run_slices", costs_fall)
    carry_out(journal, (OLD, NEW), 1)
    values = [record.measurement.values for record in journal.records if record.measurement]
    assert [(run["wal_bytes_per_op"], run[EQUAL_WORK]) for run in values] == [(40, 1000)] * 4


def test_a_failure_that_names_nobody_is_of_the_one_who_worked_alone(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_on_new(servers: Sequence[FakeServer], *_: object, **__: object) -> list[Measurement]:
        if servers[0].build is NEW:
            raise ServerDiedError("the load generator is late", None)
        return [Measurement({"qps": 1000.0}, [])]

    monkeypatch.setattr(round_measurement, "fit_together", lambda *_: False)
    monkeypatch.setattr(round_measurement, "run_slices", fails_on_new)
    carry_out(journal, (OLD, NEW), 1)
    assert journal.rounds_of("18.6", "delete") == [(1, RunStatus.FAILED)]
    assert journal.rounds_of("17.11", "delete") == [(1, RunStatus.FINISHED)]


def test_a_server_that_dies_once_fails_one_round_only(journal: Journal) -> None:
    journal.dies_in = {"18.6 update-index": 1}
    failures = carry_out(journal, (OLD, NEW), 3)
    assert journal.rounds_of("18.6", "update-index") == [
        (1, RunStatus.FAILED),
        (2, RunStatus.FINISHED),
        (3, RunStatus.FINISHED),
    ]
    # The other version's round is not lost, it begins again from the same data.
    assert journal.rounds_of("17.11", "update-index") == [
        (number, RunStatus.FINISHED) for number in (1, 2, 3)
    ]
    assert "run 17.11 update-index" in journal.lines
    (failure,) = failures
    assert "18.6 update-index (round 1)" in failure
    assert "died during update-index: killed by SIGKILL" in failure


def test_a_server_that_dies_again_and_again_is_left_out_of_that_step(journal: Journal) -> None:
    journal.dies_in = {"18.6 update-index": 99}
    failures = carry_out(journal, (OLD, NEW), 4)
    assert 99 - journal.dies_in["18.6 update-index"] == MAX_FAILURES
    assert journal.rounds_of("18.6", "update-index") == [
        (number, RunStatus.FAILED) for number in (1, 2, 3, 4)
    ]
    assert journal.rounds_of("18.6", "delete") == [(number, RunStatus.FINISHED) for number in (1, 2, 3, 4)]
    assert journal.rounds_of("17.11", "update-index") == [
        (number, RunStatus.FINISHED) for number in (1, 2, 3, 4)
    ]
    assert len(failures) == MAX_FAILURES


def test_a_server_that_never_starts_again_fails_its_rounds(journal: Journal) -> None:
    journal.never_starts_again = {"18.6"}
    carry_out(journal, (OLD, NEW), 1)
    assert journal.rounds_of("18.6", "update-index") == [(1, RunStatus.FAILED)]
    assert journal.rounds_of("17.11", "update-index") == [(1, RunStatus.FINISHED)]


def test_data_that_does_not_load_fails_all_rounds_with_the_reason(journal: Journal) -> None:
    journal.unloadable = {"18.6"}
    failures = carry_out(journal, (OLD, NEW), 2)
    failed = [record for record in journal.records if record.status is RunStatus.FAILED]
    assert [(attempt.build.release, attempt.failure) for attempt in failed] == [("18.6", "no data")] * 4
    assert len(failures) == 1
    assert journal.lines[-1] == "destroy 18.6"


def test_a_disturbed_round_is_dropped_with_its_reason_and_run_again(journal: Journal) -> None:
    journal.disturbed = 1
    carry_out(journal, (OLD, NEW), 1)
    (dropped,) = journal.dropped
    assert (dropped.step, dropped.repetition, dropped.reason) == ("update-index", 1, "a neighbour")
    assert dropped.measured == pytest.approx({"postgres@17.11": 1010.0, "postgres@18.6": 1010.0})
    assert journal.lines.count("run 17.11 18.6 update-index") == 2
    assert journal.rounds_of("18.6", "update-index") == [(1, RunStatus.FINISHED)]
    assert not any(record.measurement and record.measurement.warnings for record in journal.records)


def test_a_machine_that_is_always_disturbed_is_measured_with_a_warning(journal: Journal) -> None:
    journal.disturbed = 1000
    carry_out(journal, (OLD, NEW), 1)
    assert len(journal.dropped) == MAX_DISTURBED * len(STEPS)
    warnings = [record.measurement.warnings for record in journal.records if record.measurement]
    assert warnings == [["disturbed: a neighbour"]] * 4


def test_disturbed_rounds_can_be_kept(journal: Journal) -> None:
    journal.disturbed = 1
    carry_out(journal, (OLD, NEW), 1, keep_disturbed=True)
    assert not journal.dropped
    warnings = [record.measurement.warnings for record in journal.records if record.measurement]
    assert warnings == [["disturbed: a neighbour"]] * 2 + [[]] * 2


def test_decided_steps_stop_and_open_ones_go_on(journal: Journal) -> None:
    journal.speed = {"18.6": 0.7}
    carry_out(journal, (OLD, NEW), 3, until_decided=True)
    # 30 % with no scatter at all is a regression at the first look.
    assert journal.rounds_of("18.6", "update-index") == [(number, RunStatus.FINISHED) for number in (1, 2, 3)]


def test_an_open_step_gets_rounds_up_to_the_cap(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SequentialVerdicts, "open_steps", lambda self, steps, number: ["delete"])
    carry_out(journal, (OLD, NEW), 3, until_decided=True)
    assert len(journal.rounds_of("18.6", "update-index")) == 3
    assert len(journal.rounds_of("18.6", "delete")) == SUITE.profile("smoke").most_rounds


def test_the_budget_ends_open_steps_but_never_the_least_rounds(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SequentialVerdicts, "open_steps", lambda self, steps, number: list(steps))
    carry_out(journal, (OLD, NEW), 3, until_decided=True, budget_seconds=0.0)
    assert [len(journal.rounds_of("18.6", step.name)) for step in STEPS] == [3, 3]


def test_a_version_that_cannot_run_a_step_keeps_it_not_open(journal: Journal) -> None:
    journal.dies_in = {"18.6 update-index": 99}
    carry_out(journal, (OLD, NEW), 3, until_decided=True)
    assert len(journal.rounds_of("17.11", "update-index")) == 3


@pytest.mark.parametrize(
    "interrupted_at", ["create", "load", "keep", "restore", "run", "reset", "record", "abandon"]
)
def test_an_interrupt_destroys_the_servers(interrupted_at: str, journal: Journal) -> None:
    class Interrupting(list[str]):
        def append(self, line: str) -> None:
            super().append(line)
            if line.startswith(interrupted_at):
                raise KeyboardInterrupt

    journal.lines = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        carry_out(journal, (OLD, NEW), 1)
    assert journal.lines[-2:] == ["destroy 17.11", "destroy 18.6"]


def test_three_versions_work_in_one_round(journal: Journal) -> None:
    carry_out(journal, (OLDEST, OLD, NEW), 1)
    assert "run 15.18 17.11 18.6 delete" in journal.lines
    order = journal.shares[0].schedule.order
    assert sorted(order) == sorted([0, 1, 2] * (len(order) // 3))


def test_a_setting_can_be_for_one_engine() -> None:
    chosen = {"postgres.io_method": "worker", "mysql.sync_binlog": "1", "pg_stat_statements.max": "100"}
    request = Request((OLD.version,), SUITE, "smoke", STEPS, 1, variants={EVERY: Variant(chosen)})
    assert request.settings_of(OLD.version) == {"io_method": "worker", "pg_stat_statements.max": "100"}
    mysql = parse_version("mysql@9.7.2")
    assert request.settings_of(mysql) == {
        "sync_binlog": "1",
        "pg_stat_statements.max": "100",
    }
