"""A history is read where nothing can be written: without rights, on a read-only mount, on a full disk."""

import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from build.home import ROOT
from history.backups.backup import back_up
from history.errors import HistoryError
from history.open import open_reader, open_store
from history.store.sqlite.read_only import UnlockedDatabase, connect_readonly, readonly_connection
from tests.history.handmade import record_steps, session_start
from tests.history.released.histories import RELEASED

NOBODY = 65534
OLD, NEW = "postgres@17.11", "postgres@18.6"
RATES = {"insert": {OLD: [100.0, 101.0, 99.0], NEW: [90.0, 91.0, 89.0]}}

OLDER_SESSIONS = [
    *(f"night-{day}" for day in range(1, 7)),
    "under-way",
    "calibration",
    "searching",
    "confirming",
]

READ = """
import sys
from history.open import open_reader
from pathlib import Path
with open_reader(Path(sys.argv[1])) as reader:
    with reader.database.snapshot() as snapshot, snapshot.reading() as connection:
        print(*connection.exec_driver_sql("SELECT uid FROM sessions ORDER BY id").scalars())
"""

COMMANDS = (
    ("compare.py", OLD, NEW),
    ("-m", "runners", "history", "show"),
    ("-m", "runners", "report", "--out", "{site}"),
)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history with one session, which nobody has open."""
    path = tmp_path / "home" / "history.db"
    with open_store(path) as store:
        record_steps(store, session_start("first"), RATES)
    return path


def python(
    words: tuple[str, ...], home: Path, *, may_override: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a program of ours, for which rights of files hold if it `may_override` nothing, as root does."""
    powers = "dac_override", "dac_read_search", "chown", "fowner"
    dropped = (
        [] if may_override else ["setpriv", f"--bounding-set={','.join(f'-{power}' for power in powers)}"]
    )
    return subprocess.run(
        [*dropped, sys.executable, "-B", *words],
        cwd=ROOT,
        env=os.environ | {"TIDEMARK_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def read_by_other(path: Path) -> list[str]:
    """The sessions that a user sees who may not write; nothing but the locks of readers may change."""
    writable = [path.parent, *path.parent.iterdir()]
    before = {file: (file.stat().st_mode, file.is_file() and file.read_bytes()) for file in writable}
    for file in writable:
        file.chmod(0o555 if file.is_dir() else 0o444)
    try:
        done = python(("-c", READ, str(path)), path.parent, may_override=False)
        assert done.returncode == 0, done.stderr
        kept = {file: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}
        expected = {file: content for file, (_, content) in before.items() if file in kept}
        assert kept == expected
        return done.stdout.split()
    finally:
        for file, (mode, _) in before.items():
            with suppress(FileNotFoundError):
                file.chmod(mode)


def closed(history: Path) -> Path:
    return history


def crashed(history: Path, *, locks: bool = False) -> Path:
    """What a writer leaves that is killed: its last session is only in the log."""
    copy = history.with_name("crashed.db")
    with open_store(history) as store:
        record_steps(store, session_start("second"), RATES)
        for ending in ("", "-wal", *(["-shm"] if locks else [])):
            shutil.copy(history.with_name(history.name + ending), copy.with_name(copy.name + ending))
    return copy


def with_an_empty_log(history: Path) -> Path:
    history.with_name(history.name + "-wal").touch()
    return history


def backup(history: Path) -> Path:
    back_up(history, history.with_name("backup.db"))
    return history.with_name("backup.db")


def older(history: Path) -> Path:
    return RELEASED[6].write(history.with_name("older.db"))


def with_a_hot_journal(history: Path) -> Path:
    """What SQLite leaves where it is killed in a transaction, in a file without a write-ahead log."""
    path, copy = backup(history), history.with_name("hot.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE sessions SET uid = 'never committed'")
        connection.execute("CREATE TABLE large (x)")
        connection.executemany("INSERT INTO large VALUES (?)", [("x" * 1000,)] * 1000)
        for ending in ("", "-journal"):
            shutil.copy(path.with_name(path.name + ending), copy.with_name(copy.name + ending))
        connection.execute("ROLLBACK")
    return copy


@pytest.mark.deep("processes that are killed while they write")
@pytest.mark.parametrize(
    ("make", "sessions"),
    [
        (closed, ["first"]),
        (with_an_empty_log, ["first"]),
        (crashed, ["first", "second"]),
        (lambda history: crashed(history, locks=True), ["first", "second"]),
        (backup, ["first"]),
        (with_a_hot_journal, ["first"]),
        (
            older,
            [*(f"night-{day}" for day in range(1, 7)), "under-way", "calibration", "searching", "confirming"],
        ),
    ],
    ids=["closed", "empty log", "log", "log and locks", "backup", "hot journal", "older schema"],
)
def test_without_write_access(history: Path, make: Callable[[Path], Path], sessions: list[str]) -> None:
    assert read_by_other(make(history)) == sessions


@pytest.mark.deep("processes that are killed while they write")
def test_without_write_access_beside_a_writer(history: Path) -> None:
    with open_store(history) as store:
        record_steps(store, session_start("second"), RATES)
        assert read_by_other(history) == ["first", "second"]
        record_steps(store, session_start("third"), RATES)
    assert read_by_other(history) == ["first", "second", "third"]


@pytest.mark.deep("processes that are killed while they write")
def test_the_owner_of_a_history_is_not_locked_out_by_a_reader(history: Path) -> None:
    """A folder in which others may make files, as with group rights: theirs would be in the owner's way."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(history, NOBODY, NOBODY)
    history.parent.chmod(0o777)
    done = python(("-c", READ, str(history)), history.parent, may_override=False)
    assert (done.returncode, done.stdout.split()) == (0, ["first"]), done.stderr
    assert [file.name for file in history.parent.iterdir()] == ["history.db"]


def mounted(folder: Path, *options: str) -> None:
    done = subprocess.run(["mount", *options, str(folder)], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk."""
    (tmp_path / "disk").mkdir()
    mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs")
    try:
        yield tmp_path / "disk"
    finally:
        subprocess.run(["umount", "-l", str(tmp_path / "disk")], check=True)


def rights(disk: Path) -> None:
    for file in (*disk.iterdir(), disk):
        file.chmod(0o555 if file.is_dir() else 0o444)


def read_only(disk: Path) -> None:
    mounted(disk, "-o", "remount,ro")


def full(disk: Path) -> None:
    with (disk / "filling").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))


