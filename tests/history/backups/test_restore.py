"""A history is brought back to a backup, after any crash, and nothing that is only in it is lost unsaid."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from build.home import ROOT, Home
from history.backups import restore as restoring
from history.backups.backup import back_up, is_backup, sessions_of
from history.backups.restore import RestoreError, restore
from history.errors import HistoryError
from runners.cli import main
from runners.measuring.machine_lock import BusyError, measuring_alone
from tests.history.generated import contents, record
from tests.history.transfer.test_merging import NIGHT_1, NIGHT_2, execute


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history with a night beyond its backup `monday.db`."""
    path = tmp_path / "history.db"
    record(path, [NIGHT_1])
    back_up(path, tmp_path / "monday.db")
    record(path, [NIGHT_2])
    return path


@pytest.fixture
def backup(history: Path) -> Path:
    return history.with_name("monday.db")


def is_whole(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def crashed(path: Path) -> None:
    """Leave a write-ahead log beside a history, as a process that is killed does."""
    write = "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
    write += "c.execute('UPDATE measurements SET value = value + 1'); c.commit(); os._exit(0)"
    subprocess.run([sys.executable, "-c", write, str(path)], check=True)
    assert path.with_name(f"{path.name}-wal").stat().st_size


def test_what_only_the_history_has_is_said_before_it_is_lost(history: Path, backup: Path) -> None:
    before = contents(history)
    with pytest.raises(RestoreError, match=r"lacks: 1 sessions, such as .*; \d+ finished runs") as refused:
        restore(backup, history)
    assert "--discard" in refused.value.hint
    assert contents(history) == before


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_discarded_and_brought_back(history: Path, backup: Path) -> None:
    everything = contents(history)
    restored = restore(backup, history, discard=True)
    assert contents(history) == contents(backup)
    assert restored.newer["sessions"] == 1
    assert restored.kept is not None
    assert contents(restored.kept) == everything
    assert not is_backup(history)
    assert main(["history", "merge", str(restored.kept), "--history", str(history)]) == 0
    assert sessions_of(history) == sessions_of(restored.kept)


def test_a_history_with_nothing_newer_needs_no_word(history: Path, tmp_path: Path) -> None:
    back_up(history, tmp_path / "tuesday.db")
    assert restore(tmp_path / "tuesday.db", history).newer == {}
    assert contents(history) == contents(tmp_path / "tuesday.db")


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
@pytest.mark.parametrize("is_lost", [False, True])
def test_after_a_crash(history: Path, backup: Path, is_lost: bool) -> None:
    """The log that a crash left is part of the earlier history; it never reaches the backup's pages."""
    crashed(history)
    if is_lost:
        history.unlink()
    restore(backup, history, discard=True)
    assert is_whole(history)
    assert contents(history) == contents(backup)


def test_a_backup_copied_by_hand_over_a_log_is_restored_again(history: Path, backup: Path) -> None:
    """What docs/history.md once told people to do: SQLite applies the log to the wrong file."""
    crashed(history)
    shutil.copyfile(backup, history)
    restore(backup, history, discard=True)
    assert is_whole(history)
    assert contents(history) == contents(backup)


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_a_damaged_history_is_kept_as_it_is(history: Path, backup: Path) -> None:
    damaged = b"SQLite format 3\0" + b"\xff" * 8000
    history.write_bytes(damaged)
    with pytest.raises(RestoreError, match="cannot be read"):
        restore(backup, history)
    assert history.read_bytes() == damaged
    restored = restore(backup, history, discard=True)
    assert contents(history) == contents(backup)
    assert restored.kept is not None
    assert restored.kept.read_bytes() == damaged


def test_a_damaged_backup_replaces_nothing(history: Path, backup: Path) -> None:
    content = bytearray(backup.read_bytes())
    content[4096:12288] = b"\xff" * 8192
    backup.write_bytes(content)
    before = contents(history)
    with pytest.raises(HistoryError):
        restore(backup, history, discard=True)
    assert contents(history) == before
    assert [
        path.name for path in history.parent.iterdir() if ".before-" in path.name or "restored" in path.name
    ] == []


def test_not_over_itself_nor_on_a_server(history: Path, backup: Path) -> None:
    with pytest.raises(RestoreError, match="the history itself"):
        restore(history, history)
    with pytest.raises(RestoreError, match="on a server"):
        restore(backup, "postgresql://localhost/history")


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_killed_at_any_moment_it_is_the_old_or_the_new_one(history: Path, backup: Path) -> None:
    # Long enough for a kill in the middle.
    execute(history, "CREATE TABLE ballast AS SELECT randomblob(20000000) AS bytes")
    old, new = contents(history), contents(backup)
    program = "import sys; from pathlib import Path; from history.backups.restore import restore\n"
    program += "print(flush=True); restore(Path(sys.argv[1]), Path(sys.argv[2]), discard=True)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = []
    for delay in (0.0, 0.03, 0.06, 0.1, 0.15, 0.25, 0.5):
        command = [sys.executable, "-P", "-c", program, str(backup), str(history)]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert is_whole(history)
        found.append(contents(history))
        assert found[-1] in (old, new)
    assert restore(backup, history, discard=True).sessions == 1
    assert contents(history) == new


def test_not_while_something_measures(history: Path, backup: Path, tmp_path: Path) -> None:
    holding = "from build.home import Home; from pathlib import Path; import sys\n"
    holding += "from runners.measuring.machine_lock import measuring_alone\n"
    holding += "with measuring_alone(Home(Path(sys.argv[1]))): print(flush=True); input()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-c", holding, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(BusyError), measuring_alone(Home(tmp_path)):
            pass
        assert main(["history", "restore", str(backup), "--discard", "--history", str(history)]) == 2
        holder.communicate("\n")
    assert main(["history", "restore", str(backup), "--discard", "--history", str(history)]) == 0


def kept_of(history: Path) -> list[Path]:
    return sorted(path for path in history.parent.iterdir() if ".before-" in path.name)


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
@pytest.mark.parametrize("moment", ["2026-03-01T02:00:00.500", "2026-03-01T01:00:00"])
def test_what_was_kept_is_never_replaced(
    history: Path, backup: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by a second restore in the same second, nor after the clock was set back to one."""
    times = [datetime.fromisoformat(time).replace(tzinfo=UTC) for time in ("2026-03-01T02:00:00", moment)]
    clock = iter([*times, times[0]])
    monkeypatch.setattr(restoring, "now", lambda: next(clock))
    both = contents(history)
    restore(backup, history, discard=True)
    record(history, [replace(NIGHT_2, number=3)])
    other = contents(history)
    restore(backup, history, discard=True)
    history.write_bytes(b"damaged")
    restore(backup, history, discard=True)
    damaged, *_ = (path for path in kept_of(history) if path.read_bytes() == b"damaged")
    readable = [contents(path) for path in kept_of(history) if path != damaged]
    assert len(readable) == 2
    assert both in readable
    assert other in readable


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_a_killed_restore_leaves_no_copies(history: Path, backup: Path) -> None:
    """Wherever it is killed, the next one removes what it had begun, and keeps each state once."""
    before = contents(history)
    places = 0
    while killed_at(places, backup, history):
        places += 1
        assert contents(history) in (before, contents(backup))
    assert places > 5
    assert contents(history) == contents(backup)
    # One that is killed behind its last write leaves the backup's state as a history of its own.
    assert [contents(path) for path in kept_of(history)] in (
        [before],
        [before, contents(backup)],
    )
    names = {path.name for path in {*history.parent.iterdir()} - {*kept_of(history)}}
    assert names - {"history.db-wal", "history.db-shm"} == {"history.db", "monday.db"}


FILE_EVENTS = ("open", "os.link", "os.remove", "os.rename", "sqlite3.connect")


def killed_at(place: int, backup: Path, history: Path) -> bool:
    """Whether a process that restores was ended at its access to a file with this number, from 0."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    left = iter(range(place))

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        is_ours = event in FILE_EVENTS and any("history.db" in str(word) for word in arguments)
        if is_ours and next(left, None) is None:
            os._exit(9)

    try:
        sys.addaudithook(watch)
        restore(backup, history, discard=True)
    finally:
        os._exit(0)
