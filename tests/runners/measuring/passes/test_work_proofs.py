"""Whether versions did the same work: who is accused of other rows, and who is not."""

from pathlib import Path
from typing import Any

import pytest

from build.build import Build
from build.version import parse_version
from runners.measuring.passes import work_proofs
from runners.measuring.passes.work_proofs import WorkProofs
from runners.measuring.session_versions import MeasuredVersion
from suites.checking.table_digests import Digests, TableDigest
from suites.counting.counted_pass import CountedPass
from suites.counting.recovery import Recovered


def version(name: str) -> MeasuredVersion:
    parsed = parse_version(name)
    server: Any = name  # its rows are those that a test gives
    return MeasuredVersion(Build(parsed, parsed.ref, name, Path("/nowhere"), {}), server)


BASE, NEW, OTHER = version("postgres@17.11"), version("postgres@18.6"), version("mysql@9.7.2")


def rows(content: int, number: int = 10) -> Digests:
    return Digests({"sbtest1": TableDigest(number, content)}, 0.1)


def after(found: Digests | None, seconds: float | None = 1.0, problem: str = "") -> CountedPass:
    return CountedPass({}, None, (), Recovered(seconds, found, problem))


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> WorkProofs:
    loaded = {"postgres@17.11": rows(1), "postgres@18.6": rows(1), "mysql@9.7.2": rows(1)}
    monkeypatch.setattr(work_proofs, "loaded_rows", lambda server: loaded[server])
    return WorkProofs("postgres@17.11")


def test_other_rows_are_told_once_the_base_has_repeated_its_own(proofs: WorkProofs) -> None:
    first = proofs.compare("delete", [BASE, NEW], [after(rows(5)), after(rows(6))])
    assert (first.refuted, first.same_rows) == ({}, {})
    second = proofs.compare("delete", [BASE, NEW], [after(rows(5)), after(rows(6, 11))])
    assert second.refuted == {
        "postgres@18.6": "after the same transactions as postgres@17.11, sbtest1 has 11 rows instead of 10"
    }


def test_a_base_that_never_repeats_itself_accuses_nobody(proofs: WorkProofs) -> None:
    for content in (5, 6, 7):
        work = proofs.compare("delete", [BASE, NEW], [after(rows(content)), after(rows(6))])
        assert work.refuted == {}


def test_versions_that_were_loaded_with_other_rows_are_not_compared(
    proofs: WorkProofs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_proofs, "loaded_rows", lambda server: rows(len(server) + ord(server[-1])))
    for _ in range(2):
        work = proofs.compare("delete", [BASE, NEW], [after(rows(5)), after(rows(6))])
        assert work.refuted == {}


def test_engines_are_not_compared_and_equal_rows_are_no_news(proofs: WorkProofs) -> None:
    for _ in range(2):
        passes = [after(rows(5)), after(rows(5)), after(rows(6))]
        work = proofs.compare("delete", [BASE, NEW, OTHER], passes)
        assert work.refuted == {}
        assert work.same_rows == {"postgres@17.11": 10, "postgres@18.6": 10}


def test_a_server_that_does_not_come_back_is_told_unless_the_base_does_not_either(proofs: WorkProofs) -> None:
    lost = after(None, None, "it does not come back after a crash: no log")
    work = proofs.compare("delete", [BASE, NEW], [after(rows(5)), lost])
    assert work.refuted == {"postgres@18.6": "it does not come back after a crash: no log"}
    assert proofs.compare("delete", [BASE, NEW], [lost, lost]).refuted == {}
