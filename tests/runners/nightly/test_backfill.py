"""Past commits: measured by halving, closer around a change, stopped anywhere, and never taken for nights."""

import os
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from build.finished_build import Build
from build.request import BuildRequest
from history.changes import repository
from history.changes.report import ChangeReport
from history.comparison.exact import MAX_PASSES
from history.open import open_store
from history.series.last_nights import last_nights
from history.series.series import nights_of
from history.store.records import Environment
from history.timestamps import from_text
from runners.bisect.run import ahead
from runners.bisect.run import builds as bisect_builds
from runners.nightly.backfill_plan import Backfill
from runners.nightly.night import measure_past
from runners.nightly.night_result import NightResult
from runners.nightly.past import backfill
from runners.nightly.report import NightReport, report
from runners.nightly.summary import summary
from suites.metrics import INSTRUCTIONS
from tests.history.conftest import rows
from tests.history.handmade import MACHINE, NIGHT
from tests.runners.nightly.pretended import BASE, BRANCH, STEPS, Lab

pytestmark = pytest.mark.deep("months of simulated nights")

FIRST = datetime(2025, 1, 1, tzinfo=UTC)
ASKED = Backfill(branch=BRANCH, since="2025-01-01", every="7d", share=1.0)
SLOW = {"insert": 0.90}
MORE = {"insert": 1.04}
"""Instructions."""

WEEKS = 26
A_WEEK = 4
"""Commits."""
FIRST_SLOW = 70
LATE = ASKED.model_copy(update={"since": "2025-05-07"})
"""Eight dates, of which the first is that of commit 72: too few for a search, and quick."""


