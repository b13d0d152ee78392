"""What a session does, in which order, and what when something breaks: with servers that only remember."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from build.build import Build
from build.progress import Silent
from build.version import Engine, parse_version
from history.records import RunRecord, RunStatus
from runners.work import Request, Work, turns
from suites.definition import Step, load_suite
from suites.generators.load import Load, LoadError, Observer
from suites.generators.load import Work as Amount
from suites.server import Address, ServerError
from suites.sizing import Machine, sizes

SUITE = load_suite("write-heavy")
STEPS = SUITE.select(("update-index", "delete"))


def a_build(release: str) -> Build:
    return Build(parse_version(f"postgres@{release}"), release, f"key {release}", Path("/nowhere"), {})


OLD, NEW = a_build("17.11"), a_build("18.6")


class Journal:
    """Remembers what servers, generator and store were asked to do, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.records: list[RunRecord] = []
        self.work: list[Amount] = []
        self.dies_in: set[str] = set()
        """`release step` in which the server dies."""
        self.stays_dead: set[str] = set()
        """Releases whose server does not start again."""
        self.unloadable: set[str] = set()

    def record_run(self, session: int, record: RunRecord) -> int:
        self.records.append(record)
        self.lines.append(f"record {record.build.release} {record.step} {record.status}")
        return len(self.records)


class FakeServer:
    def __init__(self, build: Build, journal: Journal) -> None:
        self.build, self.journal = build, journal
        self.address = Address(Engine.POSTGRES, Path("/nowhere/.s.PGSQL.5432"), "tidemark", build.release)
        self.pid, self.cores, self.starts, self.dead = 1, 1, 0, False

    def _say(self, what: str) -> None:
        self.journal.lines.append(f"{what} {self.build.release}")

    def create(self) -> None:
        self._say("create")

    def start(self) -> None:
        self.starts += 1
        if self.starts > 1 and self.build.release in self.journal.stays_dead:
            raise ServerError("it does not start")
        self.dead = False
        self._say("start")

    def stop(self) -> None:
        self._say("stop")

    def destroy(self) -> None:
        self._say("destroy")

    def death(self) -> str | None:
        return "killed by SIGKILL" if self.dead else None

    def settings(self) -> Mapping[str, str]:
        return {"shared_buffers": "1GB"}

    def counters(self) -> Mapping[str, float]:
        return {"wal_bytes": 0.0}

    def reset(self) -> Mapping[str, float]:
        self._say("reset")
        return {"reset_seconds": 0.1}


class FakeGenerator:
    def __init__(self, journal: Journal, servers: Mapping[str, FakeServer]) -> None:
        self.journal, self.servers = journal, servers

    def version(self) -> str:
        return "fake 1.0"

    def load(self, address: Address) -> None:
        if address.database in self.journal.unloadable:
            raise LoadError("no data")
        self.journal.lines.append(f"load {address.database}")

    def run(self, address: Address, step: Step, work: Amount, observer: Observer) -> Load:
        self.journal.lines.append(f"run {address.database} {step.name}")
        self.journal.work.append(work)
        if f"{address.database} {step.name}" in self.journal.dies_in:
            self.servers[address.database].dead = True
            raise LoadError("connection lost")
        done = work.transactions or 3000
        return Load(done, done, 3.0, 0, (1000.0,) * 3, {"mean": 1.0}, done, 3.0)


def carry_out(journal: Journal, builds: tuple[Build, ...], repetitions: int) -> Work:
    request = Request(tuple(each.version for each in builds), SUITE, "smoke", STEPS, repetitions)
    servers: dict[str, FakeServer] = {}

    def serve(build: Build, folder: Path) -> FakeServer:
        servers[build.release] = FakeServer(build, journal)
        return servers[build.release]

    room = sizes(SUITE, SUITE.profile("smoke"), Machine(2, 24 * 1024**3))
    store: Any = journal
    work = Work(request, room, serve, FakeGenerator(journal, servers), store, 1, Silent())
    work.run(turns(builds, repetitions), Path("/nowhere"))
    return work


def one_turn(release: str) -> list[str]:
    lines = [f"create {release}", f"start {release}", f"load {release}", f"reset {release}"]
    for step in STEPS:
        lines += [f"run {release} {step.name}", f"reset {release}", f"record {release} {step.name} finished"]
    return [*lines, f"destroy {release}"]


