"""Whether versions did the same work: who is accused of other rows, and who is not."""

from pathlib import Path
from typing import Any

import pytest

from build.finished_build import Build
from build.version import parse_version
from runners.measuring.passes import work_proofs
from runners.measuring.passes.base_work import DONE_BEFORE, BaseWork
from runners.measuring.passes.work_proofs import WorkProofs
from runners.measuring.request import Request
from runners.measuring.session_versions import MeasuredVersion
from suites.checking.queries import Digests
from suites.counting.fixed_work import Done, Recovered, WorkTerms
from suites.definition import load_suite
from suites.engine import TableDigest
from suites.generators.load import LoadError, LongPassError
from suites.keys.durability import Durability
from suites.measurement import Measurement
from suites.metrics import LOG_SYNCS, PROVED_ROWS, QPS, RECOVERY, WAL_RECORDS
from tests.manifests import a_manifest
from tests.suites.servers import small

SUITE = load_suite("write-heavy")
(DELETE,) = SUITE.select(("delete",))
BASE, NEW, OTHER = "postgres@17.11", "postgres@18.6", "mysql@9.7.2"
MEASURED = Measurement({QPS: 100.0}, ())


def rows(content: int, number: int = 10) -> Digests:
    return Digests({"sbtest1": TableDigest(number, content)}, 0.1)


