"""A backup is whole, is of one moment, is taken while others write, and writes over nothing but backups."""

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from build.home import ROOT
from history.backups.backup import back_up, is_backup
from history.errors import HistoryError
from history.open import open_store
from history.store.records import SessionStatus
from history.store.sqlite.soundness import CHECKED_BYTES
from history.transfer.row_source import TransferError
from runners.cli import main
from tests.history.generated import VERSIONS, contents, record
from tests.history.handmade import session_start
from tests.history.store.test_durability import assert_whole, run_ids, start_writer
from tests.history.transfer.test_merging import NIGHT_1, NIGHT_2, execute


@pytest.fixture
def history(tmp_path: Path) -> Path:
    record(tmp_path / "a.db", [NIGHT_1, NIGHT_2], change=True)
    return tmp_path / "a.db"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith("a.db")}


def test_a_backup_is_one_file_that_holds_everything(history: Path, tmp_path: Path) -> None:
    assert back_up(history, tmp_path / "to" / "b.db") == ()
    assert files(tmp_path / "to") == {"b.db"}
    restored = shutil.copy(tmp_path / "to/b.db", tmp_path / "restored.db")
    assert contents(restored) == contents(history)


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_a_backup_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    child = start_writer(path, "night", 1_000_000)
    try:
        assert child.stdout is not None
        seen = 0
        for number in range(5):
            # Each copy is of a later moment: what the one before held has been read, and one more.
            acknowledged = next(line for line in map(int, child.stdout) if line > seen)
            copy = tmp_path / f"{number}.db"
            back_up(path, copy)
            assert_whole(copy, set(range(1, acknowledged + 1)))
            assert len(run_ids(copy)) > seen
            seen = len(run_ids(copy))
        assert child.poll() is None, "the writer was not held up"
    finally:
        child.kill()
        child.communicate()
    with open_store(tmp_path / "4.db") as store:
        session = store.latest_session([])
        assert session is not None
        assert session.status is SessionStatus.RUNNING
        store.start_session(session_start("next"))
        ended = store.latest_session([], uid="night")
        assert ended is not None
        assert ended.status is SessionStatus.INTERRUPTED


def test_an_earlier_backup_is_replaced(history: Path, tmp_path: Path) -> None:
    back_up(history, tmp_path / "b.db")
    with open_store(history) as store:
        store.start_session(session_start("later"))
    back_up(history, tmp_path / "b.db")
    with open_store(tmp_path / "b.db") as store:
        assert store.latest_session([], uid="later")


def test_nothing_else_is_written_over(history: Path, tmp_path: Path) -> None:
    (tmp_path / "diary").write_text("Dear diary")
    record(tmp_path / "other.db", [NIGHT_1])
    execute(tmp_path / "foreign.db", "CREATE TABLE pictures (id INTEGER)")
    (tmp_path / "folder").mkdir()
    for name in ("diary", "other.db", "foreign.db", "folder", "a.db"):
        before = (tmp_path / name).read_bytes() if (tmp_path / name).is_file() else b""
        with pytest.raises(TransferError, match="something already that is no backup"):
            back_up(history, tmp_path / name)
        assert not before or (tmp_path / name).read_bytes() == before


def test_a_backup_that_was_restored_and_worked_with_is_a_history(history: Path, tmp_path: Path) -> None:
    back_up(history, tmp_path / "b.db")
    assert is_backup(tmp_path / "b.db")
    open_store(tmp_path / "b.db").close()
    assert not is_backup(tmp_path / "b.db")
    with pytest.raises(TransferError, match="no backup"):
        back_up(history, tmp_path / "b.db")


@pytest.mark.parametrize("make", ["text", "foreign", "newer", "missing"])
def test_only_a_history_is_backed_up(tmp_path: Path, make: str) -> None:
    path = tmp_path / "a.db"
    if make == "text":
        path.write_text("Dear diary " * 100)
    elif make == "foreign":
        execute(path, "CREATE TABLE pictures (id INTEGER)")
    elif make == "newer":
        open_store(path).close()
        execute(path, "INSERT INTO schema_migrations VALUES (999, 'future', '2030-01-01T00:00:00.000Z')")
    with pytest.raises(HistoryError):
        back_up(path, tmp_path / "b.db")
    assert files(tmp_path) == set()


def test_a_damaged_history_gives_no_backup(history: Path, tmp_path: Path) -> None:
    execute(history, "PRAGMA journal_mode = DELETE")
    whole = bytearray(history.read_bytes())
    whole[3 * 4096 : 6 * 4096] = os.urandom(3 * 4096)
    history.write_bytes(whole)
    with pytest.raises(HistoryError, match=r"damaged|malformed|could not be copied"):
        back_up(history, tmp_path / "b.db")
    assert files(tmp_path) == set()


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_a_full_disk_keeps_the_earlier_backup(history: Path, tmp_path: Path) -> None:
    back_up(history, tmp_path / "b.db")
    before = (tmp_path / "b.db").read_bytes()
    program = "from pathlib import Path; from history.backups.backup import back_up; import sys\n"
    program += "back_up(Path(sys.argv[1]), Path(sys.argv[2]))"
    limit = 64 * 1024  # bytes that a file may have: as a full disk, an error when it is written

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    words = [sys.executable, "-c", program, str(history), str(tmp_path / "b.db")]
    child = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, preexec_fn=limited, check=False)
    assert child.returncode == 1
    assert "HistoryError: it could not be copied" in child.stderr
    assert (tmp_path / "b.db").read_bytes() == before
    assert files(tmp_path) == {"b.db"}


