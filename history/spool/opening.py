"""Opening a history to record into it: on a server, with the journal of the box before it."""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select

from build.home import Home, HomeError, locate_for_writing
from history.errors import HistoryError
from history.open import derive_ended, is_server, open_store, readable_database
from history.spool.journal import Journal, journal_path, open_journal_store
from history.spool.spooled_store import SpooledStore
from history.store.database import connect
from history.store.reader import Reader
from history.store.schema import sessions
from history.store.sqlite.read_only import connect_readonly
from history.store.sqlite.soundness import CHECKED_BYTES
from history.store.writer import Store
from history.timestamps import now


def open_recorded(
    target: Path | str,
    home: Home,
    note: Callable[[str], None] = lambda _: None,
    clock: Callable[[], datetime] = now,
    backups: Path | None = None,
) -> Store:
    """Open the history at a path or URL for a command that records, and deliver what waits on this box.

    A server that is away raises nothing: what is recorded waits on the box, and `Store.away` says why.
    `backups` is a folder with copies of this history: the one with most sessions stands in for it. Raises
    HistoryError when the journal cannot be opened, and as `open_store` for a file.
    """
    if not is_server(target):
        return open_store(target, clock)
    url = str(target)
    database = connect(url)
    try:
        journal = open_journal_store(journal_path(home.spool, url), url, clock)
    except BaseException:
        database.close()
        raise
    backup = _newest_copy(backups) if backups is not None else None
    store = SpooledStore(database, Journal(journal), clock, derive_ended, backup, note)
    store.deliver()
    return store


def open_delivered(target: Path | str, home: Home, most_bytes: int | None = CHECKED_BYTES) -> Reader:
    """Open a history to look at it, after what waits for it on this box was delivered.

    Nothing else is written. Checks and raises as `readable_database`. What cannot be delivered goes on
    waiting; `./tidemark status` shows it.
    """
    database = readable_database(
        target, most_bytes
    )  # an older history is not brought up to date by who looks at it
    if is_server(target) and _may_write(journal_path(home.spool, str(target))):
        database.close()
        return open_to_judge(target, home)
    return Reader(database)


def open_to_judge(target: Path | str, home: Home) -> Store:
    """Open a history to write what follows from its nights, after what waits on this box was delivered.

    Raises as `open_store`.
    """
    if is_server(target) and _may_write(journal_path(home.spool, str(target))):
        store = open_recorded(target, home)
        if not store.away:
            return store
        why = store.away
        store.close()
        raise HistoryError(why)
    return open_store(target)


def _newest_copy(folder: Path) -> Path | None:
    """Return the copy with most sessions, as none is ever deleted: the clock that dated it may be wrong."""
    held = {}
    for path in sorted(folder.glob("*.db")):
        with (
            suppress(HistoryError, OSError),
            closing(connect_readonly(path)) as database,
            database.reading() as connection,
        ):
            held[path] = connection.execute(select(func.count()).select_from(sessions)).scalar_one()
    return max(held, key=lambda path: held[path], default=None)


def _may_write(journal: Path) -> bool:
    """Whether there is a journal that this user may write to; root does not in a home of somebody else."""
    with suppress(HomeError):
        locate_for_writing()
        return journal.exists() and os.access(journal, os.W_OK)
    return False
