"""What InnoDB says of its log and its buffer pool, in the text of its monitor."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pymysql
from pymysql.connections import Connection

from suites.control_groups.declared import MemoryUse
from suites.metrics import BUFFER_POOL, WAL_BYTES


@dataclass(frozen=True)
class Monitor:
    """Some of what SHOW ENGINE INNODB STATUS prints."""

    log_sequence_number: int
    """The bytes of redo written since the creation of the data directory."""

    checkpoint: int
    """The log sequence number before which all changes are in the data files."""

    pages: int
    """The pages of the buffer pool."""

    used_pages: int
    """Those that hold anything. Memory of others was not used since it became free."""


def monitor(connection: "Connection[pymysql.cursors.Cursor]") -> Monitor:
    """Return what the monitor says now."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW ENGINE INNODB STATUS")
        row = cursor.fetchone()
    assert row is not None
    return parsed(str(row[2]))


def deadlocks(connection: "Connection[pymysql.cursors.Cursor]") -> float:
    """Return how many transactions the server has ended because of a deadlock."""
    counted = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"
    with connection.cursor() as cursor:
        cursor.execute(counted)
        row = cursor.fetchone()
    return float(str(row[0])) if row is not None else 0.0


def counter_reader(connection: "Connection[pymysql.cursors.Cursor]") -> Callable[[], Mapping[str, float]]:
    """Return a function that returns the bytes of redo, and the most memory used of the buffer pool."""
    page_bytes, most_used = bytes_of_page(connection), 0

    def read() -> Mapping[str, float]:
        nonlocal most_used
        said = monitor(connection)
        # The memory of a page that becomes free stays that of the process.
        most_used = max(most_used, said.used_pages)
        return {
            WAL_BYTES: float(said.log_sequence_number),
            BUFFER_POOL: float(most_used * page_bytes),
        }

    return read


def pool_use(connection: "Connection[pymysql.cursors.Cursor]") -> MemoryUse:
    """Return how much of the buffer pool holds anything."""
    said, page_bytes = monitor(connection), bytes_of_page(connection)
    return MemoryUse(said.used_pages * page_bytes, said.pages * page_bytes)


def bytes_of_page(connection: "Connection[pymysql.cursors.Cursor]") -> int:
    """Return the size of a page of the buffer pool."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@global.innodb_page_size")
        row = cursor.fetchone()
    assert row is not None
    return int(str(row[0]))


def parsed(text: str) -> Monitor:
    """Parse the text of the monitor, whose sections LOG and BUFFER POOL every version since 5.0 has.

    Of several instances of a buffer pool, the first lines are their sum.
    """
    found = [
        re.search(rf"^{name}\s+(\d+)$", text, re.MULTILINE)
        for name in ("Log sequence number", "Last checkpoint at", "Buffer pool size", "Free buffers")
    ]
    log, checkpoint, size, free = (int(match[1]) for match in found if match is not None)
    return Monitor(log, checkpoint, size, size - free)
