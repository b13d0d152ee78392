"""A pause of a box: who has it until when, what does not begin meanwhile, and that nobody misses a night."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.home import ROOT, Home
from build.progress import Silent
from history.open import open_store
from history.store.writer import Store
from runners.cli import main
from runners.measuring.request import Request
from runners.measuring.session import SessionOutcome
from runners.nightly import night as night_module
from runners.nightly.heartbeat import MISSED_HOURS, Heart, State, status
from runners.occupancy.pause import (
    LONGEST_DAYS,
    PAUSE,
    PauseError,
    begin,
    current_pause,
    end,
    last_pause,
    local,
    moment_to_come,
    require_not_paused,
)
from tests.runners.occupancy.lock_holder import holder

Capture: TypeAlias = pytest.CaptureFixture[str]

NOW = datetime(2026, 11, 25, 13, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return Home(tmp_path / "home")


# --- the time that a person means


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("18:00", "2026-11-25T17:00:00+00:00"),
        ("9:05", "2026-11-26T08:05:00+00:00"),
        ("14:30", "2026-11-26T13:30:00+00:00"),
        ("2026-12-24", "2026-12-23T23:00:00+00:00"),
        (" 2026-12-24 18:00 ", "2026-12-24T17:00:00+00:00"),
        ("2026-12-24T18:00Z", "2026-12-24T18:00:00+00:00"),
        ("2027-07-01 00:00", "2027-06-30T22:00:00+00:00"),
    ],
)
def test_a_time_is_that_of_the_machine_and_a_time_of_day_the_next_one(text: str, meant: str) -> None:
    assert moment_to_come(text, NOW).isoformat() == meant


@pytest.mark.usefixtures("berlin")
def test_a_time_of_day_on_the_day_that_clocks_are_put_back() -> None:
    saturday = datetime(2026, 10, 24, 20, 0, tzinfo=UTC)
    assert moment_to_come("18:00", saturday).isoformat() == "2026-10-25T17:00:00+00:00"


DIGITS = st.from_regex(r"[0-9]{1,5}[:-][0-9]{1,3}([ :T-][0-9]{1,3}){0,3}", fullmatch=True)


@pytest.mark.deep("a whole command in a process of its own")
@given(st.text(max_size=20) | DIGITS)
def test_any_text_is_a_time_in_utc_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert moment_to_come(text, NOW).tzinfo is UTC


# --- the pause


@pytest.mark.usefixtures("berlin")
def test_a_pause_names_who_why_and_until_when(home: Home) -> None:
    pause = begin(home, NOW + 3 * HOUR, "measuring\x1b[2J a patch\n", NOW)
    assert str(pause).startswith("paused until 2026-11-25 17:30 CET by alice: measuring")
    assert "\x1b" not in str(pause)
    assert current_pause(home, NOW + 2.9 * HOUR) == pause
    with pytest.raises(PauseError, match="this box is paused until"):
        require_not_paused(home, NOW)
    assert current_pause(home, NOW + 3 * HOUR) is None


def test_a_pause_ends_early_and_is_remembered(home: Home) -> None:
    assert end(home, NOW) is None
    begun = begin(home, NOW + 3 * HOUR, "x", NOW)
    assert end(home, NOW + HOUR) == begun
    assert end(home, NOW + HOUR) is None
    kept = last_pause(home)
    assert kept is not None
    assert kept.until == NOW + HOUR


@pytest.mark.parametrize(
    ("until", "why"), [(NOW - HOUR, "x"), (NOW + timedelta(days=LONGEST_DAYS + 1), "x"), (NOW + HOUR, " \n")]
)
def test_what_cannot_be_meant_is_refused(home: Home, until: datetime, why: str) -> None:
    with pytest.raises(PauseError):
        begin(home, until, why, NOW)
    assert not (home.path / PAUSE).exists()


def test_nobody_takes_the_box_from_another_but_prolongs_their_own(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(home, NOW + HOUR, "x", NOW)
    longer = begin(home, NOW + 3 * HOUR, "x", NOW)
    monkeypatch.setenv("SUDO_USER", "bob")
    with pytest.raises(PauseError, match="by alice") as refused:
        begin(home, NOW + 5 * HOUR, "y", NOW)
    assert "service resume" in refused.value.hint
    assert current_pause(home, NOW) == longer
    begin(home, NOW + 5 * HOUR, "y", NOW + 4 * HOUR)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"by": 1}', '{"by":"a","why":"b","since":"x","until":5}'])
def test_a_file_that_is_none_pauses_nothing(home: Home, text: str) -> None:
    home.path.mkdir()
    (home.path / PAUSE).write_text(text)
    assert last_pause(home) is None


# --- what does not begin meanwhile


@pytest.fixture
def plan(home: Home, tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(
        '[boxes.db1]\nlabel = "x"\nhostname = "*"\n[engines.postgres]\nbase = "postgres@17.11"\n'
        'releases = ["18.6"]\n[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\npriority = 1\n'
        '[[tasks]]\nsuite = "pgbench"\nprofile = "smoke"\npriority = 2\n'
    )
    return path


Asked = list[Request]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    asked: Asked = []

    def session(request: Request, home: Home, store: Store, progress: object) -> SessionOutcome:
        asked.append(request)
        return SessionOutcome(uid="x")

    monkeypatch.setattr(night_module, "run_session", session)
    return asked


def pause(capsys: Capture, *words: str) -> str:
    until = local(datetime.now(UTC) + HOUR)[:16]
    assert main(["service", "pause", "--until", until, "--why", "a patch", *words]) == 0
    return capsys.readouterr().out


def test_a_paused_night_ends_quietly_and_a_resumed_one_measures(
    plan: Path, asked: Asked, home: Home, capsys: Capture
) -> None:
    said = pause(capsys)
    assert said.startswith("paused until ")
    assert "by alice: a patch" in said
    assert "no night has begun with this output folder" in said
    assert main(["nightly", "--plan", str(plan)]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("this box is paused until ")
    assert told.out.endswith("by alice: a patch\n")
    assert (asked, told.err, home.heartbeat.exists()) == ([], "", False)
    assert main(["status"]) == 0
    assert capsys.readouterr().out.startswith("paused until ")
    assert main(["status", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["paused"]["why"] == "a patch"
    assert main(["service", "resume"]) == 0
    assert capsys.readouterr().out.startswith("ended: paused until ")
    assert main(["service", "resume"]) == 0
    assert capsys.readouterr().out == "this box is not paused\n"
    assert main(["nightly", "--plan", str(plan), "--measure"]) == 0
    assert len(asked) == 2


def test_a_pause_during_a_night_ends_it_after_its_session(
    plan: Path, home: Home, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Asked = []

    def session(request: Request, home: Home, store: Store, progress: object) -> SessionOutcome:
        asked.append(request)
        begin(home, datetime.now(UTC) + HOUR, "a patch", datetime.now(UTC))
        return SessionOutcome(uid="x")

    monkeypatch.setattr(night_module, "run_session", session)
    assert main(["nightly", "--plan", str(plan), "--measure"]) == 0
    assert [request.suite.name for request in asked] == ["write-heavy"]
    said = capsys.readouterr().out
    assert "left for the next night: postgres@18.6, pgbench smoke: the box is paused" in said
    assert ": the box is paused: paused until " in said


@pytest.mark.parametrize(
    "words",
    [
        ["bisect", "--box", "db1", "--good", "REL_17_0", "--bad", "REL_18_0", "--step", "insert"],
        ["try", "--box", "db1", "--against", "master", "topic"],
    ],
    ids=["bisect", "try"],
)
def test_no_workflow_measures_on_a_paused_box(plan: Path, capsys: Capture, words: list[str]) -> None:
    pause(capsys)
    assert main([*words, "--plan", str(plan)]) == 2
    assert "tidemark: this box is paused until " in capsys.readouterr().err


NIGHT = """
import sys, time
from pathlib import Path
from build.progress import Silent
from runners.interrupts import interrupt_once
from runners.nightly.heartbeat import Heart
interrupt_once()
heart = Heart(Path(sys.argv[1]), "db1", Silent())
heart.note("measures")
print("begun", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.3)
    heart.end("interrupted")
