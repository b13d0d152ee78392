"""A history that is migrated while others work with it: they wait, or are refused, and nothing is half."""

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path

import pytest

from history.errors import HistoryError
from history.open import open_store
from history.store import database as database_module
from history.store.database import connect
from history.store.migrate import migrate, schema_number
from history.store.schema_status import MIGRATIONS, newest
from history.store.writer import Store
from tests.history.handmade import run_record, session_start
from tests.history.store.test_postgres import store, url

__all__ = ["store", "url"]  # fixtures

pytestmark = pytest.mark.server


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The migrations of a newer program, which has one more, of two statements."""
    for path in MIGRATIONS.glob("*.sql"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"))
    script = "CREATE TABLE later (n $integer);\nALTER TABLE runs ADD COLUMN later $integer;\n"
    (tmp_path / f"{newest() + 1:04}_later.sql").write_text(script)
    return tmp_path


def migrate_url(url: str, folder: Path) -> None:
    database = connect(url)
    try:
        migrate(database, folder)
    finally:
        database.close()


def number_of(store: Store) -> int:
    return schema_number(store.database, supported=newest() + 1)


def test_a_migration_waits_for_a_writer_who_is_refused_afterwards(
    store: Store, url: str, newer: Path
) -> None:
    session = store.start_session(session_start())
    with ThreadPoolExecutor(1) as pool:
        with store.database.writing() as connection:
            connection.exec_driver_sql("UPDATE sessions SET seed = 1")
            later = pool.submit(migrate_url, url, newer)
            with pytest.raises(NotYet):
                later.result(0.3)
        later.result(30)
    assert number_of(store) == newest() + 1
    with pytest.raises(HistoryError, match=r"schema \d+ by now, and this Tidemark writes"):
        store.record_run(session, run_record())
    with store.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM runs").scalar() == 0


def test_a_migration_that_waits_too_long_for_a_reader_leaves_nothing(
    store: Store, url: str, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_TIMEOUT_MS", 300)
    with store.database.reading() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM runs").scalar()
        with pytest.raises(HistoryError, match="another process holds a lock"):
            migrate_url(url, newer)
        exists = "SELECT count(*) FROM pg_tables WHERE tablename = 'later'"
        assert connection.exec_driver_sql(exists).scalar() == 0
    assert number_of(store) == newest()
    store.start_session(session_start())
    migrate_url(url, newer)
    assert number_of(store) == newest() + 1


def test_two_that_migrate_at_once(url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        for opened in [pool.submit(open_store, url) for _ in range(4)]:
            opened.result(60).close()
    with open_store(url) as store, store.database.reading() as connection:
        applied = connection.exec_driver_sql("SELECT number FROM schema_migrations ORDER BY 1").scalars()
        assert list(applied) == list(range(1, newest() + 1))