class Archive(Lab):
    """A branch with commits of half a year before its first night."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        monkeypatch.setattr(bisect_builds, "provide", self.provide)
        monkeypatch.setattr(bisect_builds, "require_clean", lambda build: None)
        self._import_commits()
        log = self.git("log", "--first-parent", "--reverse", "--format=%H", "master").split()
        self.versions = [f"postgres@git:{commit[:12]}" for commit in log]
        self.speeds = {
            name: SLOW if number >= FIRST_SLOW else {} for number, name in enumerate(self.versions)
        }
        self.day = 400

    def _import_commits(self) -> None:
        """Commit with one process of git, at the same distances."""
        words = []
        for number in range(WEEKS * A_WEEK):
            at = int((FIRST + timedelta(days=7 * number / A_WEEK)).timestamp())
            text = f"int version = {number};"
            words += [f"commit refs/heads/master\ncommitter T <t@example.org> {at} +0000\ndata 0\n"]
            words += [f"M 644 inline server.c\ndata {len(text)}\n{text}\n"]
        command = ["git", "-C", str(self.source), "fast-import", "--quiet"]
        subprocess.run(command, input="".join(words), text=True, check=True)
        self.git("reset", "-q", "--hard")

    def past(self, budget: float = 10_000.0, asked: Backfill = ASKED, **changes: Any) -> NightResult:
        """Backfill for so many minutes."""
        plan = self.plan(box={"budget_minutes": budget}, **changes)
        with open_store(self.home.history, clock=self.clock) as store:
            clock = lambda: self.minutes * 60  # noqa: E731
            return measure_past(plan, "db1", MACHINE.hostname, self.home, store, self.progress, asked, clock)

    def measured_commits(self) -> list[int]:
        """The numbers of the commits that were measured beside the base, in order."""
        both = (names for names, _, _ in self.measured if len(names) > 1 and names[0] == BASE)
        found = dict.fromkeys(names[1] for names in both)
        return [self.versions.index(name) for name in found if name in self.versions]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    return Archive(tmp_path, monkeypatch)


def judged(archive: Archive) -> NightReport:
    with open_store(archive.home.history, clock=archive.clock) as store:
        return report(archive.plan(), archive.home, store)


def test_gaps_are_halved_and_a_change_is_found_between_two_commits(archive: Archive) -> None:
    night = archive.past()
    order = archive.measured_commits()
    assert order[:2] == [0, 100]  # the ends
    assert order[2] == 48
    assert sorted(order[:WEEKS]) == list(range(0, WEEKS * A_WEEK, A_WEEK))
    assert set(order[WEEKS:]) <= {69, 70, 71}
    assert night.past is not None
    assert not night.problems
    assert night.outcome.startswith(f"{len(order)} past commits, 1 pair of commits compared")
    told = judged(archive)
    (new,) = told.new
    assert isinstance(new, ChangeReport)
    assert (new.change.last_before.version, new.change.first_after.version) == tuple(archive.versions[69:71])
    assert new.change.last_before.started_at == FIRST + timedelta(days=7 * 69 / A_WEEK)
    assert new.change.last_before.measured_at is not None
    text = summary(night, told, [], NIGHT).replace("\\", "")
    assert "26 of 26 dates have a point; widest gap 7 days; nothing is left to do" in text
    assert archive.past().outcome == "nothing is new"


def test_after_any_budget_the_series_is_evenly_filled(archive: Archive) -> None:
    archive.minutes_a_round = 1.0
    rounds = 4 * len(STEPS)
    night = archive.past(budget=5 * rounds - 1)
    assert archive.measured_commits() == [0, 100, 48, 72, 24]
    assert night.past is not None
    ((_, how_far, is_unfinished),) = night.past.state
    assert (how_far.filled, how_far.dates, is_unfinished) == (5, WEEKS, True)
    assert how_far.widest <= timedelta(days=7 * 7)


def test_counted_alone_the_next_commit_compiles_meanwhile(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes next is compiled in a process of its own, beside the passes of what is counted."""
    archive.counts = {
        name: MORE if name in archive.versions[FIRST_SLOW:] else {} for name in archive.versions
    }
    told = archive.home.path / "ahead"
    told.touch()

    def provide(request: BuildRequest, *words: Any) -> Build:
        if os.getpid() != parent:
            is_first = not told.read_text()
            with told.open("a") as file:
                file.write(f"{request.version}\n")
            time.sleep(3 * is_first)  # longer than the first passes
        return archive.provide(request, *words)

    parent = os.getpid()
    monkeypatch.setattr(ahead, "usable_cores", lambda: (0, 1))
    monkeypatch.setattr(bisect_builds, "provide", provide)
    night = archive.past(asked=ASKED.model_copy(update={"counted": True}))
    assert not night.problems
    assert not archive.measured, "nothing is timed"
    of_base = [step for name, step in archive.passes if name == BASE]
    assert all(2 <= of_base.count(step) <= MAX_PASSES for step in STEPS), "the base is counted once"
    order = [name for name in dict.fromkeys(name for name, _ in archive.passes) if name != BASE]
    assert [archive.versions.index(name) for name in order[:3]] == [0, 100, 48]
    assert told.read_text().split() == order[1:WEEKS]
    judged(archive)
    with open_store(archive.home.history) as store, store.database.reading() as connection:
        (change,) = repository.load(connection)
    assert (change.last_before.version, change.first_after.version) == tuple(archive.versions[69:71])
    assert {member.key.metric for member in change.members} == {INSTRUCTIONS}
    told.write_text("")
    archive.past(asked=ASKED.model_copy(update={"every": "5d"}), budget=10)
    assert archive.measured
    assert not told.read_text(), "nothing compiles beside rounds that are timed"


def test_long_mode_is_not_counted_alone(archive: Archive) -> None:
    task = {"suite": "write-heavy", "profile": "io", "steps": list(STEPS), "perf": False}
    night = archive.past(asked=ASKED.model_copy(update={"counted": True}), tasks=[task])
    (problem,) = night.problems
    assert "write-heavy io is in long mode" in problem
    assert not archive.measured


def test_killed_anywhere_it_goes_on(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "again", lambda: archive.past(asked=LATE))
    archive.killed(30)
    with open_store(archive.home.history) as store:
        done = rows(store, "SELECT id, version, step, repetition FROM runs ORDER BY id")
    archive.past(asked=LATE)
    with open_store(archive.home.history) as store:
        later = rows(store, "SELECT id, version, step, repetition FROM runs ORDER BY id")
        versions = rows(store, "SELECT version, COUNT(*) FROM nights WHERE is_base = 0 GROUP BY version")
    assert later[: len(done)] == done
    assert len(set(later)) == len(later)
    assert {count for _, count in versions} == {1}
    assert len(versions) == 8


