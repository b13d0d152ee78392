"""A history brought back to a backup of it; what it has beyond the backup is told, and kept beside it."""

import filecmp
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

from sqlalchemy import Select, select

from build.errors import shell_line
from history.backups.backup import checked_copy
from history.errors import HistoryError, database_error
from history.open import is_server, readable_database
from history.store.database import BUSY_TIMEOUT_MS, sqlite_file
from history.store.records import RunStatus
from history.store.schema import acknowledgements, bisect_events, bisects, changes, runs, sessions
from history.store.sqlite.read_only import SIDE_FILES, readonly_connection
from history.timestamps import now
from history.transfer.atomic_files import persist

_SESSIONS = "sessions"
_RECORDED: Mapping[str, Select[Any]] = {
    _SESSIONS: select(sessions.c.uid),
    "finished runs": select(sessions.c.uid, runs.c.step, runs.c.repetition, runs.c.version)
    .join_from(runs, sessions, runs.c.session_id == sessions.c.id)
    .where(runs.c.status == RunStatus.FINISHED),
    "bisects": select(bisects.c.uid),
    "events of bisects": select(bisects.c.uid, bisect_events.c.number).join_from(
        bisect_events, bisects, bisect_events.c.bisect_id == bisects.c.id
    ),
    "changes": select(changes.c.fingerprint),
    "decisions about changes": select(changes.c.fingerprint, acknowledgements.c.happened_at).join_from(
        acknowledgements, changes, acknowledgements.c.change_id == changes.c.id
    ),
}
"""What a history has that no other place has, by what identifies it in every copy."""


class RestoreError(HistoryError):
    """The history was not replaced, and is as it was."""


@dataclass(frozen=True)
class Restored:
    """A history that was replaced by a backup."""

    path: Path
    sessions: int
    """The sessions that it has now."""

    kept: Path | None
    """Where the earlier history lies; None if there was none."""

    newer: Mapping[str, int] = field(default_factory=dict)
    """What the earlier history had beyond the backup -> how many; empty if it could not be read."""


def restore(backup: Path, target: Path | str, *, discard: bool = False) -> Restored:
    """Replace the history at a path by a backup, whatever a crash left beside it.

    The earlier history is kept beside it under a name that no file has. Without `discard`, raises
    RestoreError when it has anything that the backup lacks, or cannot be read. Raises HistoryError for a
    backup that is damaged or no history, and for a history on a server. Nothing may be recording into the
    history: see to it by the lock of the machine.
    """
    if is_server(target):
        raise RestoreError(
            "a history on a server is restored by its own tools",
            where=str(target),
            hint=f"{shell_line('./tidemark', 'history', 'merge', backup)} --history URL adds what it lacks",
        )
    path = sqlite_file(target) or Path(target)  # one that was lost is no file
    if backup.exists() and path.exists() and backup.samefile(path):
        raise RestoreError("this is the history itself, and no backup of it", where=str(path))
    recorded = _recorded(backup)
    _remove_left(path, "restored|replaced")
    with checked_copy(backup, path.with_name(f".{path.name}.restored")) as copy:
        if not path.exists():
            _remove_side_files(path)
            copy.replace(path)
            return Restored(path, len(recorded[_SESSIONS]), None)
        newer = _newer(path, recorded, backup, discard)
        kept = _replace_damaged(path, copy) if newer is None else _replace(path, copy)
        counts = {what: len(identities) for what, identities in (newer or {}).items() if identities}
        return Restored(path, len(recorded[_SESSIONS]), kept, counts)


Recorded = Mapping[str, set[tuple[Any, ...]]]


def _recorded(path: Path) -> Recorded:
    # As much as can be read of a damaged history. The backup is checked once it is copied.
    with closing(readable_database(path, most_bytes=0)) as database, database.reading() as connection:
        return {what: {tuple(row) for row in connection.execute(query)} for what, query in _RECORDED.items()}


