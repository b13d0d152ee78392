"""Where the history of a test lies: in a SQLite file, and on a Postgres server that Tidemark compiled."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from build.finished_build import Build
from history.open import open_store
from history.store.writer import Store
from suites.keys.durability import Durability
from suites.postgres.configuration import NAME, PORT
from suites.postgres.server import PostgresServer
from suites.sizing import Sizes, equal_tables
from tests.history.handmade import NIGHT
from tests.new_servers.data_directories import create

Target = Path | str
"""What `open_store` takes: a path, or a URL."""


@pytest.fixture(scope="session")
def server_url(
    server_folders: Callable[[], AbstractContextManager[Path]], postgres_18: Build
) -> Iterator[str]:
    """The URL of a running server's database."""
    small = Sizes(1, equal_tables(1, 1, 1), 128 * 1024**2, 1024**3, 1, 1)
    with server_folders() as folder:
        server = PostgresServer(postgres_18, small, Durability.RELAXED, folder / "1")
        try:
            create(server, small)
            server.start()
            yield f"postgresql+psycopg://{NAME}@/{NAME}?host={server.folder}&port={PORT}"
        finally:
            server.destroy()


def emptied(url: str) -> str:
    """The URL of a database, which holds nothing any more."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    engine.dispose()
    return url


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """A place for a history that holds nothing yet: a SQLite file.

    Statements are the same in both stores: that they are is tried by modules that import
    tests.history.both_stores.target.
    """
    return tmp_path / "history.db"


@pytest.fixture
def store(target: Target) -> Iterator[Store]:
    """An empty history in which it is always NIGHT."""
    with open_store(target, clock=lambda: NIGHT) as store:
        yield store


def rows(store: Store, query: str) -> list[tuple[Any, ...]]:
    """What a query finds."""
    with store.database.reading() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]