def test_the_mark_is_where_sqlite_has_it(history: Path, tmp_path: Path) -> None:
    back_up(history, tmp_path / "b.db")
    with closing(sqlite3.connect(tmp_path / "b.db")) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (0x54696465,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


# --- damages that SQLite's own quick check does not see


def overwrite(path: Path, old: bytes, new: bytes) -> None:
    """Change bytes of the database file, every time they stand there, as a failing disk may."""
    execute(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    assert old in whole
    assert len(old) == len(new)
    path.write_bytes(whole.replace(old, new))


def rewrite(path: Path, *statements: str) -> None:
    """Write what Tidemark would not, without foreign keys and the rules of the schema."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement)


def first_of(path: Path, old: bytes, new: bytes) -> None:
    """Change the first occurrence alone, so that an index and its table differ."""
    execute(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    assert old in whole
    path.write_bytes(whole.replace(old, new, 1))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "an index that differs from its table": lambda path: first_of(path, b"night-2", b"night-X"),
    "a table that is gone": lambda path: rewrite(path, "DROP TABLE measurements"),
    "a table that is gone and empty": lambda path: rewrite(path, "DROP TABLE gaps"),
    "rows that are gone": lambda path: rewrite(path, "DELETE FROM measurements"),
    "one run's rows that are gone": lambda path: rewrite(path, "DELETE FROM measurements WHERE run_id = 5"),
    "a run that is gone": lambda path: rewrite(path, "DELETE FROM runs WHERE id = 1"),
    "a session that is gone": lambda path: rewrite(path, "DELETE FROM sessions WHERE id = 1"),
    "text that is no UTF-8": lambda path: overwrite(path, b"EPYC 9454P", b"EPYC \xff454P"),
    "text that is no JSON": lambda path: overwrite(path, b'{"governor":', b'}"governor":'),
    "a time that is none": lambda path: rewrite(path, "UPDATE runs SET ended_at = 'soon' WHERE id = 3"),
    "a version that is none": lambda path: rewrite(path, "UPDATE runs SET version = '18' WHERE id = 3"),
    "a number that is infinite": lambda path: rewrite(
        path, "UPDATE samples SET qps = 9e999 WHERE second = 2"
    ),
    "a profile that is cut": lambda path: rewrite(path, "UPDATE profiles SET stacks = substr(stacks, 1, 20)"),
    "a rule that is broken": lambda path: rewrite(path, "UPDATE runs SET repetition = 0 WHERE id = 1"),
}


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_keeps_the_earlier_backup(history: Path, tmp_path: Path, damage: str) -> None:
    back_up(history, tmp_path / "b.db")
    before = (tmp_path / "b.db").read_bytes()
    DAMAGES[damage](history)
    with pytest.raises(HistoryError) as refused:
        back_up(history, tmp_path / "b.db")
    assert refused.value.hint
    assert (tmp_path / "b.db").read_bytes() == before
    assert files(tmp_path) == {"b.db"}


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
def test_a_history_that_lost_sessions_keeps_the_earlier_backup(history: Path, tmp_path: Path) -> None:
    """As one that was moved away, so that the next night began a new one."""
    back_up(history, tmp_path / "b.db")
    record(tmp_path / "new.db", [NIGHT_2])
    with pytest.raises(TransferError, match="lacks 1 session of this earlier backup, such as night-1"):
        back_up(tmp_path / "new.db", tmp_path / "b.db")
    assert contents(tmp_path / "b.db") == contents(history)


def test_sessions_that_run_are_in_a_backup_and_may_have_no_measurements_yet(
    history: Path, tmp_path: Path
) -> None:
    with open_store(history) as store:
        store.start_session(session_start("under way"))
    back_up(history, tmp_path / "b.db")
    with open_store(tmp_path / "b.db") as store:
        assert store.latest_session([], uid="under way")


READERS: dict[str, list[str]] = {
    "judge": ["history", "judge"],
    "change points": ["history", "change-points"],
    "report": ["report", "--out", "site"],
    "export": ["history", "export", "all.ndjson"],
    "compare": ["compare", *VERSIONS[:2], "--session", "night-1"],
}


@pytest.mark.deep("a backup or restore that is killed at any moment loses nothing")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("damage", ["a run that is gone", "a session that is gone", "a machine that is gone"])
@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
def test_no_verdict_on_what_is_no_history(
    history: Path,
    tmp_path: Path,
    damage: str,
    reader: str,
    is_large: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where a history is too large to be checked by whoever opens it."""
    monkeypatch.chdir(tmp_path)
    if is_large:
        execute(history, f"CREATE TABLE ballast AS SELECT zeroblob({CHECKED_BYTES}) AS bytes")
    if damage in DAMAGES:
        DAMAGES[damage](history)
    else:
        rewrite(history, "DELETE FROM machines")
    assert main([*READERS[reader], "--history", str(history)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    if (reader, damage, is_large) != ("compare", "a session that is gone", True):  # that finds no session
        assert "the history is damaged: a row" in said.err
        assert "./tidemark history restore FILE" in said.err


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_gives_no_backup_is_not_judged(
    history: Path, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    DAMAGES[damage](history)
    assert main(["history", "judge", "--history", str(history)]) == 2
    assert capsys.readouterr().out == ""