def _newer(path: Path, recorded: Recorded, backup: Path, discard: bool) -> Recorded | None:
    """Return what a history has beyond a backup; None if it cannot be read. Raises RestoreError."""
    command = shell_line("./tidemark", "history", "merge", backup)
    merge = f"{command} adds what the history lacks, and loses nothing"
    try:
        newer = {what: found - recorded[what] for what, found in _recorded(path).items()}
    except HistoryError as error:
        if discard:
            return None
        raise RestoreError(
            f"what the present history has beyond the backup is not known, for it cannot be read: {error}",
            hint="with --discard it is kept under another name, and replaced",
        ) from error
    if any(newer.values()) and not discard:
        raise RestoreError(
            f"the present history has what the backup lacks: {_shown(newer)}",
            where=str(path),
            hint=f"{merge}; with --discard the history is kept under another name, and replaced",
        )
    return newer


def _shown(newer: Recorded) -> str:
    parts = []
    for what, found in newer.items():
        if found:
            example = " ".join(str(name) for name in min(found, key=str))
            parts.append(f"{len(found)} {what}, such as {example}")
    return "; ".join(parts)


def _replace(path: Path, copy: Path) -> Path:
    """Write a copy over a history in one transaction, undone or done after a crash; return what is kept."""
    aside = path.with_name(f".{path.name}.replaced")
    try:
        with readonly_connection(path) as present, _opened(aside) as written:
            present.backup(written)
            written.execute("PRAGMA journal_mode = DELETE")
        # A restore that was killed below has kept the same already.
        same = (file for file in _kept_before(path) if filecmp.cmp(aside, file, shallow=False))
        kept = next(same, None) or _free_name(path)
        aside.replace(kept)
        persist(path.parent)
    finally:
        _remove_left(path, "replaced")
    with _opened(path) as history, _opened(copy) as source:
        # In a write-ahead log all pages are one transaction of SQLite, which waits for writers. A history
        # without a log gets one first.
        history.execute("PRAGMA journal_mode = WAL")
        source.backup(history)
        history.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return kept


def _replace_damaged(path: Path, copy: Path) -> Path:
    """Put a copy in the place of a file that SQLite cannot read; its log goes with the kept one, returned."""
    kept = next((file for file in _kept_before(path) if file.samefile(path)), None)
    if kept is None:  # else one that was killed has linked it already
        kept = _free_name(path)
        # The history last: with it all of its files are kept.
        for ending in (*SIDE_FILES, ""):
            file = path.with_name(path.name + ending)
            if file.exists():
                os.link(file, kept.with_name(kept.name + ending))
    _remove_side_files(path)  # a log of another file would be applied to the copy
    copy.replace(path)
    return kept


def _kept_before(path: Path) -> list[Path]:
    """Return what earlier restores have kept of a history."""
    pattern = re.compile(rf"{re.escape(path.name)}\.before-[0-9T]+(-[0-9]+)?")
    return sorted(file for file in path.parent.iterdir() if pattern.fullmatch(file.name))


def _free_name(path: Path) -> Path:
    """Return a name with the time that no file has: a second has two restores, or comes again."""
    name = f"{path.name}.before-{now():%Y%m%dT%H%M%S}"
    taken = {file.name for file in path.parent.iterdir()}
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return path.with_name(
        next(free for free in names if not taken & {free + ending for ending in ("", *SIDE_FILES)})
    )


def _remove_left(path: Path, kinds: str) -> None:
    """Remove what a restore left that was killed or failed: the lock of the machine lets no other run."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.([0-9]+\.)?({kinds})(-wal|-shm|-journal)?")
    for file in path.parent.iterdir():
        if pattern.fullmatch(file.name):
            file.unlink()


def _remove_side_files(path: Path) -> None:
    for ending in SIDE_FILES:
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).unlink()


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(
            sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
        ) as connection:
            yield connection
    except sqlite3.Error as error:
        raise database_error(str(error), str(path)) from error
