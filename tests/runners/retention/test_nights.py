"""What a night deletes from the disk of its box, and that it says so."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from build.cache.pruning import cached_builds
from history.open import open_store
from runners.nightly.backfill_plan import Backfill
from runners.nightly.night import measure_past
from runners.nightly.summary import summary
from tests.build.cache.folders import a_build_of
from tests.history.handmade import MACHINE, NIGHT
from tests.runners.nightly.pretended import BRANCH, Lab


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab = Lab(tmp_path, monkeypatch)
    lab.commit()
    return lab


def names(lab: Lab) -> list[str]:
    return [build.version for build in cached_builds(lab.home)]


def test_what_was_used_longest_ago_goes_and_the_summary_says_it(lab: Lab) -> None:
    for days, version in enumerate(("postgres@16.1", "postgres@16.2", "postgres@16.3")):
        a_build_of(lab.home, version, NIGHT - timedelta(days=9 - days), size=1_000_000)
    night = lab.night(retention={"builds_gb": 0.0025})
    assert names(lab) == ["postgres@16.2", "postgres@16.3"]
    assert not night.problems
    assert "Disk: deleted: 1 build (0.00 GB); 2 builds left, 0.00 GB." in summary(night, None, [], NIGHT)
    assert "Disk" not in summary(lab.night(), None, [], NIGHT), "nothing is said of nothing"


def test_what_cannot_be_deleted_is_a_problem_of_the_night(lab: Lab) -> None:
    a_build_of(lab.home, "postgres@16.1", NIGHT, size=1_000_000, imported=True)
    night = lab.night(retention={"builds_gb": 0.0005})
    assert names(lab) == ["postgres@16.1"]
    (problem,) = night.problems
    assert problem.startswith("builds take 0.00 GB, more than retention.builds_gb = 0.0005: all of them")


def test_past_commits_leave_no_more_than_nights(lab: Lab) -> None:
    """A backfill compiles more than any night."""
    for days, version in enumerate(("postgres@16.1", "postgres@16.2")):
        a_build_of(lab.home, version, NIGHT - timedelta(days=9 - days), size=1_000_000)
    asked = Backfill(branch=BRANCH, since=f"{NIGHT:%Y-%m-%d}", every="7d", share=1.0)
    with open_store(lab.home.history, clock=lab.clock) as store:
        plan = lab.plan(retention={"builds_gb": 0.0015})
        measure_past(plan, "db1", MACHINE.hostname, lab.home, store, lab.progress, asked)
    assert names(lab) == ["postgres@16.2"]


def test_old_logs_go(lab: Lab) -> None:
    lab.home.logs.mkdir()
    for name, days in (("old.log", 91), ("new.log", 80)):
        (lab.home.logs / name).touch()
        moment = (NIGHT - timedelta(days=days)).timestamp()
        os.utime(lab.home.logs / name, (moment, moment))
    lab.night()
    assert [path.name for path in lab.home.logs.iterdir()] == ["new.log"]