class Servers:
    """What servers hold after each time that they work, and what they were loaded with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: dict[str, list[Digests | Recovered | LoadError]] = {}
        self.loaded: dict[str, Digests] = {}
        self.worked: list[str] = []
        self.again: dict[str, Done] = {}
        """What servers write when they do the work once more."""
        self.terms: list[WorkTerms] = []
        self.affordable = 20
        """How many transactions a server can afford."""
        self.earlier = BaseWork()
        self.measured = MEASURED
        """What is known of each version before its work."""
        self.proofs: WorkProofs | None = None
        self.proved_steps: frozenset[str] = frozenset()
        monkeypatch.setattr(work_proofs, "work_and_crash", self._work)
        monkeypatch.setattr(work_proofs, "work", lambda server, *_: self.again[server.name])
        monkeypatch.setattr(work_proofs, "loaded_rows", lambda server: self.loaded.get(server.name, rows(1)))

    def _work(self, server: Any, _generator: object, _step: object, terms: WorkTerms) -> Recovered:
        self.worked.append(server.name)
        self.terms.append(terms)
        terms.agree("all", self.affordable)
        found = self.held[server.name].pop(0)
        if isinstance(found, LoadError):
            raise found
        return found if isinstance(found, Recovered) else Recovered(1.5, found)

    def prove(self, *names: str, number: int = 1) -> list[Measurement]:
        """The measurements of a round of the step `delete`, with what the work has shown."""
        versions = tuple(map(parse_version, names))
        request = Request(versions, SUITE, "smoke", (DELETE,), 3, proved_steps=self.proved_steps)
        generator: Any = None
        self.proofs = self.proofs or WorkProofs(request, BASE, small(), generator, self.earlier)
        return self.proofs.add_to(
            number, DELETE, [_measured(name) for name in names], [self.measured for _ in names]
        )


def _measured(name: str) -> MeasuredVersion:
    version = parse_version(name)

    class Server:
        loaded = Path("/nowhere")

        def abandon(self) -> None: ...

    server: Any = Server()
    server.name = name
    return MeasuredVersion(Build(version, version.ref, name, Path("/nowhere"), a_manifest()), server)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    return Servers(monkeypatch)


def test_equal_rows_are_recorded_with_the_recovery(servers: Servers) -> None:
    servers.held = {BASE: [rows(5)], NEW: [rows(5)], OTHER: [rows(6)]}
    base, new, other = servers.prove(BASE, NEW, OTHER)
    assert base.values == new.values == {QPS: 100.0, PROVED_ROWS: 10.0, RECOVERY: 1.5}
    assert other.values == {QPS: 100.0, RECOVERY: 1.5}, "rows of engines are not compared"


def test_a_step_that_an_earlier_session_has_compared_is_not_compared_again(servers: Servers) -> None:
    servers.proved_steps = frozenset({"delete"})
    assert servers.prove(BASE, NEW) == [MEASURED, MEASURED]
    assert servers.worked == []
    servers.proofs, servers.proved_steps = None, frozenset({"insert"})
    servers.held = {BASE: [rows(5)], NEW: [rows(5)]}
    servers.prove(BASE, NEW)
    assert sorted(servers.worked) == sorted([BASE, NEW])


def test_the_work_of_the_base_serves_the_sessions_after_it(servers: Servers) -> None:
    """But for the time of its recovery, and unless it is asked whether it repeats itself."""
    servers.held = {BASE: [rows(5), rows(5)], NEW: [rows(5), rows(5), rows(5), rows(6, 11)]}
    servers.prove(BASE, NEW)
    servers.proofs, servers.worked = None, []
    base, new = servers.prove(BASE, NEW)
    assert servers.worked == [NEW]
    assert base == Measurement({QPS: 100.0, PROVED_ROWS: 10.0}, (), [DONE_BEFORE])
    assert new == Measurement({QPS: 100.0, PROVED_ROWS: 10.0, RECOVERY: 1.5}, (), [])
    servers.proofs, servers.measured = None, Measurement({QPS: 100.0}, (), [DONE_BEFORE])
    assert servers.prove(BASE, NEW)[0].warnings == [DONE_BEFORE], "its pass has said so"
    servers.proofs = None
    _, new = servers.prove(BASE, NEW)
    assert new.warnings == [
        "after the same transactions as postgres@17.11, sbtest1 has 11 rows instead of 10"
    ]
    assert servers.worked == [NEW, NEW, NEW, BASE]


def test_work_of_another_length_does_not_serve(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_proofs, "fit_together", lambda *_: False)
    servers.held = {BASE: [rows(5), rows(5)], NEW: [rows(5), rows(5)]}
    servers.prove(BASE, NEW)
    servers.proofs, servers.affordable = None, 12
    servers.prove(NEW, BASE)  # the first one to ask decides for all
    assert servers.worked == [BASE, NEW, NEW, BASE]


def test_other_rows_are_told_once_the_base_has_repeated_its_own(servers: Servers) -> None:
    servers.held = {BASE: [rows(5), rows(5)], NEW: [rows(6, 11)]}
    base, new = servers.prove(BASE, NEW)
    assert (new.values, new.warnings) == (
        {},
        ["after the same transactions as postgres@17.11, sbtest1 has 11 rows instead of 10"],
    )
    assert QPS in base.values
    assert servers.worked.count(BASE) == 2


def test_a_base_that_does_not_repeat_itself_accuses_nobody(servers: Servers) -> None:
    servers.held = {BASE: [rows(5), rows(7)], NEW: [rows(6)]}
    assert all(measured.values[QPS] for measured in servers.prove(BASE, NEW))


def test_versions_that_were_loaded_with_other_rows_are_not_compared(servers: Servers) -> None:
    servers.held = {BASE: [rows(5), rows(5)], NEW: [rows(6)]}
    servers.loaded = {NEW: rows(2)}
    assert all(measured.values[QPS] for measured in servers.prove(BASE, NEW))


LOST = Recovered(None, None, "it does not come back after a crash: no log")
UNKNOWN = "not known whether all versions do the same work: "


def test_a_server_that_does_not_come_back_has_failed_whatever_its_engine(servers: Servers) -> None:
    servers.held = {BASE: [rows(5)], NEW: [LOST], OTHER: [LOST]}
    base, *others = servers.prove(BASE, NEW, OTHER)
    assert base.values[QPS]
    for lost in others:
        assert (lost.values, lost.warnings) == ({}, ["it does not come back after a crash: no log"])


def test_a_base_that_does_not_come_back_accuses_nobody(servers: Servers) -> None:
    servers.held = {BASE: [LOST], NEW: [LOST]}
    for measured in servers.prove(BASE, NEW):
        assert measured.values == MEASURED.values
        assert list(measured.warnings) == [f"{UNKNOWN}{BASE}: {LOST.problem}"]


def test_what_need_not_be_the_servers_fault_is_a_warning_of_the_round(servers: Servers) -> None:
    servers.held = {BASE: [rows(5)], NEW: [LongPassError("the work was ended after 60 s")]}
    for measured in servers.prove(BASE, NEW):
        assert measured.values == MEASURED.values
        assert list(measured.warnings) == [f"{UNKNOWN}the work was ended after 60 s"]


def test_only_the_first_round_has_a_comparison(servers: Servers) -> None:
    assert servers.prove(BASE, NEW, number=2) == [MEASURED, MEASURED]
    assert servers.worked == []


def _wrote(record_bytes: float, syncs: float = 1.0) -> Recovered:
    done = Done({WAL_RECORDS: record_bytes, LOG_SYNCS: syncs}, ["something was left out"])
    return Recovered(1.5, rows(5), done=done)


def test_what_a_version_wrote_is_recorded_with_its_notes(servers: Servers) -> None:
    servers.held = {BASE: [_wrote(180.0)], NEW: [_wrote(180.5)]}
    _, new = servers.prove(BASE, NEW)
    assert (new.values[WAL_RECORDS], new.values[LOG_SYNCS]) == (180.5, 1.0)
    assert list(new.warnings) == ["something was left out"]
    assert servers.prove(BASE, NEW, number=2) == [MEASURED, MEASURED], "they wrote the same"


def test_unlike_amounts_are_measured_once_more(servers: Servers) -> None:
    servers.held = {BASE: [_wrote(180.0)], NEW: [_wrote(310.0)]}
    servers.again = {BASE: Done({WAL_RECORDS: 180.0}), NEW: Done({WAL_RECORDS: 310.1})}
    servers.prove(BASE, NEW)
    _, new = servers.prove(BASE, NEW, number=2)
    assert new.values == {QPS: 100.0, WAL_RECORDS: 310.1}
    assert servers.prove(BASE, NEW, number=3) == [MEASURED, MEASURED], "two pairs decide"


def test_relaxed_durability_has_one_step_in_which_flushes_are_counted(servers: Servers) -> None:
    servers.held = {BASE: [_wrote(180.0)], NEW: [_wrote(180.0)]}
    servers.prove(BASE, NEW)
    assert [terms.counts_syncs for terms in servers.terms] == [True, True]
    assert servers.proofs is not None
    (insert,) = SUITE.select(("insert",))
    servers.held = {BASE: [_wrote(180.0)], NEW: [_wrote(180.0)]}
    servers.proofs.add_to(1, insert, [_measured(BASE), _measured(NEW)], [MEASURED, MEASURED])
    assert [terms.counts_syncs for terms in servers.terms[2:]] == [False, False]
    assert {terms.durability for terms in servers.terms} == {Durability.RELAXED}


@pytest.mark.parametrize("syncs", [0.0, 0.5])
def test_commits_that_are_not_flushed_are_a_failure(servers: Servers, syncs: float) -> None:
    servers.held = {BASE: [_wrote(180.0)], NEW: [_wrote(180.0, syncs)]}
    base, new = servers.prove(BASE, NEW)
    said = f"commits are not flushed: {syncs:.2f} flushes of the log per commit with full durability"
    assert (new.values, new.warnings) == ({}, [f"{said}, {BASE} flushes them"])
    assert base.values[LOG_SYNCS] == 1.0


def test_commits_that_no_version_flushes_are_told_of_all(servers: Servers) -> None:
    servers.held = {BASE: [_wrote(180.0, 0.0)], NEW: [_wrote(180.0, 0.0)]}
    for measured in servers.prove(BASE, NEW):
        assert QPS in measured.values
        assert measured.warnings[-1].startswith("commits are not flushed: 0.00 flushes of the log per commit")


def test_one_flush_instead_of_two_is_no_failure(servers: Servers) -> None:
    servers.held = {BASE: [_wrote(180.0, 2.0)], NEW: [_wrote(180.0, 1.0)]}
    _, new = servers.prove(BASE, NEW)
    assert new.values[LOG_SYNCS] == 1.0
