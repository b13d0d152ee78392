"""What InnoDB does beside queries, as its counters and its monitor say."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pymysql
from pymysql.connections import Connection

from suites.accounting.activity import FLUSH, FULL_LOG, LOG_WAIT, PURGE
from suites.innodb.monitor import monitor

_COUNTERS = """
SELECT name, count FROM information_schema.innodb_metrics
WHERE name IN ('log_waits', 'os_log_fsyncs', 'os_log_pending_fsyncs', 'buffer_pool_wait_free',
               'trx_rseg_history_len')"""
"""Counters that are switched on; not every version has those of flushes of the log."""

_CAPACITY = """
SHOW GLOBAL VARIABLES
WHERE variable_name IN ('innodb_redo_log_capacity', 'innodb_log_file_size', 'innodb_log_files_in_group')"""

LONG_HISTORY = 1000
"""The transactions in the history list from which on it is told that purge works it off."""

NEARLY_FULL = 0.85
"""The share of the redo log, not yet in the data files, from which on it is told that the log is nearly full.

Somewhat below the whole, writers have to wait until pages are flushed."""


@dataclass(frozen=True)
class LogFill:
    """How full the redo log is."""

    used: int
    """Bytes of changes that are not in the data files yet."""
    capacity: int


def activity_reader(connection: "Connection[pymysql.cursors.Cursor]") -> Callable[[], Collection[str]]:
    """Return what reads the activities since the last call. Both raise pymysql.err.Error."""
    capacity = log_capacity(connection)
    before: Mapping[str, int] = {}

    def read() -> Collection[str]:
        nonlocal before
        with connection.cursor() as cursor:
            cursor.execute(_COUNTERS)
            now = {str(name): int(str(count)) for name, count in cursor.fetchall()}
        said = monitor(connection)
        found = going_on(before, now, LogFill(said.log_sequence_number - said.checkpoint, capacity))
        before = now
        return found

    return read


def log_capacity(connection: "Connection[pymysql.cursors.Cursor]") -> int:
    """Return the bytes that the redo log holds. Raises pymysql.err.Error."""
    with connection.cursor() as cursor:
        cursor.execute(_CAPACITY)
        return capacity_of({str(name): int(str(value)) for name, value in cursor.fetchall()})


def capacity_of(variables: Mapping[str, int]) -> int:
    """Return the same from the variables that a version has of it.

    MySQL from 8.0.30 on has one setting for it, and ignores the others. MariaDB has one file from 10.5 on.
    """
    files = variables.get("innodb_log_file_size", 0) * variables.get("innodb_log_files_in_group", 1)
    return variables.get("innodb_redo_log_capacity", files)


def going_on(before: Mapping[str, int], now: Mapping[str, int], log: LogFill) -> Collection[str]:
    """Return what went on between two readings of the counters, of which `before` may be empty, the first.

    Clients waited for the log if they waited for its buffer, or if one flush lasted from one reading to the
    next.
    """
    found = [FULL_LOG] if log.used >= NEARLY_FULL * log.capacity > 0 else []
    if not before:
        return found
    more = {name: count - before.get(name, count) for name, count in now.items()}
    pending = min(counters.get("os_log_pending_fsyncs", 0) for counters in (before, now))
    if more.get("log_waits", 0) > 0 or (pending and more.get("os_log_fsyncs") == 0):
        found.append(LOG_WAIT)
    if more.get("buffer_pool_wait_free", 0) > 0:
        found.append(FLUSH)
    history = before.get("trx_rseg_history_len", 0)
    if now.get("trx_rseg_history_len", 0) < history >= LONG_HISTORY:
        found.append(PURGE)
    return found
