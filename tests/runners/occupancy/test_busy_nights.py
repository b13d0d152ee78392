"""A machine that is held when a night or a report is due: what waits, for what, and what is said of it."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Timer
from types import ModuleType
from typing import TypeAlias

import pytest

from build.errors import TidemarkError
from build.home import ROOT, Home
from build.version import parse_version
from history.store.writer import Store
from runners.cli import main
from runners.commands import bisect, calibrate, run
from runners.commands import nightly as nightly_command
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from runners.nightly import night as night_module
from runners.nightly.report import NightReport
from runners.occupancy import waiting
from runners.occupancy.waiting import machine_awaited
from runners.trying import command
from runners.trying.sides import Sides
from tests.history.watched import record_regression
from tests.runners.occupancy.lock_holder import holder

Asked = list[Request]
Capture: TypeAlias = pytest.CaptureFixture[str]
Patch: TypeAlias = pytest.MonkeyPatch
Process: TypeAlias = "subprocess.Popen[str]"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: Patch) -> None:
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.05)


@pytest.fixture
def asked(monkeypatch: Patch) -> Asked:
    """The sessions that nights ask for, which measure nothing."""
    asked: Asked = []

    def session(request: Request, home: Home, store: Store, progress: object) -> SessionOutcome:
        asked.append(request)
        return SessionOutcome(uid="x")

    monkeypatch.setattr(night_module, "run_session", session)
    return asked


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: Patch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return written(tmp_path / "plan.toml", 60.0)


def written(path: Path, budget_minutes: float) -> Path:
    path.write_text(
        f'[boxes.db1]\nlabel = "x"\nhostname = "*"\nbudget_minutes = {budget_minutes}\n'
        '[engines.postgres]\nbase = "postgres@17.11"\nreleases = ["18.6"]\n'
        '[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\n'
    )
    return path


def night(plan: Path, *words: str) -> int:
    return main(["nightly", "--plan", str(plan), *words])


def each_wait(monkeypatch: Patch, sleep: Callable[[float], None]) -> None:
    """Call `sleep` whenever a night waits before it tries again."""
    monkeypatch.setattr(nightly_command, "machine_awaited", partial(machine_awaited, sleep=sleep))


# --- a night


def test_a_night_waits_for_the_machine_says_for_what_and_measures(
    plan: Path, asked: Asked, tmp_path: Path, capsys: Capture
) -> None:
    beat = tmp_path / "home/heartbeat.json"
    with holder(tmp_path / "elsewhere", until=beat, text="waiting for the machine") as other:
        assert night(plan, "--measure") == 0
    assert len(asked) == 1
    assert f"waiting for the machine: held by process {other.pid} (" in capsys.readouterr().err
    assert main(["status"]) == 0


def test_status_says_for_what_a_night_waits_and_until_when(
    plan: Path,
    asked: Asked,
    tmp_path: Path,
    monkeypatch: Patch,
    capsys: Capture,
) -> None:
    said: list[str] = []

    def sleep(seconds: float) -> None:
        main(["status"])
        said.append(capsys.readouterr().out)
        other.kill()
        other.wait()

    each_wait(monkeypatch, sleep)
    with holder(tmp_path / "elsewhere") as other:
        assert night(plan, "--measure") == 0
    assert said[0].startswith("running: box db1")
    assert f"waiting for the machine: held by process {other.pid} (" in said[0]


def test_the_wait_is_a_part_of_the_budget(
    plan: Path,
    asked: Asked,
    tmp_path: Path,
    monkeypatch: Patch,
    capsys: Capture,
) -> None:
    """Half a minute of budget, of which the clock says that all but none was waited."""
    written(plan, 0.5)
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now = 30 - 1e-9
        other.kill()
        other.wait()

    waits = partial(machine_awaited, sleep=sleep, clock=lambda: now)
    monkeypatch.setattr(nightly_command, "machine_awaited", waits)
    with holder(tmp_path / "elsewhere") as other:
        night(plan, "--measure")
    assert (
        "left for the next night: postgres@18.6, write-heavy smoke: time budget exhausted"
        in capsys.readouterr().out
    )
    assert asked == []


def test_a_night_that_waited_in_vain_is_not_done_and_everybody_is_told(
    plan: Path, asked: Asked, lock_of_its_own: Path, tmp_path: Path, capsys: Capture
) -> None:
    written(plan, 0.005)
    with lock_of_its_own.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert night(plan) == 2
    said = capsys.readouterr().out
    why = f"the machine is held by process {os.getpid()} ("
    assert f"nothing was measured: waited 0 minutes: {why}" in said
    assert asked == []
    (kept,) = (tmp_path / "home/summaries").iterdir()
    assert "nothing was measured" in kept.read_text()
    assert main(["status"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("failed: box db1")
    assert why in said
    assert night(plan, "--measure") == 0
    assert main(["status"]) == 0


def test_what_is_shown_of_the_holder_has_no_password(
    plan: Path, asked: Asked, tmp_path: Path, lock_of_its_own: Path, capsys: Capture
) -> None:
    written(plan, 0.005)
    command = ["flock", lock_of_its_own.name, "sh", "-c", "echo held; cat", "postgresql://u:hush@h/db"]
    pipe, folder = subprocess.PIPE, lock_of_its_own.parent
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=folder) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert night(plan, "--measure") == 2
        other.communicate("")
    said = capsys.readouterr()
    assert "postgresql://u:***@h/db" in said.err
    assert "hush" not in said.out + said.err + (tmp_path / "home/heartbeat.json").read_text()


@pytest.fixture
def another_night(tmp_path: Path) -> Callable[..., Process]:
    """Begins a night, or a backfill, of the same box in another process."""
    program = """
