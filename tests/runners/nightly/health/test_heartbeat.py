"""The heartbeat: what it says while a night runs, ends, hangs, dies, and is missed."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from build.progress import Silent
from runners.nightly import heartbeat
from runners.nightly.heartbeat import (
    MISSED_HOURS,
    STALE_MINUTES,
    WELL,
    Heart,
    State,
    read,
    record_failure,
    record_report,
    status,
)
from runners.nightly.status import state_lines

NOW = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **amount: float) -> datetime:
        self.now += timedelta(**amount)
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.0)
    return Clock()


def test_a_box_that_never_ran(tmp_path: Path) -> None:
    assert status(tmp_path / "heartbeat.json", NOW).state is State.NEVER
    (tmp_path / "heartbeat.json").write_text('{"box": "half')
    assert status(tmp_path / "heartbeat.json", NOW).state is State.NEVER


def test_a_night_from_its_first_beat_to_the_one_that_is_missed(tmp_path: Path, clock: Clock) -> None:
    path, shown = tmp_path / "deep/heartbeat.json", Silent()
    heart = Heart(path, "db1", shown, clock)
    clock.pass_by(minutes=1)
    with heart.task("measuring", 10) as task:
        task.rename("round 1: insert")
        task.update(0)
        clock.pass_by(minutes=2)
        task.update(4)
        found = status(path, clock.now)
        assert found.state is State.RUNNING
        assert found.beat is not None
        assert (found.beat.box, found.beat.what, found.beat.done) == ("db1", "round 1: insert", 4)
        assert found.beat.process_id == os.getpid()
        assert found.beat.ends_at == NOW + timedelta(minutes=1 + 5)
        assert status(path, clock.now + timedelta(minutes=STALE_MINUTES)).state is State.RUNNING
        assert status(path, clock.now + timedelta(minutes=STALE_MINUTES + 1)).state is State.STALE
    heart.note("a word")
    assert shown.notes == ["a word"]
    after = read(path)
    assert after is not None
    assert (after.what, after.ends_at) == ("begins", None)
    clock.pass_by(minutes=3)
    heart.end("2 sessions")
    ended = status(path, clock.now + timedelta(hours=MISSED_HOURS))
    assert ended.state is State.ENDED
    assert ended.beat is not None
    assert ended.beat.outcome == "2 sessions"
    assert status(path, clock.now + timedelta(hours=MISSED_HOURS + 0.1)).state is State.MISSED


def test_a_night_whose_process_is_gone(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "heartbeat.json"
    Heart(path, "db1", Silent(), clock)
    beat = json.loads(path.read_text())
    beat["start_ticks"] += 1
    path.write_text(json.dumps(beat))
    assert status(path, NOW).state is State.DEAD


def test_a_night_that_failed_is_not_well(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "heartbeat.json"
    Heart(path, "db1", Silent(), clock)
    record_failure(path, "db1", RuntimeError("the disk is full\nwhere: /"), clock.pass_by(minutes=5))
    failed = status(path, clock.now)
    assert failed.state is State.FAILED
    assert failed.state not in WELL
    assert failed.beat is not None
    assert (failed.beat.outcome, failed.beat.began_at) == ("the disk is full", NOW.isoformat())
    assert status(path, clock.now + timedelta(hours=MISSED_HOURS + 0.1)).state is State.MISSED
    Heart(path, "db1", Silent(), clock).end("1 session")
    assert status(path, clock.now).state is State.ENDED


def test_a_failure_before_the_first_beat_is_recorded_but_no_other_night_is_overwritten(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "deep/heartbeat.json"
    record_failure(path, "db1", ZeroDivisionError(), clock.now)
    beat = read(path)
    assert beat is not None
    assert (status(path, clock.now).state, beat.outcome) == (State.FAILED, "ZeroDivisionError")
    Heart(path, "db1", Silent(), clock)
    other = os.getppid()
    ticks = int(Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[19])  # proc_pid_stat(5)
    running = json.loads(path.read_text()) | {"process_id": other, "start_ticks": ticks}
    path.write_text(json.dumps(running))
    record_failure(path, "db1", ZeroDivisionError(), clock.now)
    assert json.loads(path.read_text()) == running


def test_a_night_whose_heartbeat_cannot_be_written_goes_on_and_beats_again_later(
    tmp_path: Path, clock: Clock
) -> None:
    obstacle, shown = tmp_path / "file", Silent()
    obstacle.write_text("")
    path = obstacle / "heartbeat.json"
    heart = Heart(path, "db1", shown, clock)
    heart.note("nobody can read of it")
    assert shown.notes == ["nobody can read of it"]
    assert status(path, clock.now).state is State.NEVER
    assert obstacle.read_text() == ""
    obstacle.unlink()
    heart.end("went well")
    ended = status(path, clock.now)
    assert ended.state is State.ENDED
    assert ended.beat is not None
    assert ended.beat.outcome == "went well"


@pytest.mark.parametrize(
    "change",
    [
        {"began_at": 5},
        {"beat_at": "yesterday"},
        {"beat_at": "2026-01-01T00:00:00"},
        {"ended_at": "9999-12-31T23:59:59-14:00"},
        {"done": "much"},
        {"done": -1},
        {"total": 1e300},
        {"process_id": "me"},
        {"what": None},
        {"ended_at": []},
        {"failed": "no"},
        {"notes": "one"},
        {"notes": [5]},
    ],
)
def test_a_heartbeat_of_another_shape_is_none(
    tmp_path: Path, clock: Clock, change: dict[str, object]
) -> None:
    path = tmp_path / "heartbeat.json"
    Heart(path, "here", Silent(), clock)
    assert status(path, clock.now).state is State.RUNNING
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert status(path, clock.now).state is State.NEVER


def test_a_heartbeat_that_is_no_object(tmp_path: Path) -> None:
    for text in ("[]", "5", "[" * 5000, "\xff"):
        (tmp_path / "heartbeat.json").write_text(text, encoding="latin-1")
        assert status(tmp_path / "heartbeat.json", NOW).state is State.NEVER


def test_an_activity_that_has_hardly_begun_has_no_end_yet(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "heartbeat.json"
    heart = Heart(path, "here", Silent(), clock)
    clock.pass_by(minutes=5)
    heart.change(what="compile", done=1e-12, total=1e12)
    beat = read(path)
    assert beat is not None
    assert beat.ends_at is None


def test_notes_on_the_machine_stay_over_the_next_nights_until_a_report_says_otherwise(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "heartbeat.json"
    record_report(path, ["nobody has measured yet"])
    assert not path.exists()
    Heart(path, "db1", Silent(), clock).end("1 session")
    record_report(path, ["the noise is 1.8 times what it was"])
    ended = status(path, clock.now)
    assert ended.state is State.ENDED
    assert list(state_lines(ended, clock.now))[-1] == "machine: the noise is 1.8 times what it was"
    Heart(path, "db1", Silent(), clock)
    running = status(path, clock.now)
    assert running.state is State.RUNNING
    assert list(state_lines(running, clock.now))[-1] == "machine: the noise is 1.8 times what it was"
    Heart(path, "db2", Silent(), clock)
    assert "machine:" not in "\n".join(state_lines(status(path, clock.now), clock.now))
