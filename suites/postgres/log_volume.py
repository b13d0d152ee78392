"""What Postgres wrote into its WAL for some work: records and page images apart, read by pg_waldump."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from suites.metrics import WAL_IMAGES, WAL_RECORDS
from suites.processes import as_server_user, run
from suites.server import LogVolume, ServerError

PROGRAM = "pg_waldump"

FOLDER = "pg_wal"

_COMMIT = "Transaction/COMMIT"

_IMAGES = ("XLOG/FPI", "XLOG/FPI_FOR_HINT")
"""Records with nothing but images of pages."""

_BACKGROUND = ("XLOG/CHECKPOINT_ONLINE", "XLOG/CHECKPOINT_REDO", "XLOG/SWITCH", "Standby/RUNNING_XACTS")
"""Records of what happens beside the work, by the clock."""

_SHARE = r" \( *(?:[0-9.]+|-?nan)\)"
_ROW = re.compile(rf"(\S.*?) +([0-9]{{1,18}}){_SHARE} +([0-9]{{1,18}}){_SHARE} +([0-9]{{1,18}}){_SHARE} .*")
"""Name, number of records, bytes of the records without images, bytes of images, and both."""


@dataclass(frozen=True)
class RecordType:
    """The records of one type."""

    name: str
    """Such as `Heap/HOT_UPDATE`."""
    count: int
    record_bytes: int
    """Without images of pages."""
    image_bytes: int


@dataclass(frozen=True)
class Position:
    """A place in the WAL."""

    lsn: str
    """Such as `0/1A2B3C8`."""
    file: str
    """The name of the segment in which it is."""


def position(connection: psycopg.Connection[tuple[Any, ...]]) -> Position:
    """Return the place where the next record is inserted."""
    where = "pg_current_wal_insert_lsn()"
    row = connection.execute(f"SELECT lsn::text, pg_walfile_name(lsn) FROM {where} AS lsn").fetchone()
    assert row is not None
    return Position(str(row[0]), str(row[1]))


def flushed_position(connection: psycopg.Connection[tuple[Any, ...]]) -> Position:
    """Return that place, once all of the WAL before it is in its files."""
    end = position(connection)
    connection.execute("SELECT pg_switch_wal()")
    return end


def written(program: Path, folder: Path, begin: Position, end: Position) -> LogVolume:
    """Return what the WAL in `folder` has from `begin` to `end`.

    Raises ServerError when pg_waldump cannot read it, and ProcessError when it fails.
    """
    places = [f"--start={begin.lsn}", f"--end={end.lsn}"]
    # Files are named, because pg_waldump looks for the size of segments in any, which may be an empty one.
    words: list[str | Path] = [program, "--stats=record", f"--path={folder}", *places, begin.file, end.file]
    output = run(as_server_user(words), what=PROGRAM, cwd=folder)
    types = list(record_types(output))
    if not types:
        raise ServerError("pg_waldump's statistics have no record", where=str(folder))
    return volume(types)


def volume(types: list[RecordType]) -> LogVolume:
    """Return the volume of records by type, without those of background work.

    Where some commits have no other record, it has no commits: it is not known how many wrote something.
    """
    records = sum(entry.record_bytes for entry in types if entry.name not in (*_IMAGES, *_BACKGROUND))
    images = sum(entry.image_bytes for entry in types)
    commits = sum(entry.count for entry in types if entry.name == _COMMIT)
    others = (_COMMIT, *_IMAGES, *_BACKGROUND)
    # RecordTransactionCommit flushes no commit without another record of its transaction. With fewer
    # other records than commits, some transactions only took an id or wrote into unlogged tables.
    if sum(entry.count for entry in types if entry.name not in others) < commits:
        commits = 0
    return LogVolume(commits, {WAL_RECORDS: float(records), WAL_IMAGES: float(images)})


def record_types(output: str) -> Iterator[RecordType]:
    """Yield the rows of pg_waldump's statistics of records; lines of other kinds are ignored."""
    for line in output.splitlines():
        if row := _ROW.fullmatch(line):
            yield RecordType(row[1], int(row[2]), int(row[3]), int(row[4]))
