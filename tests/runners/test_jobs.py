"""Around a job of GitHub's runner: strays, what root does, and a machine that is not fit for the job."""

import argparse
import fcntl
import shutil
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from build.home import Home
from runners import jobs
from runners.commands import runner
from runners.fitness.checked_machine import CheckedMachine
from runners.initializing.space import night_bytes
from runners.installing.units import PLAN, Installed
from runners.measuring.cleanup import OWNER
from runners.nightly.plan import load_plan
from runners.occupancy.pause import begin
from tests.runners.fitness.fake_kernel import FakeKernel

SENSOR = "/sys/class/hwmon/hwmon0/temp1_input"

pytestmark = pytest.mark.usefixtures("quick_disk")


class Around:
    """A job on a machine of files."""

    def __init__(self, machine: CheckedMachine, kernel: FakeKernel) -> None:
        self.home, self.machine, self.kernel = Home(machine.home), machine, kernel
        self.said: list[str] = []
        self.asked: list[str] = []
        self.slept = 0.0
        self.on_sleep: Callable[[], None] = lambda: None
        self.refusal: str | None = None
        self.needed_bytes = 10**6

    def started(self) -> int:
        def fresh() -> CheckedMachine:
            # What was sampled is kept in a CheckedMachine.
            return CheckedMachine(self.machine.home, self.kernel, self.machine.which, sample_seconds=0.001)

        return jobs.started(
            self.home,
            fresh,
            self.said.append,
            self.as_root,
            self.needed_bytes,
            self.sleep,
            lambda: self.slept,
        )

    def completed(self) -> int:
        return jobs.completed(self.home, self.said.append, self.as_root)

    def as_root(self, command: Sequence[str]) -> str | None:
        self.asked.append(" ".join(command))
        return self.refusal

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.on_sleep()


@pytest.fixture
def around(machine: CheckedMachine, kernel: FakeKernel) -> Around:
    return Around(machine, kernel)


def test_a_job_begins_on_a_fit_machine(around: Around) -> None:
    assert around.started() == 0
    assert around.asked == ["/usr/bin/systemctl start tidemark-tune.service"]
    assert around.completed() == 0
    assert around.asked[1:] == ["/usr/bin/systemctl start tidemark-restore.service"]
    assert (around.said, around.slept) == ([], 0.0)


def test_what_a_dead_session_left_is_swept(around: Around) -> None:
    for name, owner in (("sdead", "1 0.00"), ("sgone", "nonsense")):
        (around.home.data / name).mkdir(parents=True)
        (around.home.data / name / OWNER).write_text(owner)
    assert around.started() == 0
    assert list(around.home.data.iterdir()) == []
    assert sorted(around.said) == [
        "removed what a dead session left: sdead",
        "removed what a dead session left: sgone",
    ]


def test_folders_of_others_are_no_remains(around: Around) -> None:
    """Where a home is put into a folder whose `data` somebody else uses, with a process that works there."""
    theirs = around.home.data / "postgres"
    theirs.mkdir(parents=True)
    (theirs / "PG_VERSION").write_text("18")
    with subprocess.Popen(["sleep", "60"], cwd=theirs) as process:
        assert around.started() == 0
        alive = process.poll() is None
        process.kill()
    assert alive
    assert (theirs / "PG_VERSION").read_text() == "18"
    assert around.said == []


def test_heat_is_waited_for(around: Around) -> None:
    around.kernel.put(SENSOR, "90000")
    around.on_sleep = lambda: around.kernel.put(SENSOR, "40000")
    assert around.started() == 0
    assert around.slept == jobs.PAUSE_SECONDS
    assert around.said == ["waiting for temperature: 90 °C at hwmon/hwmon0/temp1_input (limit 75 °C)"]


def test_heat_that_stays_fails_the_job(around: Around) -> None:
    around.kernel.put(SENSOR, "90000")
    assert around.started() == 1
    assert jobs.PATIENCE_SECONDS < around.slept <= jobs.PATIENCE_SECONDS + jobs.PAUSE_SECONDS
    assert around.said[-1].startswith("temperature: 90 °C")


def test_a_disk_without_room_for_a_session_is_not_waited_for(
    around: Around, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        total, free = 10**12, 3 * 10**9

    monkeypatch.setattr(shutil, "disk_usage", lambda path: Full)
    around.needed_bytes = 3 * 10**9
    assert around.started() == 0
    around.needed_bytes = 4 * 10**9
    assert around.started() == 1
    assert around.slept == 0.0
    (said,) = around.said
    assert said.startswith("free disk: 3.0 GB of 1000.0 GB free at ")
    assert "; a session takes up to 4.0 GB: " in said


def test_a_job_needs_what_the_plan_needs_and_a_report_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def started(*arguments: object) -> int:
        asked.append(arguments[-1])
        return 1

    monkeypatch.setenv("TIDEMARK_HOME", str(home.path))
    monkeypatch.setattr(jobs, "started", started)
    monkeypatch.setattr(runner, "installed_units", lambda _: Installed({"TIDEMARK_BOX": "box1"}, PLAN))
    before = argparse.Namespace(when="started")
    monkeypatch.setenv("GITHUB_JOB", "measure")
    assert runner.hook(before) == 1
    assert asked == [night_bytes(load_plan(PLAN), "box1")]
    monkeypatch.setenv("GITHUB_JOB", "report")
    assert runner.hook(before) == 0
    assert len(asked) == 1


def test_while_something_measures_nothing_is_touched(around: Around, lock_of_its_own: Path) -> None:
    (around.home.data / "s0000dead").mkdir(parents=True)
    around.kernel.put(SENSOR, "90000")
    with lock_of_its_own.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert around.started() == 0
        assert around.completed() == 0
    assert around.asked == []
    assert (around.home.data / "s0000dead").exists()
    assert around.slept == jobs.PATIENCE_SECONDS
    assert all("held by process" in line for line in around.said)


def test_a_report_is_waited_for(around: Around, lock_of_its_own: Path) -> None:
    """Otherwise it would cost the night the settings of its machine."""
    with lock_of_its_own.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        around.on_sleep = lambda: fcntl.flock(lock, fcntl.LOCK_UN)
        assert around.started() == 0
    assert around.asked == ["/usr/bin/systemctl start tidemark-tune.service"]


def test_on_a_paused_box_nothing_is_touched(around: Around) -> None:
    """A person has it, whose settings and processes they are."""
    (around.home.data / "s0000dead").mkdir(parents=True)
    now = datetime.now(UTC)
    pause = begin(around.home, now + timedelta(hours=1), "measuring a patch", now)
    assert (around.started(), around.completed()) == (0, 0)
    assert around.said == [f"nothing was changed: this box is {pause}"] * 2
    assert around.asked == []
    assert (around.home.data / "s0000dead").exists()


def test_without_root_a_job_begins_all_the_same(around: Around) -> None:
    around.refusal = "sudo: a password is required"
    assert around.started() == 0
    assert around.completed() == 0
    assert around.said == [
        f"{unit} failed: sudo: a password is required; see journalctl -u {unit}"
        for unit in ("tidemark-tune.service", "tidemark-restore.service")
    ]