def test_the_order_of_everything() -> None:
    journal = Journal()
    carry_out(journal, (OLD, NEW), 2)
    assert journal.lines == [
        line for release in ("17.11", "18.6", "18.6", "17.11") for line in one_turn(release)
    ]
    assert [record.position for record in journal.records] == list(range(1, 9))
    assert {record.step_position for record in journal.records} == {2, 9}
    assert all(record.configuration == {"shared_buffers": "1GB"} for record in journal.records)


def test_every_repetition_begins_with_the_next_version() -> None:
    third = a_build("15.18")
    order = [turn.build.release for turn in turns([OLD, NEW, third], 3)]
    assert order == ["17.11", "18.6", "15.18", "18.6", "15.18", "17.11", "15.18", "17.11", "18.6"]


def test_the_first_run_of_a_step_sets_the_work_of_all_others() -> None:
    journal = Journal()
    carry_out(journal, (OLD, NEW), 2)
    first_index, first_delete, *others = journal.work
    assert (first_index.seconds, first_index.transactions) == (3.0, None)
    assert first_delete.transactions == 49557  # half of the rows that 24 GiB of memory give
    assert {(each.seconds, each.transactions) for each in others} == {(9.0, 3000), (9.0, 49557)}


def test_a_server_that_dies_fails_its_step_and_comes_back() -> None:
    journal = Journal()
    journal.dies_in = {"18.6 update-index"}
    work = carry_out(journal, (OLD, NEW), 1)
    assert journal.lines[journal.lines.index("run 18.6 update-index") :] == [
        "run 18.6 update-index",
        "record 18.6 update-index failed",
        "stop 18.6",
        "start 18.6",
        "reset 18.6",
        "run 18.6 delete",
        "reset 18.6",
        "record 18.6 delete finished",
        "destroy 18.6",
    ]
    (failure,) = work.failures
    assert "died during update-index: killed by SIGKILL" in failure


def test_a_server_that_stays_dead_fails_its_other_steps_and_no_others() -> None:
    journal = Journal()
    journal.dies_in, journal.stays_dead = {"17.11 update-index"}, {"17.11"}
    work = carry_out(journal, (OLD, NEW), 1)
    status = {(each.build.release, each.step): each.status for each in journal.records}
    assert status == {
        ("17.11", "update-index"): RunStatus.FAILED,
        ("17.11", "delete"): RunStatus.FAILED,
        ("18.6", "update-index"): RunStatus.FINISHED,
        ("18.6", "delete"): RunStatus.FINISHED,
    }
    assert "did not come back" in str(journal.records[1].failure)
    named = [each.partition(": ")[0] for each in work.failures]
    assert named == ["postgres@17.11 update-index (repetition 1)"] * 2
    # The first finished run sets the work, whichever version it is of.
    assert journal.work[-2].transactions is None


def test_data_that_does_not_load_fails_the_turn_with_its_reason() -> None:
    journal = Journal()
    journal.unloadable = {"18.6"}
    carry_out(journal, (OLD, NEW), 1)
    failed = [each for each in journal.records if each.status is RunStatus.FAILED]
    assert [(each.build.release, each.failure) for each in failed] == [("18.6", "no data")] * 2
    assert journal.lines[-1] == "destroy 18.6"
    assert all(isinstance(each.started_at, datetime) for each in failed)


@pytest.mark.parametrize("interrupted_at", ["create", "load", "run", "reset", "record"])
def test_an_interrupt_destroys_the_server(interrupted_at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal()

    class Interrupting(list[str]):
        def append(self, line: str) -> None:
            super().append(line)
            if line.startswith(interrupted_at):
                raise KeyboardInterrupt

    journal.lines = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        carry_out(journal, (OLD, NEW), 1)
    assert journal.lines[-1] == "destroy 17.11"


def test_the_suite_runs_on_both_engines() -> None:
    assert SUITE.engines == (Engine.POSTGRES, Engine.MYSQL)


def test_a_setting_can_be_for_one_engine() -> None:
    chosen = {"postgres.io_method": "worker", "mysql.sync_binlog": "1", "pg_stat_statements.max": "100"}
    request = Request((OLD.version,), SUITE, "smoke", STEPS, 1, settings=chosen)
    assert request.settings_of(Engine.POSTGRES) == {"io_method": "worker", "pg_stat_statements.max": "100"}
    assert request.settings_of(Engine.MYSQL) == {"sync_binlog": "1", "pg_stat_statements.max": "100"}
