"""The reset after a step: wait until InnoDB has purged old row versions and flushed its dirty pages."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pymysql
from pymysql.connections import Connection

from suites.innodb.monitor import monitor
from suites.metrics import DIRTY_LEFT, DIRTY_PAGES, HISTORY_LEFT, LOG_BYTES, UNDO_BYTES
from suites.server import ResetError, sizes_before

Cursor = pymysql.cursors.Cursor

POLL_SECONDS = 0.01

DRIVEN: Mapping[str, str] = {
    # The order matters: the low-water mark may not exceed the limit.
    "innodb_max_dirty_pages_pct_lwm": "0",
    "innodb_max_dirty_pages_pct": "0",
}
"""Settings that make InnoDB write its dirty pages immediately, in every server around it."""


@dataclass(frozen=True)
class ResetLimits:
    """When a reset is complete, and when it gives up."""

    history: int = 100
    """Maximum number of transactions whose old row versions may remain."""
    dirty_pages: int = 100
    """Maximum number of dirty pages that may remain: the server itself always dirties a few."""
    seconds: float = 600
    """Time limit for purge, and for flushing."""


def reset(
    connection: "Connection[Cursor]",
    database: str,
    data: Path,
    driven: Mapping[str, str],
    limits: ResetLimits,
) -> dict[str, float]:
    """Speed up purge and flushing by the settings `driven`, wait for both, and restore the settings.

    Return the reset_* metrics, and the sizes of tables, indexes, redo and undo before and after; `data` is
    the data directory. Raises ResetError, with the metrics and the oldest open transaction, if a time limit
    is exceeded.
    """
    before = sizes_before(_sizes(connection, database) | file_sizes(data))
    started = time.monotonic()
    metrics = {
        **before,
        "reset_history_before": history(connection),
        DIRTY_PAGES: _dirty(connection),
    }
    redo_before = monitor(connection).log_sequence_number
    with _driven(connection, driven):
        purged = _wait(lambda: history(connection) <= limits.history, limits.seconds)
        metrics["reset_purge_seconds"] = time.monotonic() - started
        flushing = time.monotonic()
        flushed = _wait(lambda: _dirty(connection) <= limits.dirty_pages, limits.seconds)
        metrics["reset_flush_seconds"] = time.monotonic() - flushing
    metrics["reset_history_after"] = history(connection)
    metrics[HISTORY_LEFT] = 0.0 if purged else metrics["reset_history_after"]
    metrics["reset_dirty_pages_after"] = _dirty(connection)
    metrics[DIRTY_LEFT] = 0.0 if flushed else metrics["reset_dirty_pages_after"]
    metrics["reset_wal_bytes"] = float(monitor(connection).log_sequence_number - redo_before)
    metrics |= _sizes(connection, database) | file_sizes(data)
    # Nothing reads old files of the binary log, which would fill the disk during a long suite.
    _query(connection, "PURGE BINARY LOGS BEFORE NOW()")
    metrics["reset_seconds"] = time.monotonic() - started
    if not purged:
        raise ResetError(
            f"purge left a history list of {metrics['reset_history_after']:.0f} transactions"
            f" after {limits.seconds:g} s (limit {limits.history})",
            where=_oldest_transaction(connection),
            hint="end the transaction that still needs old row versions, then run the step again",
            metrics=metrics,
        )
    if not flushed:
        raise ResetError(
            f"{metrics['reset_dirty_pages_after']:.0f} pages are still dirty after {limits.seconds:g} s"
            f" (limit {limits.dirty_pages})",
            hint="use a smaller profile if the disk is too slow, or find out what keeps writing",
            metrics=metrics,
        )
    return metrics


def status(connection: "Connection[Cursor]", name: str) -> float:
    """Return the global status variable `name`."""
    return float(str(_query(connection, "SHOW GLOBAL STATUS LIKE %s", name)[0][1]))


def history(connection: "Connection[Cursor]") -> float:
    """Return the length of the history list: transactions whose old row versions are not purged yet."""
    query = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'"
    return float(str(_query(connection, query)[0][0]))


def _dirty(connection: "Connection[Cursor]") -> float:
    return status(connection, "Innodb_buffer_pool_pages_dirty")


def _sizes(connection: "Connection[Cursor]", database: str) -> dict[str, float]:
    # Without ANALYZE, the statistics of sizes may be a day old.
    names = _query(
        connection, "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", database
    )
    for (name,) in names:
        _query(connection, f"ANALYZE TABLE `{database}`.`{name}`")
    query = """SELECT COALESCE(SUM(data_length), 0), COALESCE(SUM(index_length), 0)
               FROM information_schema.tables WHERE table_schema = %s"""
    data, index = _query(connection, query, database)[0]
    return {"table_bytes": float(str(data)), "index_bytes": float(str(index))}


def file_sizes(data: Path) -> dict[str, float]:
    """Return the bytes of the files of redo and of undo in a data directory.

    Undo is in the system tablespace where there are no tablespaces for it, as in older MariaDB.
    """
    return {
        LOG_BYTES: _bytes_of(data, "ib_logfile*", "#innodb_redo/*"),
        UNDO_BYTES: _bytes_of(data, "undo*", "ibdata*"),
    }


def _bytes_of(data: Path, *patterns: str) -> float:
    found = 0
    for file in (file for pattern in patterns for file in data.glob(pattern)):
        with suppress(FileNotFoundError):  # the server has removed it meanwhile
            found += file.stat().st_size
    return float(found)


@contextmanager
def _driven(connection: "Connection[Cursor]", driven: Mapping[str, str]) -> Iterator[None]:
    before = {name: str(_query(connection, f"SELECT @@global.{name}")[0][0]) for name in driven}
    try:
        for name, value in driven.items():
            _query(connection, f"SET GLOBAL {name} = {value}")
        yield
    finally:
        for name in reversed(list(driven)):
            _query(connection, f"SET GLOBAL {name} = {before[name]}")


def _wait(done: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _oldest_transaction(connection: "Connection[Cursor]") -> str:
    query = """SELECT trx_id, trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, trx_started, NOW()), trx_state
               FROM information_schema.innodb_trx ORDER BY trx_started LIMIT 1"""
    for transaction, thread, age, state in _query(connection, query):
        return f"transaction {transaction} of connection {thread}, {state}, open for {age} s"
    return "there is no open transaction"


def _query(connection: "Connection[Cursor]", query: str, *values: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        return list(cursor.fetchall())
