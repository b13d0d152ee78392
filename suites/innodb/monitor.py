"""What InnoDB says of its log and its buffer pool, in the text of its monitor."""

import re
from dataclasses import dataclass

import pymysql
from pymysql.connections import Connection


@dataclass(frozen=True)
class Monitor:
    """Some of what SHOW ENGINE INNODB STATUS prints."""

    log_sequence_number: int
    """The bytes of redo written since the creation of the data directory."""

    checkpoint: int
    """The log sequence number before which all changes are in the data files."""

    used_pages: int
    """The pages of the buffer pool that hold anything. Memory of others was not used since it became free."""


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
    return Monitor(log, checkpoint, size - free)
