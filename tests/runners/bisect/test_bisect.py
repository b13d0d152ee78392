"""The flow of a bisect on a made-up machine: what it answers, leaves out, refuses, and goes on with."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from build.cache.store import StoreError
from build.sources.commits import RangeError
from build.sources.git import GitError
from build.sources.source import SourceError
from runners.bisect.domain.question import QuestionError
from runners.bisect.report.state import BisectState
from runners.bisect.run import conductor
from runners.bisect.run.builds import MachineError
from runners.bisect.run.conductor import BisectError
from runners.bisect.run.recorder import MetricError
from runners.measuring.machine_lock import BusyError, lock_path
from suites.definition import SuiteError
from tests.runners.bisect.conftest import SLOWER, Line, asked, verdict_of
from tests.runners.bisect.stand import Stand, a_question, total_rounds

Made = Callable[..., Stand]

# --- answers


@pytest.mark.deep("searches that are simulated many times")
def test_the_culprit_is_found(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER))
    log = machine.bisect(asked(line))
    verdict = verdict_of(log)
    assert (verdict.kind, verdict.low, verdict.high) == ("culprit", 10, 11)
    assert verdict.interval[0] < SLOWER < verdict.interval[1]
    (blamed,) = BisectState(log).blamed()
    assert (blamed.commit, blamed.subject) == (line.code[10], "Change 11")
    with_message = [point.subject for point in log.span.points if point.message]
    assert with_message == ["Change 11"], "those of other commits are not kept with the answer"
    assert len(log.span.collapsed) == 3
    assert len(machine.built) < 10
    assert sorted(machine.destroyed) == sorted(machine.loaded), "every server is destroyed"
    assert len(set(machine.loaded)) == len(machine.loaded), "each build is loaded once"


def test_no_difference_is_said(stand: Made, line: Line) -> None:
    machine = stand()
    verdict = verdict_of(machine.bisect(asked(line)))
    assert verdict.kind == "none"
    assert 0 < verdict.smallest_seen < 0.03
    assert len(set(machine.built)) == 2


def test_an_improvement_is_found_when_it_is_asked_for(stand: Made, line: Line) -> None:
    log = stand((4, 1.2)).bisect(asked(line, direction="better"))
    assert verdict_of(log).high == 4


def test_an_improvement_where_a_regression_is_asked_for_is_said(stand: Made, line: Line) -> None:
    assert verdict_of(stand((4, 1.2)).bisect(asked(line))).kind == "swapped"


def test_of_a_cost_more_is_worse(stand: Made, line: Line) -> None:
    log = stand((6, SLOWER)).bisect(asked(line, metric="server_cpu_us_per_op"))
    verdict = verdict_of(log)
    assert (verdict.kind, verdict.high) == ("culprit", 6)
    assert verdict.size > 1


# --- what cannot be measured


def test_a_commit_that_does_not_compile_is_left_out_with_its_reason(stand: Made, line: Line) -> None:
    broken = {line.version(place): "error: expected ';'" for place in (8, 9)}
    log = stand((11, SLOWER), uncompilable=broken).bisect(asked(line))
    assert verdict_of(log).high == 11
    excluded = dict(BisectState(log).excluded())
    assert {point.version for point in excluded} <= set(broken)
    assert all("expected ';'" in reason for reason in excluded.values())


@pytest.mark.parametrize(("failures", "excluded"), [(1, []), (2, ["no exact count"])])
def test_a_commit_whose_first_round_fails_is_measured_again(
    stand: Made, line: Line, failures: int, excluded: list[str]
) -> None:
    """And left out if that fails too."""
    log = stand((11, SLOWER), failing={line.version(8): failures}).bisect(asked(line))
    assert verdict_of(log).high == 11
    measured = {place for entry in log.all_rounds() for place in entry.log_ratios}
    assert (8 in measured) == (not excluded)
    assert [reason.split(": ")[1] for _, reason in BisectState(log).excluded()] == excluded


def test_of_a_long_log_the_compilers_own_words_are_told(stand: Made, line: Line, tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text("\n".join(["checking error: no", "a.c:7:1: error: expected ';'", *["make: Leaving"] * 99]))
    tail = 30 * "x\n"
    machine = stand((11, SLOWER), uncompilable=dict.fromkeys(map(line.version, range(5, 12)), tail), log=log)
    excluded = [reason for _, reason in BisectState(machine.bisect(asked(line))).excluded()]
    assert excluded
    assert {reason.splitlines()[1] for reason in excluded} == {"a.c:7:1: error: expected ';'"}
    assert {len(reason.splitlines()) for reason in excluded} == {2}


def test_a_culprit_among_broken_commits_is_a_range(stand: Made, line: Line) -> None:
    broken = {line.version(place): "error" for place in (9, 10, 11)}
    verdict = verdict_of(stand((11, SLOWER), uncompilable=broken).bisect(asked(line)))
    assert (verdict.kind, verdict.low, verdict.high) == ("range", 8, 12)


@pytest.mark.parametrize("way", ["not_starting", "dying"])
def test_a_commit_that_does_not_run_is_left_out(stand: Made, line: Line, way: str) -> None:
    machine = stand((11, SLOWER), **{way: [line.version(place) for place in (8, 9)]})
    log = machine.bisect(asked(line))
    assert verdict_of(log).high == 11
    assert {point.version for point, _ in BisectState(log).excluded()} & {line.version(8), line.version(9)}


@pytest.mark.parametrize(("place", "what"), [(0, "good"), (16, "bad")])
def test_good_and_bad_have_to_compile(stand: Made, line: Line, place: int, what: str) -> None:
    version = line.version(place) if place else f"postgres@git:{line.good[:12]}"
    with pytest.raises(BisectError, match=f"{what} .* does not compile") as caught:
        stand((11, SLOWER), uncompilable={version: "error"}).bisect(asked(line))
    assert f"another --{what}" in caught.value.hint


def test_good_has_to_run(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER), not_starting=[f"postgres@git:{line.good[:12]}"])
    with pytest.raises(BisectError, match="cannot be measured"):
        machine.bisect(asked(line))


@pytest.mark.parametrize("said", ["cc: No space left on device", "gcc: Killed signal terminated program cc1"])
def test_a_compile_that_the_machine_broke_off_is_nobodys_fault(stand: Made, line: Line, said: str) -> None:
    everything = {line.version(place): said for place in range(1, 16)}
    machine = stand((11, SLOWER), uncompilable=everything)
    with pytest.raises(MachineError, match="ran out of disk or memory") as caught:
        machine.bisect(asked(line))
    assert caught.value.hint == "free some disk space or memory, and run the same command again"
    measured = total_rounds(machine.store)
    assert measured > 0
    machine.uncompilable = {}
    log = machine.bisect(asked(line))
    assert verdict_of(log).high == 11
    assert not list(BisectState(log).excluded())
    assert BisectState(log).rounds == total_rounds(machine.store) > measured


def test_a_full_disk_excludes_nobody(stand: Made, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = stand((11, SLOWER), not_starting=[line.version(place) for place in range(1, 16)])
    full = SimpleNamespace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    # It was enough before the data was loaded.
    monkeypatch.setattr(conductor, "require_disk", lambda path, needed: None)
    with pytest.raises(MachineError, match="ran out of disk"):
        machine.bisect(asked(line))
    monkeypatch.undo()
    machine.not_starting = ()
    log = machine.bisect(asked(line))
    assert verdict_of(log).high == 11
    assert not list(BisectState(log).excluded())


@pytest.mark.parametrize("said", ["killed by SIGKILL; the end of its log:", "Address already in use"])
def test_a_server_that_the_machine_kept_from_starting_excludes_nobody(
    stand: Made, line: Line, said: str
) -> None:
    machine = stand((11, SLOWER), not_starting=[line.version(place) for place in range(1, 16)], says=said)
    with pytest.raises(MachineError, match="says nothing of its commit"):
        machine.bisect(asked(line))
    machine.not_starting = ()
    log = machine.bisect(asked(line))
    assert verdict_of(log).high == 11
    assert not list(BisectState(log).excluded())


def test_a_dirty_build_is_refused(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER))
    machine.bisect(asked(line, seconds=2.0))
    (machine.folder / "prefix/bin/psql").write_text("changed")
    with pytest.raises(StoreError, match="modified: bin/psql is newer than the manifest") as caught:
        machine.bisect(asked(line))
    assert "remove the folder" in caught.value.hint
    (machine.folder / "prefix/bin/psql").unlink()
    with pytest.raises(StoreError, match="modified: bin/psql is missing"):
        machine.bisect(asked(line))


def test_a_metric_that_is_not_recorded_is_refused(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER), metrics={"server_read_kb_per_op": 0.0})
    for metric in ("wal_bytes_per_op", "server_read_kb_per_op"):
        with pytest.raises(MetricError, match=f"no {metric} above zero") as caught:
            machine.bisect(asked(line, metric=metric))
        assert "qps" in caught.value.hint


# --- what cannot be asked


def test_good_and_bad_swapped(stand: Made, line: Line) -> None:
    with pytest.raises(RangeError, match="swapped"):
        stand().bisect(a_question("main", line.good))


def test_a_ref_that_does_not_exist(stand: Made, line: Line) -> None:
    with pytest.raises(GitError, match="no tag, branch or commit 'nowhere'"):
        stand().bisect(a_question(line.good, "nowhere"))


def test_a_step_that_does_not_exist(stand: Made, line: Line) -> None:
    with pytest.raises(SuiteError, match="update-everything"):
        stand().bisect(asked(line, step="update-everything"))


def test_a_profile_without_rounds(stand: Made, line: Line) -> None:
    with pytest.raises(QuestionError, match="keeps its servers up"):
        stand().bisect(asked(line, profile="long"))


def test_not_while_something_else_measures(stand: Made, line: Line) -> None:
    machine = stand((11, SLOWER))
    path = lock_path(machine.home)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as another_process:
        fcntl.flock(another_process, fcntl.LOCK_EX)
        with pytest.raises(BusyError):
            machine.bisect(asked(line))


# --- releases


def test_releases_that_cannot_be_fetched_now_are_not_left_out(stand: Made) -> None:
    names = ("15.17", "15.18", "17.9", "17.10", "17.11", "18.3", "18.4", "18.6")
    rates = {f"postgres@{name}": 10_000.0 * (1.0 if name < "17.10" else SLOWER) for name in names}
    rates["postgres@17.9"] = 10_000.0
    away = [f"postgres@{name}" for name in names[1:-1]]
    machine = stand(rates=rates, address=None, unreachable=away)
    with pytest.raises(SourceError, match="the network is unreachable"):
        machine.bisect(a_question("15.17", "18.6", git=None))
    machine.unreachable = ()
    log = machine.bisect(a_question("15.17", "18.6", git=None))
    assert not list(BisectState(log).excluded())


def test_releases_end_with_a_pair_of_neighbours(stand: Made) -> None:
    names = ("15.17", "15.18", "17.9", "17.10", "17.11", "18.3", "18.4", "18.6")
    rates = {f"postgres@{name}": 10_000.0 * (1.0 if name < "17.10" else SLOWER) for name in names}
    rates["postgres@17.9"] = 10_000.0
    machine = stand(rates=rates, address=None, missing=["postgres@18.3"])
    log = machine.bisect(a_question("15.17", "18.6", git=None))
    assert [point.short for point in log.span.points] == list(names)
    verdict = verdict_of(log)
    assert (log.span.points[verdict.low].short, log.span.points[verdict.high].short) == ("17.9", "17.10")


def test_releases_swapped_and_the_same(stand: Made) -> None:
    machine = stand(address=None)
    with pytest.raises(RangeError, match="swapped") as caught:
        machine.bisect(a_question("18.6", "15.17", git=None))
    assert caught.value.hint.startswith("--good 15.17 --bad 18.6")
    with pytest.raises(RangeError, match="the same release"):
        machine.bisect(a_question("18.6", "18.6", git=None))