"""


def test_a_night_that_runs_goes_on_unless_it_is_to_be_interrupted(home: Home, capsys: Capture) -> None:
    command = [sys.executable, "-c", NIGHT, str(home.heartbeat)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as night:
        assert night.stdout is not None
        assert night.stdout.readline() == "begun\n"
        assert "its session goes on, and the night ends after it" in pause(capsys)
        assert status(home.heartbeat, datetime.now(UTC)).state is State.RUNNING
        assert "It has ended. The next night continues it." in pause(capsys, "--interrupt")
        assert night.wait() == 0
    found = status(home.heartbeat, datetime.now(UTC))
    assert found.beat is not None
    assert (found.state, found.beat.outcome) == (State.ENDED, "interrupted")


def test_what_else_holds_the_machine_is_named_and_goes_on(
    home: Home, tmp_path: Path, capsys: Capture
) -> None:
    with holder(tmp_path / "elsewhere") as other:
        said = pause(capsys, "--interrupt")
        assert other.poll() is None
    assert f"The machine is held by process {other.pid} (" in said


# --- what nobody misses


def test_no_night_is_missed_during_a_pause_and_before_the_next_one_is_due(
    home: Home, plan: Path, capsys: Capture
) -> None:
    Heart(home.heartbeat, "db1", Silent(), lambda: NOW).end("1 session")
    until = NOW + timedelta(days=3)
    begin(home, until, "a patch", NOW)
    late = timedelta(hours=MISSED_HOURS + 0.1)
    assert status(home.heartbeat, NOW + late).state is State.MISSED
    assert status(home.heartbeat, NOW + late, until).state is State.ENDED
    assert status(home.heartbeat, until + HOUR, until).state is State.ENDED
    assert status(home.heartbeat, until + late, until).state is State.MISSED


@pytest.mark.parametrize("is_named", [True, False], ids=["plan", "no plan"])
def test_a_lost_history_is_told_during_a_pause(
    home: Home, plan: Path, capsys: Capture, *, is_named: bool
) -> None:
    """Before the first night there is none to be lost."""
    now = datetime.now(UTC)
    words = ["--plan", str(plan)] if is_named else []
    begin(home, now + HOUR, "a patch", now - timedelta(days=3))
    assert main(["status", *words]) == 0
    Heart(home.heartbeat, "db1", Silent(), lambda: now - timedelta(days=3)).end("1 session")
    capsys.readouterr()
    assert main(["status", *words]) == 1
    assert "whether results arrive is unknown: there is no history yet" in capsys.readouterr().out
    home.heartbeat.unlink()
    home.summaries.mkdir()
    (home.summaries / "2026-11-24.md").touch()
    assert main(["status", *words]) == 1


def test_status_knows_of_the_pause(home: Home, plan: Path, capsys: Capture) -> None:
    now = datetime.now(UTC)
    with open_store(home.path / "history.db"):
        pass
    Heart(home.heartbeat, "db1", Silent(), lambda: now - timedelta(days=3)).end("1 session")
    assert main(["status"]) == 1
    begin(home, now + HOUR, "a patch", now - timedelta(days=3))
    capsys.readouterr()
    assert main(["status"]) == 0
    assert capsys.readouterr().out.count("paused until ") == 1
