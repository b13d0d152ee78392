"""What InnoDB does beside queries, as its counters say."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from suites.accounting.activity import FLUSH, LOG_WAIT, PURGE

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

_COUNTERS = """
SELECT name, count FROM information_schema.innodb_metrics
WHERE name IN ('log_waits', 'buffer_pool_wait_free', 'trx_rseg_history_len')"""
"""Counters that all versions have switched on."""

LONG_HISTORY = 1000
"""The transactions in the history list from which on it is told that purge works it off."""


def activity_reader(cursor: "Cursor") -> Callable[[], Collection[str]]:
    """Return what reads the activities since the last call. Raises pymysql.err.Error."""
    before: Mapping[str, int] = {}

    def read() -> Collection[str]:
        nonlocal before
        cursor.execute(_COUNTERS)
        now = {str(name): int(str(count)) for name, count in cursor.fetchall()}
        found = going_on(before, now) if before else ()
        before = now
        return found

    return read


def going_on(before: Mapping[str, int], now: Mapping[str, int]) -> Collection[str]:
    """Return what went on between two readings of the counters."""
    found = [
        name
        for counter, name in (("log_waits", LOG_WAIT), ("buffer_pool_wait_free", FLUSH))
        if now.get(counter, 0) > before.get(counter, 0)
    ]
    history = before.get("trx_rseg_history_len", 0)
    return [*found, PURGE] if now.get("trx_rseg_history_len", 0) < history >= LONG_HISTORY else found


_CAPACITY = """
SHOW GLOBAL VARIABLES
WHERE variable_name IN ('innodb_redo_log_capacity', 'innodb_log_file_size', 'innodb_log_files_in_group')"""


def log_capacity(connection: "Connection[Cursor]") -> int:
    """Return the bytes that the redo log holds. Raises pymysql.err.Error.

    MySQL from 8.0.30 on has one setting for it, and ignores the others. MariaDB has one file from 10.5 on.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CAPACITY)
        known = {str(name): int(str(value)) for name, value in cursor.fetchall()}
    files = known.get("innodb_log_file_size", 0) * known.get("innodb_log_files_in_group", 1)
    return known.get("innodb_redo_log_capacity", files)