def test_points_stand_at_their_dates_and_are_no_nights(archive: Archive) -> None:
    archive.past(asked=LATE)
    tip = archive.commit(SLOW)
    archive.night()
    with open_store(archive.home.history) as store, store.database.reading() as connection:
        environment = Environment(*rows(store, "SELECT box, suite, configuration FROM nights")[0])
        all_nights = nights_of(connection, environment, BRANCH)
        (last,) = (last_night for last_night in last_nights(connection) if last_night.branch == BRANCH)
        started = dict(rows(store, "SELECT id, started_at FROM sessions"))
    assert last.version == tip
    assert all_nights[-1].measured_at is None
    assert [night.started_at for night in all_nights] == sorted(night.started_at for night in all_nights)
    for night in all_nights[:-1]:
        number = archive.versions.index(night.version)
        assert night.started_at == FIRST + timedelta(days=7 * number / A_WEEK)
        assert night.measured_at == from_text(started[night.session_id])


def test_what_does_not_compile_is_replaced_by_the_commit_before_it(archive: Archive) -> None:
    archive.unbuildable = {archive.versions[number] for number in (84, 83, 100, 96, 95, 94)}
    night = archive.past(asked=LATE)
    assert sorted(archive.measured_commits()) == [72, 76, 80, 82, 88, 92, 99]
    assert night.past is not None
    assert {str(version) for version in night.past.in_vain} == archive.unbuildable
    assert not night.problems
    ((_, how_far, _),) = night.past.state
    assert (how_far.filled, how_far.in_vain) == (7, 1)


@pytest.mark.parametrize("how", ["unavailable", "unconfigurable", "killed"])
def test_what_the_machine_prevented_is_measured_by_the_next_run(archive: Archive, how: str) -> None:
    """All commits that a date may have fail in a way that is not their own."""
    several = {archive.versions[number] for number in (84, 83, 82)}
    if how == "killed":
        archive.dying = dict.fromkeys(several, "killed by SIGKILL")
    else:
        setattr(archive, how, several)
    night = archive.past(asked=LATE)
    assert night.has_failed
    assert night.past is not None
    assert not night.past.in_vain
    archive.unavailable = archive.unconfigurable = set()
    archive.dying.clear()
    archive.measured.clear()
    assert not archive.past(asked=LATE).has_failed
    assert 84 in archive.measured_commits()


@pytest.mark.parametrize("how", ["unloadable", "dying"])
def test_a_commit_whose_server_fails_is_replaced_by_the_one_before_it(archive: Archive, how: str) -> None:
    getattr(archive, how)[archive.versions[84]] = "TRAP: failed Assert"
    archive.past(asked=LATE)
    assert 83 in archive.measured_commits()
    archive.measured.clear()
    assert not archive.past(asked=LATE).past.carried_out  # type: ignore[union-attr]
    assert not archive.measured


def test_a_machine_that_fails_ends_it(archive: Archive) -> None:
    archive.broken_machine = True
    night = archive.past()
    assert len(night.problems) == backfill.MAX_PROBLEMS
    assert not archive.measured


def test_a_night_fills_past_dates_in_its_share_of_idle_time(archive: Archive) -> None:
    archive.minutes_a_round = 1.0
    rounds = 4 * len(STEPS)
    asked = {"branch": BRANCH, "since": "2025-01", "share": 0.5}
    task = {"suite": "write-heavy", "profile": "smoke", "steps": list(STEPS), "rounds": 4, "perf": False}
    archive.commit(SLOW)
    night = archive.night(tasks=[task | {"backfill": [asked]}], box={"budget_minutes": rounds * 9.0})
    assert night.outcome == "1 of 1 version measured, 4 past commits"
    assert archive.measured_commits() == [0, 100, 48, 72]