import sys, time
from pathlib import Path
from build.home import Home
from build.progress import Silent
from runners.measuring.machine_lock import measuring_alone
from runners.nightly.heartbeat import Heart
home = Home(Path(sys.argv[1]))
with measuring_alone(home):
    Heart(home.heartbeat, "db1", Silent(), is_backfill=sys.argv[2] == "backfill").note("measures")
    print("held", flush=True)
    time.sleep(60)
"""

    def begin(kind: str) -> Process:
        command = [sys.executable, "-c", program, str(tmp_path / "home"), kind]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    return begin


def test_a_second_night_of_the_same_box_leaves_the_work_to_the_first(
    plan: Path,
    asked: Asked,
    tmp_path: Path,
    another_night: Callable[..., Process],
    capsys: Capture,
) -> None:
    with another_night("night") as other:
        before = (tmp_path / "home/heartbeat.json").read_text()
        assert night(plan) == 0
        assert (tmp_path / "home/heartbeat.json").read_text() == before
        other.kill()
    assert f"process {other.pid} carries out this night" in capsys.readouterr().err
    assert asked == []


def test_a_backfill_is_not_the_night_of_a_box_and_keeps_its_heartbeat(
    plan: Path, asked: Asked, tmp_path: Path, another_night: Callable[..., Process]
) -> None:
    written(plan, 0.005)
    with another_night("backfill") as other:
        before = (tmp_path / "home/heartbeat.json").read_text()
        assert night(plan, "--measure") == 2
        assert (tmp_path / "home/heartbeat.json").read_text() == before
        other.kill()


# --- a report


def test_no_measurement_begins_beside_a_report(
    plan: Path, asked: Asked, lock_of_its_own: Path, monkeypatch: Patch
) -> None:
    held: list[bool] = []

    def look(*_: object) -> NightReport:
        with lock_of_its_own.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(True)
        return NightReport(0, (), (), (), 0)

    monkeypatch.setattr(nightly_command, "report", look)
    assert night(plan) == 0
    assert night(plan, "--report") == 0
    assert held == [True, True]


@pytest.mark.deep("a whole command in a process of its own")
@pytest.mark.parametrize("words", [["nightly", "--report"], ["report"]], ids=" ".join)
def test_a_report_waits_for_a_measurement(plan: Path, tmp_path: Path, words: list[str]) -> None:
    record_regression(tmp_path / "home/history.db")
    words = [*words, "--plan", str(plan)] if words[0] == "nightly" else words
    command = [sys.executable, "-m", "runners", *words]
    with holder(tmp_path / "elsewhere") as other:
        report = subprocess.Popen(
            command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert report.stderr is not None
        first = report.stderr.readline()
        assert not any((tmp_path / "home" / name).exists() for name in ("site", "backups"))
        other.kill()
    report.communicate(timeout=60)
    assert f"waiting for the machine: held by process {other.pid} (" in first
    assert (tmp_path / "home" / ("site" if words[0] == "report" else "backups")).is_dir()


@pytest.mark.deep("a whole command in a process of its own")
def test_a_report_that_waited_in_vain_is_late_and_status_says_so_until_it_is_made(
    plan: Path,
    asked: Asked,
    tmp_path: Path,
    monkeypatch: Patch,
    capsys: Capture,
) -> None:
    assert night(plan, "--measure") == 0
    monkeypatch.setattr(waiting, "WAIT_MINUTES", 0.005)
    with holder(tmp_path / "elsewhere") as other:
        assert night(plan, "--report") == 2
    assert f"held by process {other.pid}" in capsys.readouterr().err
    assert main(["status"]) == 1
    assert "the last report was not made: waited 0 minutes: the machine is held" in capsys.readouterr().out
    assert night(plan, "--report") == 0
    assert main(["status"]) == 0


@pytest.mark.deep("a whole command in a process of its own")
def test_who_may_not_open_the_lock_reads_a_history_all_the_same(
    plan: Path, tmp_path: Path, lock_of_its_own: Path, capsys: Capture
) -> None:
    record_regression(tmp_path / "home/history.db")
    lock_of_its_own.mkdir()
    assert main(["report"]) == 0
    assert "whether something measures on this machine is not known" in capsys.readouterr().err


def test_a_copy_of_the_history_waits_for_nothing_and_says_what_it_disturbs(
    plan: Path, tmp_path: Path, capsys: Capture
) -> None:
    """A copy is wanted most where a night hangs."""
    record_regression(tmp_path / "home/history.db")
    with holder(tmp_path / "elsewhere") as other:
        assert main(["history", "backup", str(tmp_path / "copy.db")]) == 0
        assert f"the machine is held by process {other.pid} (" in capsys.readouterr().err
        assert main(["history", "show"]) == 0
        assert "is held" not in capsys.readouterr().err
    assert main(["history", "backup", str(tmp_path / "copy.db")]) == 0
    assert "is held" not in capsys.readouterr().err


# --- commands of a person


def test_a_session_by_hand_ends_at_once_or_waits_as_long_as_is_asked(
    plan: Path, lock_of_its_own: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    asked: list[Request] = []

    def session(request: Request, *_: object) -> SessionOutcome:
        asked.append(request)
        return SessionOutcome(uid="x")

    monkeypatch.setattr(run, "run_session", session)
    words = ["run", "--step", "insert", "postgres@17.11", "postgres@18.6"]
    with holder(tmp_path / "elsewhere") as other:
        assert main(words) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"tidemark: the machine is held by process {other.pid} (")
        assert asked == []
        Timer(0.5, other.kill).start()
        assert main([*words, "--wait", "1"]) == 0
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (calibrate, ["calibrate", "postgres@18.6"]),
        (bisect, ["bisect", "--good", "17.11", "--bad", "18.6", "--step", "insert"]),
        (command, ["try", "--against", "postgres@17.11", "postgres@18.6"]),
    ],
    ids=["calibrate", "bisect", "try"],
)
def test_other_commands_wait_as_long(
    plan: Path, monkeypatch: Patch, capsys: Capture, module: ModuleType, words: list[str]
) -> None:
    def waits(home: Home, seconds: float, *_: object) -> None:
        raise TidemarkError(f"waits {seconds:g} s")

    monkeypatch.setattr(module, "machine_awaited", waits)
    sides = Sides(parse_version("postgres@17.11"), parse_version("postgres@18.6"), "two releases")
    monkeypatch.setattr(command, "sides_of", lambda *_, **__: sides)
    assert main([*words, "--wait", "90"]) == 2
    assert "waits 5400 s" in capsys.readouterr().err