@pytest.mark.deep("processes that are killed while they write")
@pytest.mark.parametrize(
    ("make", "prevent"),
    [(closed, rights), (closed, read_only), (closed, full), (crashed, read_only), (older, full)],
)
def test_commands_that_read_where_nothing_can_be_written(
    history: Path, disk: Path, tmp_path: Path, make: Callable[[Path], Path], prevent: Callable[[Path], None]
) -> None:
    made = make(history)
    for ending in ("", "-wal"):
        if (file := made.with_name(made.name + ending)).exists():
            shutil.copy(file, disk / f"history.db{ending}")
    prevent(disk)
    site = tmp_path / "site"
    versions = ("postgres@17.11", "postgres@git:c0ffee123454") if make is older else (OLD, NEW)
    for command in COMMANDS:
        words = tuple(word.format(site=site) for word in command)
        words = (*words[:1], *versions) if words[0] == "compare.py" else words
        done = python(words, disk, may_override=prevent is not rights)
        assert "tidemark" not in done.stderr, command
        assert "Traceback" not in done.stderr, command
        assert done.stdout, command


def test_a_history_that_is_written_while_it_is_read_without_locks(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with closing(connect_readonly(history)) as database:
        assert isinstance(database, UnlockedDatabase)
        with database.reading() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM sessions").scalar() == 1
        with (
            pytest.raises(HistoryError, match="written to while") as refused,
            database.reading(),
            open_store(history) as store,
        ):
            record_steps(store, session_start("second"), RATES)
        assert refused.value.hint == "try again"
    with (
        pytest.raises(HistoryError, match="written to while"),
        readonly_connection(history),
        open_store(history) as store,
    ):
        record_steps(store, session_start("third"), RATES)


def test_a_copy_in_memory_is_read_in_several_transactions_and_processes(history: Path) -> None:
    """As the report does: readings are nested, and pages are rendered by processes that were forked."""
    with open_reader(older(history)) as reader, reader.database.snapshot() as snapshot:
        with snapshot.reading() as connection, reader.database.reading() as other:
            query = "SELECT count(*) FROM sessions"
            assert connection.exec_driver_sql(query).scalar() == other.exec_driver_sql(query).scalar() == 10
        child = os.fork()
        if child == 0:
            snapshot.forget_connections()
            with snapshot.reading() as connection:
                os._exit(connection.exec_driver_sql(query).scalar() != 10)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("target", ["sqlite:///{folder}/none.db", "{folder}/none.db"])
def test_reading_creates_no_history(tmp_path: Path, target: str) -> None:
    with pytest.raises(HistoryError, match="no such history"):
        open_reader(target.format(folder=tmp_path))
    assert list(tmp_path.iterdir()) == []


def compressed(path: Path) -> Path:
    target = path.with_name(f"{path.name}.gz")
    target.write_bytes(gzip.compress(path.read_bytes()))
    return target


@pytest.mark.deep("processes that are killed while they write")
def test_a_compressed_history_is_read_and_never_written(history: Path, tmp_path: Path) -> None:
    target = compressed(history)
    before = target.read_bytes()
    for words in COMMANDS[1:]:
        site = str(tmp_path / "site")
        shown = python((*(word.format(site=site) for word in words), "--history", str(target)), tmp_path)
        assert not shown.returncode, shown.stderr
    with pytest.raises(HistoryError, match="a compressed history can only be read"):
        open_store(target)
    assert target.read_bytes() == before


@pytest.mark.parametrize("damage", [lambda content: content[:-20], lambda _: gzip.compress(b"no database")])
def test_a_compressed_history_that_is_damaged_is_refused(
    history: Path, damage: Callable[[bytes], bytes]
) -> None:
    target = compressed(history)
    target.write_bytes(damage(target.read_bytes()))
    with pytest.raises(HistoryError, match=r"damaged|not a SQLite database"):
        open_reader(target)


def test_a_compressed_history_of_an_older_schema_is_read(tmp_path: Path) -> None:
    target = compressed(RELEASED[6].write(tmp_path / "older.db"))
    with open_reader(target) as reader, reader.database.reading() as connection:
        assert (
            connection.exec_driver_sql("SELECT uid FROM sessions ORDER BY id").scalars().all()
            == OLDER_SESSIONS
        )
