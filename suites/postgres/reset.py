"""The reset after a step: vacuum all tables, write all dirty pages, and verify the result."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from psycopg import sql

from suites.metrics import (
    DEAD_ITEMS,
    DEAD_ITEMS_LEFT,
    DEAD_TUPLES,
    DEAD_TUPLES_LEFT,
    LOG_BYTES,
    NOT_FROZEN,
    NOT_VISIBLE,
)
from suites.server import ResetError, sizes_before

NAMEABLE_DEAD_SHARE = 0.001
"""The share of dead to live tuples up to which dead tuples may remain after a vacuum."""

STATISTICS_SECONDS = 3
"""How long the statistics of a finished vacuum may take to appear."""

VACUUM_WAIT_SECONDS = 600
"""How long to wait for autovacuum workers that were already running when the reset began."""

Connection = psycopg.Connection[tuple[Any, ...]]
Connect = Callable[[], Connection]

TABLES = "SELECT schemaname, relname FROM pg_stat_user_tables ORDER BY relid"
_DEAD = """SELECT COALESCE(sum(n_dead_tup), 0), COALESCE(sum(n_live_tup), 0) FROM pg_stat_user_tables"""
_WORKING = """
SELECT pid FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle in transaction'
LIMIT 1"""
_SIZES = """
SELECT COALESCE(sum(pg_table_size(relid)), 0), COALESCE(sum(pg_indexes_size(relid)), 0),
       (SELECT COALESCE(sum(size), 0) FROM pg_ls_waldir())
FROM pg_stat_user_tables"""
_UNMARKED = """
SELECT (pages - visible + maps) / (pages + maps), (pages - frozen + maps) / (pages + maps)
FROM (SELECT count(*)::float8 AS maps, sum(relpages) AS pages, sum(relallvisible) AS visible,
             sum((to_jsonb(class) ->> 'relallfrozen')::integer) AS frozen
      FROM pg_class AS class JOIN pg_stat_user_tables ON oid = relid
      WHERE relpages > 0) AS marked"""
_HOLDERS = """
SELECT format('process %s (%s, %s, transaction open for %s s)', pid, backend_type, state,
              round(extract(epoch FROM clock_timestamp() - xact_start)))
FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
UNION ALL
SELECT format('prepared transaction %s of %s', gid, prepared) FROM pg_prepared_xacts
UNION ALL
SELECT format('replication slot %s', slot_name) FROM pg_replication_slots WHERE xmin IS NOT NULL"""


_DEAD_ITEMS = re.compile(r"(had|have) (\d{1,15}) dead item identifiers")
"""What a vacuum of Postgres 14 and newer says of row versions that indexes refer to in vain: `had` of those
that it has removed, `have` of those that it left because it did not clean the indexes (heap_vacuum_rel)."""


def dead_items(messages: Iterable[str]) -> dict[str, float]:
    """Return the row versions that indexes referred to in vain, and those that are left, as metrics.

    `messages` are those of vacuums with VERBOSE; before Postgres 14 they do not say it.
    """
    said = [(verb, int(number)) for text in messages for verb, number in _DEAD_ITEMS.findall(text)]
    if not said:
        return {}
    left = sum(number for verb, number in said if verb == "have")
    return {DEAD_ITEMS: float(sum(number for _, number in said)), DEAD_ITEMS_LEFT: float(left)}


def reset(connect: Connect, workers: int) -> dict[str, float]:
    """VACUUM (ANALYZE, INDEX_CLEANUP ON, PARALLEL) all tables in parallel, CHECKPOINT, and verify.

    Return the reset_* metrics, and the sizes of tables, indexes and WAL before and after. Raises ResetError
    if dead tuples remain, with the transactions or slots that prevent their removal and with the metrics, or
    if a vacuum does not end.
    """
    with connect() as connection:
        before = sizes_before(_sizes(connection))
        started = time.monotonic()
        wal_before = wal_position(connection)
        dead_before, _ = _dead_and_live(connection)
        tables = [(str(schema), str(table)) for schema, table in connection.execute(TABLES)]
        _flush_commits(connection)
        vacuum_began = time.monotonic()
        messages = vacuum_all(connect, tables, workers)
        vacuum_seconds = time.monotonic() - vacuum_began
        checkpoint_seconds = _timed(lambda: connection.execute("CHECKPOINT"))
        _wait_for_vacuums(connection)
        dead_after = _dead_after(connection)
        metrics = {
            **before,
            "reset_vacuum_seconds": vacuum_seconds,
            "reset_checkpoint_seconds": checkpoint_seconds,
            "reset_wal_bytes": float(wal_position(connection) - wal_before),
            DEAD_TUPLES: float(dead_before),
            DEAD_TUPLES_LEFT: float(dead_after),
            **dead_items(messages),
            **_sizes(connection),
            "reset_seconds": time.monotonic() - started,
        }
        metrics |= _unmarked(connection)
        _require_no_dead(connection, tables, metrics)
        return metrics


def _sizes(connection: Connection) -> dict[str, float]:
    """Return the bytes of tables, indexes and the files of the WAL."""
    row = connection.execute(_SIZES).fetchone()
    assert row is not None  # an aggregate without GROUP BY has one row
    table, index, log = map(float, row)
    return {"table_bytes": table, "index_bytes": index, LOG_BYTES: log}


def _unmarked(connection: Connection) -> dict[str, float]:
    """Return the shares of pages without the marks of the visibility map, as the vacuums counted them.

    A page of each table's map counts as one without, so that no share is zero and all have a ratio. Before
    Postgres 18 vacuums do not count those that are all-frozen.
    """
    row = connection.execute(_UNMARKED).fetchone()
    assert row is not None  # an aggregate without GROUP BY has one row
    shares = zip((NOT_VISIBLE, NOT_FROZEN), row, strict=True)
    return {name: share for name, share in shares if share is not None}


def _flush_commits(connection: Connection) -> None:
    """Flush the commit records of all finished transactions.

    After asynchronous commits, a vacuum cannot mark pages as all-visible whose commits are not flushed yet
    (SetHintBits in heapam_visibility.c). How many these are would depend on when the WAL writer woke up, and
    updates of marked pages execute more.
    """
    _commit_durably(connection)
    connection.execute("SELECT pg_logical_emit_message(true, 'tidemark', '')")


def _commit_durably(connection: Connection) -> None:
    """Flush what a session commits from now on.

    Transactions with neighbouring ids share the position up to which WAL must be flushed before their rows
    get the hint that they are committed (TransactionIdGetStatus in clog.c). An asynchronous commit of one
    table's vacuum would move it, and keep another's from marking its pages.
    """
    connection.execute("SET synchronous_commit = on")


def wal_position(connection: Connection) -> int:
    """Return the bytes of WAL inserted since initdb."""
    row = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()
    assert row is not None
    return int(row[0])


def _timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def vacuum_all(connect: Connect, tables: Sequence[tuple[str, str]], workers: int) -> list[str]:
    """Vacuum the tables with one connection per table, up to `workers` at the same time.

    Return what the vacuums say.
    """
    connections: list[Connection] = []

    messages: list[str] = []

    def vacuum(name: tuple[str, str]) -> None:
        with connect() as own:
            connections.append(own)
            own.add_notice_handler(lambda notice: messages.append(notice.message_primary or ""))
            _commit_durably(own)
            own.execute(
                sql.SQL("VACUUM (VERBOSE, ANALYZE, INDEX_CLEANUP ON, PARALLEL {}) {}").format(
                    sql.Literal(workers), sql.Identifier(*name)
                )
            )

    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            list(pool.map(vacuum, tables))
        except BaseException:
            # The pool waits for its threads, so that an interrupt would take as long as the longest vacuum.
            pool.shutdown(wait=False, cancel_futures=True)
            for connection in connections:
                connection.cancel_safe(timeout=5)
            raise
    return messages


def _dead_and_live(connection: Connection) -> tuple[int, int]:
    row = connection.execute(_DEAD).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def dead_tuples(connection: Connection) -> int:
    """Return the dead tuples of all tables, when every client has disconnected, or after a short time.

    A backend adds what it did to the statistics at the latest when it ends, which is after its client.
    """
    deadline = time.monotonic() + STATISTICS_SECONDS
    while connection.execute(_WORKING).fetchone() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    connection.execute("SELECT pg_stat_clear_snapshot()")
    return _dead_and_live(connection)[0]


def _wait_for_vacuums(connection: Connection) -> None:
    """Wait until no vacuum runs: an autovacuum may have started before the reset. Raises ResetError."""
    deadline = time.monotonic() + VACUUM_WAIT_SECONDS
    while True:
        running = connection.execute("SELECT pid, relid::regclass::text, phase FROM pg_stat_progress_vacuum")
        vacuums = running.fetchall()
        if not vacuums:
            return
        if time.monotonic() > deadline:
            raise ResetError(
                f"a vacuum still runs after {VACUUM_WAIT_SECONDS} s",
                where="; ".join(f"process {pid} on {table}, {phase}" for pid, table, phase in vacuums),
                hint="use a smaller profile, or find out why vacuum cannot keep up",
            )
        time.sleep(0.1)


def _dead_after(connection: Connection) -> int:
    """Return the number of dead tuples after the vacuum, once its statistics must have appeared.

    Before Postgres 15, a process collects the statistics from messages, with a short delay.
    """
    deadline = time.monotonic() + STATISTICS_SECONDS
    while True:
        dead, live = _dead_and_live(connection)
        if dead <= _most_dead(live) or time.monotonic() > deadline:
            return dead
        time.sleep(0.1)


def _most_dead(live: int) -> float:
    return max(10, live * NAMEABLE_DEAD_SHARE)


def _require_no_dead(
    connection: Connection, tables: Sequence[tuple[str, str]], metrics: Mapping[str, float]
) -> None:
    """Raise ResetError, with the metrics that hold nevertheless, if the vacuum left dead tuples."""
    dead = metrics[DEAD_TUPLES_LEFT]
    if dead <= _most_dead(_dead_and_live(connection)[1]):
        return
    holders = [str(row[0]) for row in connection.execute(_HOLDERS)]
    names = ", ".join(".".join(table) for table in tables)
    raise ResetError(
        f"{dead:.0f} dead tuples are left after the vacuum of {names}",
        where="; ".join(holders) or "there is no open transaction",
        hint="end the transaction that may still need them, then run the step again",
        # It waited for statistics without dead tuples, which is no time of the reset.
        metrics={name: value for name, value in metrics.items() if name != "reset_seconds"},
    )
