"""Schemas: reached step by step, whole or not at all; whatever is not ours stays as it is."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from history.errors import HistoryError
from history.open import open_reader, open_store
from history.store.database import connect
from history.store.migrate import PLACEHOLDERS, load, migrate, schema_number, split_statements
from history.store.reader import Reader
from history.store.schema_status import MIGRATIONS

NEWEST = len(load("sqlite"))


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def tables(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    connection.close()
    return names


def numbered(folder: Path, *scripts: str) -> Path:
    """A folder with the real migrations and these after them."""
    folder.mkdir(exist_ok=True)
    real = sorted(MIGRATIONS.glob("*.sql"))
    for migration in real:
        (folder / migration.name).write_text(migration.read_text(encoding="utf-8"))
    for number, script in enumerate(scripts, start=1 + len(real)):
        (folder / f"{number:04}_more.sql").write_text(script)
    return folder


def migrate_path(path: Path, folder: Path) -> None:
    database = connect(path)
    try:
        migrate(database, folder)
    finally:
        database.close()


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "history.db"
    open_store(path).close()
    before = path.read_bytes()
    open_store(path).close()
    assert path.read_bytes() == before


def test_a_later_migration_reaches_an_existing_history(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    open_store(path).close()
    migrate_path(path, numbered(tmp_path / "m", "CREATE TABLE later (id $id, n $integer) $strict;\n"))
    assert "later" in tables(path)
    execute(path, "INSERT INTO later (n) VALUES (1)")


def test_a_migration_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    open_store(path).close()
    before = tables(path)
    broken = "CREATE TABLE half (n $integer);\nDROP VIEW relative_qps;\nCREATE TABLE half (n $integer);\n"
    with pytest.raises(HistoryError, match="already exists"):
        migrate_path(path, numbered(tmp_path / "m", broken))
    assert tables(path) == before
    execute(path, "SELECT * FROM relative_qps")
    database = connect(path)
    assert schema_number(database, supported=NEWEST + 1) == NEWEST
    database.close()


def test_earlier_migrations_stay_when_a_later_one_fails(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    folder = numbered(
        tmp_path / "m", "CREATE TABLE good (n $integer);\n", "CREATE TABLE good (n $integer);\n"
    )
    with pytest.raises(HistoryError):
        migrate_path(path, folder)
    assert "good" in tables(path)


def make_newer(path: Path) -> None:
    open_store(path).close()
    execute(path, "INSERT INTO schema_migrations VALUES (999, 'future', '2030-01-01T00:00:00.000Z')")


def make_foreign(path: Path) -> None:
    execute(path, "CREATE TABLE pictures (id INTEGER)", "INSERT INTO pictures VALUES (1)")


def make_foreign_with_migrations(path: Path) -> None:
    execute(path, "CREATE TABLE schema_migrations (version TEXT)", "CREATE TABLE users (id INTEGER)")


def make_foreign_with_open_log(path: Path) -> None:
    """As a program that still runs leaves it: committed rows in the write-ahead log only."""
    live = sqlite3.connect(path.with_name("live.db"))
    live.execute("PRAGMA journal_mode = WAL")
    live.execute("CREATE TABLE pictures (id INTEGER)")
    live.commit()
    for ending in ("", "-wal"):
        path.with_name(path.name + ending).write_bytes(path.with_name("live.db" + ending).read_bytes())
    live.close()


def make_text(path: Path) -> None:
    path.write_text("Dear diary, " * 1000)


def make_truncated(path: Path) -> None:
    open_store(path).close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_stub(path: Path) -> None:
    open_store(path).close()
    path.write_bytes(path.read_bytes()[:50])


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (make_newer, "newer Tidemark"),
        (make_foreign, "not Tidemark's"),
        (make_foreign_with_migrations, "not Tidemark's"),
        (make_foreign_with_open_log, "not Tidemark's"),
        (make_text, "not a SQLite database"),
        (make_truncated, "damaged"),
        (make_stub, "damaged"),
    ],
)
@pytest.mark.parametrize("opened_by", [open_store, open_reader])
def test_refused_and_untouched(
    tmp_path: Path, opened_by: Callable[[Path], Reader], make: Callable[[Path], None], what: str
) -> None:
    path = tmp_path / "history.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(HistoryError, match=what) as refusal:
        opened_by(path)
    assert path.read_bytes() == before
    assert str(path) in refusal.value.where
    assert refusal.value.hint


def test_a_folder_cannot_be_a_history(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="cannot be opened"):
        open_store(tmp_path)


@pytest.mark.parametrize(
    ("address", "what"), [("://", "not a database URL"), ("oracle://host/name", "cannot be stored in oracle")]
)
def test_nonsense_is_no_address(address: str, what: str) -> None:
    with pytest.raises(HistoryError, match=what):
        open_store(address)


def test_an_empty_file_becomes_a_history(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.touch()
    open_store(path).close()
    assert "runs" in tables(path)


@pytest.mark.parametrize("dialect", PLACEHOLDERS)
def test_migrations_load_in_every_dialect(dialect: str) -> None:
    for migration in load(dialect):
        assert migration.statements
        assert "$" not in "".join(migration.statements)
        assert "%" not in "".join(migration.statements)  # a placeholder of psycopg, in comments too


def test_a_gap_in_the_numbers_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "0002_early.sql").write_text("CREATE TABLE x (n $integer);\n")
    with pytest.raises(ValueError, match="must be named 0001"):
        load("sqlite", tmp_path)


def test_statements_end_where_sql_says() -> None:
    script = "-- a; b\nCREATE TABLE x (\n  a TEXT DEFAULT ';'\n);\n\nDROP TABLE x;\n-- the end\n"
    assert split_statements(script) == (
        "-- a; b\nCREATE TABLE x (\n  a TEXT DEFAULT ';'\n);",
        "DROP TABLE x;",
    )
    with pytest.raises(ValueError, match="not terminated"):
        split_statements("DROP TABLE x")


# --- 0002: dropped rounds and calibrations

INSERT_CALIBRATION = "INSERT INTO calibrations VALUES ({session}, 'insert', '{metric}', {sd}, {df}, 10)"
INSERT_DROPPED = """INSERT INTO dropped_rounds (session_id, step, repetition, dropped_at, reason, measured)
                    VALUES ({session}, 'insert', {repetition}, '2026', 'steal', '{{}}')"""


def history_of_the_first_schema(path: Path) -> int:
    """As it was before there were rounds, with one session; returns its id."""
    only = path.with_name("only-the-first")
    only.mkdir()
    (only / "0001_history.sql").write_bytes((MIGRATIONS / "0001_history.sql").read_bytes())
    migrate_path(path, only)
    assert not {"dropped_rounds", "calibrations"} & tables(path)
    execute(
        path,
        "INSERT INTO machines VALUES (1, 'f00d', 'db1', 'cpu', 2, 1, 'linux', 'debian', '{}')",
        """INSERT INTO sessions VALUES (7, 'night-1', 1, 'write-heavy', 'short', 'ab', 1, 'relaxed', 3,
           '2026-03-01T02:00:00.000Z', '2026-03-01T03:00:00.000Z', 'finished', '', '{}', '{}', 1, 1, 'b')""",
    )
    return 7


def test_a_history_from_before_rounds_keeps_its_sessions(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    history_of_the_first_schema(path)
    with open_store(path) as store:
        session = store.latest_session([])
        assert session is not None
        assert (session.uid, store.dropped(session.id), store.noise(session, "qps")) == ("night-1", (), {})


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (INSERT_CALIBRATION, {"sd": -0.1}),
        (INSERT_CALIBRATION, {"df": 0}),
        (INSERT_CALIBRATION, {"session": 8}),
        (INSERT_CALIBRATION, {"metric": "furlongs"}),
        (INSERT_DROPPED, {"repetition": 0}),
        (INSERT_DROPPED, {"session": 8}),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, statement: str, values: dict[str, object]) -> None:
    path = tmp_path / "history.db"
    session = history_of_the_first_schema(path)
    open_store(path).close()
    good = {"session": session, "metric": "qps", "sd": 0.01, "df": 9, "repetition": 1}
    with pytest.raises(sqlite3.IntegrityError):
        execute(path, "PRAGMA foreign_keys = ON", statement.format(**{**good, **values}))
    execute(path, "PRAGMA foreign_keys = ON", statement.format(**good))
