"""The rows of the metric registry: one for each quantity that a step can record.

A new metric is one row and one producer, which records a value under the row's name: a module of
`suites/accounting/`, `suites/turns/`, or the counters or the reset of an engine. The rows of the reset are in
`suites/rows/reset_rows.py`. Only the rows say which metrics matter, for nights and comparisons alike:
which have a series and are shown, and which are judged.
"""

from itertools import starmap

from build.version import Engine
from suites.metric import COUNTED, QPS, YEARS, Better, Detection, Metric, Role
from suites.metric_names import (
    BINLOG_BYTES,
    BUFFER_POOL,
    CONNECT,
    CONNECTION_HIGH,
    CONNECTION_KIB,
    CONNECTION_LOW,
    CONNECTION_RSS,
    CONNECTION_STATEMENTS,
    CONNECTION_TABLES,
    CONNECTS,
    COUNTED_TRANSACTIONS,
    DEADLOCKS,
    DETRENDED,
    EQUAL_WORK,
    ERRORS,
    FIRST_ANSWER,
    FIRST_THIRD,
    INSTRUCTIONS,
    LAST_THIRD,
    LOG_SYNCS,
    MEMORY_GROWTH,
    OPERATION_TIME,
    OVERLOADED,
    PROVED_ROWS,
    RECOVERY,
    REDO_BYTES,
    REFUSED,
    SECOND_LATENCY,
    SECONDS,
    SERVER_MEMORY,
    SLOWEST,
    SLOWEST_SECOND,
    STALL_LIMITS_MS,
    START,
    TAIL_LIMITS,
    TAIL_LIMITS_US,
    TRANSACTIONS,
    VARIATION,
    WAL_IMAGES,
    WAL_RECORDS,
    WORST_SECOND,
)
from suites.rows.reset_rows import RESET_ROWS

_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_THROUGHPUT, _COST, _LATENCY, _VARIATION = Role.THROUGHPUT, Role.COST, Role.LATENCY, Role.VARIATION
_RESET, _CONTEXT, _CONNECTIONS = Role.RESET, Role.CONTEXT, Role.CONNECTIONS
_POSTGRES, _INNODB = frozenset({Engine.POSTGRES}), frozenset({Engine.MYSQL, Engine.MARIADB})

_RATE = 1e9
"""Queries or transactions per second that no server finishes."""

_PER_CONNECTION = "KiB/connection"

WRITTEN_PERCENT = 1.0
"""The practical threshold of bytes that are written for fixed work."""

WRITTEN_BYTES = 8
"""Those per transaction or query that are none: a record of the log has a header of 24."""


def _seconds_beyond(limit: int) -> Metric:
    return Metric(
        f"seconds_beyond_{limit}_ms",
        "s",
        _LOWER,
        _CONTEXT,
        f"seconds of work in which a transaction ended that took longer than {limit} ms",
        most=YEARS,
        counted_in=SECONDS,
        event=f"had a transaction of more than {limit} ms",
    )


def _written(name: str, what: str, engines: frozenset[Engine], label: str) -> Metric:
    return Metric(
        name,
        "bytes/transaction",
        _LOWER,
        _COST,
        f"{what} by fixed transactions of one client",
        engines=engines,
        followed=True,
        judged=True,
        detection=Detection.STEP,
        label=label,
        threshold_percent=WRITTEN_PERCENT,
        negligible=WRITTEN_BYTES,
        is_counted=True,
        of_proof=True,
        scatter=COUNTED,
    )


def _transactions_beyond(name: str, limit: int) -> Metric:
    return Metric(
        name,
        "transactions",
        _LOWER,
        _CONTEXT,
        f"transactions that took longer than {limit / 1000:g} ms",
        counted_in=TRANSACTIONS,
        event=f"took longer than {limit / 1000:g} ms",
    )


# fmt: off
ROWS: tuple[Metric, ...] = (
    Metric(QPS, "queries/s", _HIGHER, _THROUGHPUT, "queries finished per second over the whole step",
           followed=True, judged=True, evidence=INSTRUCTIONS, most=_RATE),
    Metric("tps", "transactions/s", _HIGHER, _THROUGHPUT,
           "transactions finished per second over the whole step", followed=True, judged=True,
           followed_without=QPS, evidence=INSTRUCTIONS, most=_RATE),
    Metric(TRANSACTIONS, "transactions", _NEITHER, _CONTEXT, "transactions finished: the work of the step"),
    Metric(COUNTED_TRANSACTIONS, "transactions", _NEITHER, _CONTEXT,
           "transactions whose instructions a counted pass counts"),
    Metric(EQUAL_WORK, "queries", _NEITHER, _CONTEXT,
           "the first queries of the round, warm-up included, over which log and storage were counted: each"
           " version finished as many"),
    Metric(SECONDS, "s", _NEITHER, _CONTEXT, "length of the measured window", most=YEARS),
    Metric("censored_seconds", "s", _NEITHER, _CONTEXT,
           "the limit at which a query was ended: it would have taken longer", most=YEARS),
    Metric(ERRORS, "errors", _LOWER, _CONTEXT, "failed or retried transactions",
           event="failed or were begun again", counted_in=TRANSACTIONS),
    Metric("retried_serialisation", "transactions", _LOWER, _CONTEXT,
           "transactions that a serialisation failure rolled back, and that were begun again",
           event="were begun again after a serialisation failure (40001; MySQL and MariaDB: 1020)",
           counted_in=TRANSACTIONS),
    Metric("retried_deadlock", "transactions", _LOWER, _CONTEXT,
           "transactions that a deadlock rolled back, and that were begun again",
           event="were begun again after a deadlock (40P01; MySQL and MariaDB: 1213)",
           counted_in=TRANSACTIONS),
    Metric("retried_duplicate_key", "transactions", _LOWER, _CONTEXT,
           "transactions that a duplicate key rolled back, and that were begun again",
           event="were begun again after a duplicate key (23505; MySQL and MariaDB: 1062)",
           counted_in=TRANSACTIONS),
    Metric("failed_serialisation", "transactions", _LOWER, _CONTEXT,
           "transactions that a serialisation failure ended, and that were not begun again",
           engines=_POSTGRES, event="failed with a serialisation failure (40001)", counted_in=TRANSACTIONS),
    Metric("failed_deadlock", "transactions", _LOWER, _CONTEXT,
           "transactions that a deadlock ended, and that were not begun again",
           engines=_POSTGRES, event="failed with a deadlock (40P01)", counted_in=TRANSACTIONS),
    Metric(DEADLOCKS, "transactions", _LOWER, _CONTEXT,
           "transactions that the server rolled back because of a deadlock, those of the warm-up included",
           event="ended in a deadlock, by the server's count", counted_in=TRANSACTIONS),
    Metric(REFUSED, "transactions", _NEITHER, _CONTEXT,
           "transactions that the application itself ended without committing",
           event="were ended by the application without committing", counted_in=TRANSACTIONS),
    Metric("late_seconds", "s", _LOWER, _CONTEXT,
           "at a rate, the most that a transaction began later than it was due", most=YEARS),
    Metric(OVERLOADED, "ratio", _LOWER, _CONTEXT,
           "at a rate, 1 if the server did not keep up, else 0", most=1.0),
    Metric("background_share", "ratio", _HIGHER, _CONTEXT,
           "transactions beside the measured ones, carried out of those due: the least of all kinds",
           most=1.0, followed=True, label="background, done of due"),
    Metric("most_apart", "transactions", _LOWER, _CONTEXT,
           "the most transactions by which one kind was ahead of another that keeps pace with it"),
    Metric(START, "s", _LOWER, _CONTEXT,
           "start of the server from the loaded data, until it accepts connections",
           followed=True, threshold_percent=25, negligible=0.05, label="start", most=YEARS),
    Metric(FIRST_ANSWER, "s", _LOWER, _CONTEXT,
           "from then until the first query is answered, on a connection of its own",
           followed=True, label="first answer", most=YEARS),
    Metric(CONNECT, "ms", _LOWER, _CONTEXT,
           "connecting, one statement and disconnecting, before the load: the median",
           followed=True, threshold_percent=10, negligible=0.1, label="connect", most=YEARS * 1000),
    Metric(RECOVERY, "s", _LOWER, _RESET,
           "start of the server after the same transactions and a crash, until it accepts connections",
           followed=True, threshold_percent=30, negligible=0.1, label="recovery after a crash", most=YEARS),
    Metric(PROVED_ROWS, "rows", _NEITHER, _CONTEXT,
           "rows that are those of the base after the transactions of a counted pass and a crash"),
    Metric("check_seconds", "s", _LOWER, _CONTEXT,
           "asking the checks of the suite, which is not part of the step", most=YEARS),

    Metric("latency_mean_ms", "ms", _LOWER, _LATENCY, "mean latency of a transaction",
           followed=True, judged=True, imported_only=True, beside_of=OPERATION_TIME, label="mean latency",
           most=YEARS * 1000),
    Metric("latency_p50_ms", "ms", _LOWER, _LATENCY, "median latency of a transaction",
           most=YEARS * 1000),
    Metric("latency_p95_ms", "ms", _LOWER, _LATENCY, "95th percentile of transaction latency",
           most=YEARS * 1000),
    Metric("latency_p99_ms", "ms", _LOWER, _LATENCY, "99th percentile of transaction latency",
           followed=True, label="p99 latency", column="p99", gives_way=5, legend="p99 latency",
           most=YEARS * 1000),
    Metric("latency_p999_ms", "ms", _LOWER, _LATENCY, "99.9th percentile of transaction latency",
           most=YEARS * 1000),
    Metric(SLOWEST, "ms", _LOWER, _LATENCY, "slowest transaction", most=YEARS * 1000),
    Metric(SECOND_LATENCY, "ms", _LOWER, _LATENCY,
           "slowest transaction in each second of work: the median over the seconds", most=YEARS * 1000),

    *map(_seconds_beyond, STALL_LIMITS_MS),
    *map(_transactions_beyond, TAIL_LIMITS, TAIL_LIMITS_US),
    Metric(SLOWEST_SECOND, "s", _NEITHER, _CONTEXT,
           "second of the step's work, from 1, in which its slowest transaction ended", most=YEARS),
    Metric(FIRST_THIRD, "queries/s", _HIGHER, _CONTEXT,
           "queries finished per second in the first third of the seconds of the step", most=_RATE),
    Metric(LAST_THIRD, "queries/s", _HIGHER, _CONTEXT,
           "queries finished per second in the last third of the seconds of the step", most=_RATE),

    # Steps whose variation got worse are also listed below the table.
    Metric(VARIATION, "ratio", _LOWER, _VARIATION, "coefficient of variation of the per-second throughput",
           followed=True, label="cv", column="cv", gives_way=2,
           legend="cv, how much QPS varies from second to second"),
    Metric("qps_p1_over_median", "ratio", _HIGHER, _VARIATION,
           "1st percentile of per-second throughput over its median",
           followed=True, label="p1/median", legend="1st percentile over median of QPS from second to second",
           most=1.0),
    Metric(DETRENDED, "ratio", _LOWER, _VARIATION,
           "coefficient of variation of the per-second throughput around its trend, without the tenth of the"
           " seconds that is furthest from it", followed=True, label="cv without trend"),
    Metric(WORST_SECOND, "ratio", _HIGHER, _VARIATION, "throughput of the worst second over its trend",
           followed=True, label="worst second", most=1.0),

    Metric("server_cpu_us_per_op", "µs/query", _LOWER, _COST, "CPU time of all server processes per query",
           followed=True, judged=True, buys_speed=True, label="server CPU", column="CPU",
           legend="CPU time of the server", short_name="cpu-per-op", evidence=INSTRUCTIONS),
    Metric("client_cpu_us_per_op", "µs/query", _LOWER, _COST, "CPU time of the load generator per query",
           followed=True, label="client CPU"),
    Metric("machine_cpu_us_per_op", "µs/query", _LOWER, _COST, "busy CPU time of the whole machine per query",
           label="machine CPU", column="CPU", imported_for="server_cpu_us_per_op"),
    # Context switches are mostly proportional to CPU time, so that their column is dropped first.
    Metric("server_cs_per_op", "switches/query", _LOWER, _COST, "context switches of the server per query",
           followed=True, label="context switches", column="cs", gives_way=1,
           legend="its context switches (cs)", short_name="cs-per-op"),
    Metric("client_cs_per_op", "switches/query", _LOWER, _COST,
           "context switches of the load generator per query"),
    Metric("machine_cs_per_op", "switches/query", _LOWER, _COST,
           "context switches of the whole machine per query",
           label="machine's context switches", column="cs", imported_for="server_cs_per_op"),
    Metric("server_read_kb_per_op", "KiB/query", _LOWER, _COST,
           "read from storage by server processes per query", followed=True, negligible=0.05, label="read",
           at_equal_work=True),
    Metric("server_written_kb_per_op", "KiB/query", _LOWER, _COST,
           "sent to storage by server processes per query",
           followed=True, judged=True, threshold_percent=5, negligible=0.05, label="written",
           column="wrt", gives_way=3, legend="KiB written (wrt)",
           short_name="written-per-op", at_equal_work=True),
    Metric("client_read_kb_per_op", "KiB/query", _LOWER, _COST,
           "read from storage by the load generator per query"),
    Metric("client_written_kb_per_op", "KiB/query", _LOWER, _COST,
           "sent to storage by the load generator per query"),
    Metric("machine_reads_per_op", "reads/query", _LOWER, _COST, "read requests of all disks per query"),
    Metric("machine_read_kb_per_op", "KiB/query", _LOWER, _COST, "read by all disks per query",
           label="read by all disks", imported_for="server_read_kb_per_op"),
    Metric("machine_written_kb_per_op", "KiB/query", _LOWER, _COST, "written by all disks per query",
           label="written by all disks", column="wrt", imported_for="server_written_kb_per_op"),
    Metric("wal_bytes_per_op", "bytes/query", _LOWER, _COST,
           "write-ahead or redo log written during the step per query",
           followed=True, judged=True, negligible=WRITTEN_BYTES,
           label="WAL or redo", column="WAL", gives_way=4,
           legend="WAL or redo bytes", short_name="wal-per-op", at_equal_work=True),
    Metric("binlog_bytes_per_op", "bytes/query", _LOWER, _COST,
           "binary log written during the step per query", engines=_INNODB, followed=True,
           label="binary log"),
    # Of pairs alone: every version of such a session has them, 0 without a companion.
    Metric("companion_cpu_us_per_op", "µs/query", _LOWER, _COST,
           "CPU time of pooler and consumers per query, which is not the server's", followed=True,
           label="companion CPU"),
    Metric("server_instructions_per_op", "instructions/query", _LOWER, _COST,
           "instructions in user code of all server processes per query in the rounds, where the machine has"
           " counters",
           followed=True, judged=True, buys_speed=True, label="hardware instructions",
           short_name="hardware-instructions-per-op"),
    Metric("instructions_per_op", "instructions/query", _LOWER, _COST,
           "instructions of the client's backend or connection thread per query, in user code, counted under"
           " callgrind for fixed work",
           followed=True, judged=True, detection=Detection.STEP, label="exact instructions",
           noun="instructions", column="instr",
           legend="exact instructions (instr) under callgrind", short_name="instructions-per-op",
           threshold_percent=0.5, is_counted=True, scatter=COUNTED),
    *starmap(_written, (
        (WAL_RECORDS, "WAL without images of pages written", _POSTGRES, "WAL records"),
        (WAL_IMAGES, "images of pages in the WAL written", _POSTGRES, "WAL page images"),
        (REDO_BYTES, "redo log written", _INNODB, "redo of fixed work"),
        (BINLOG_BYTES, "binary log written", _INNODB, "binary log of fixed work"),
    )),
    Metric(LOG_SYNCS, "syncs/commit", _NEITHER, _CONTEXT,
           "system calls that made the log durable, per commit that wrote, with full durability",
           followed=True, label="log flushes per commit"),
    Metric("pages_flushed_per_op", "pages/query", _LOWER, _COST,
           "InnoDB pages written from the buffer pool per query", engines=_INNODB),

    # It is about zero, so that it has no ratio: history/comparison/findings/memory_growth.py judges it.
    Metric(MEMORY_GROWTH, "bytes/query", _LOWER, _CONTEXT,
           "growth of the private memory of all server processes per query, in the second half of the work",
           least=-1e12, most=1e12),
    Metric(SERVER_MEMORY, "bytes", _LOWER, _CONTEXT,
           "private memory of all server processes together in the second half of the work, without pages of"
           " the buffer pool: the median",
           followed=True, judged=True, threshold_percent=10, negligible=2**20, label="server memory",
           short_name="server-memory"),
    Metric(BUFFER_POOL, "bytes", _NEITHER, _CONTEXT,
           "memory of the buffer pool that pages have used since the start of the server", engines=_INNODB),

    Metric(CONNECTION_KIB, _PER_CONNECTION, _LOWER, _CONNECTIONS,
           "memory of the server per open connection, with page tables, without shared memory",
           followed=True, judged=True, beside_of=CONNECTION_KIB, label="memory per connection",
           short_name="connection-memory"),
    Metric(CONNECTION_LOW, _PER_CONNECTION, _NEITHER, _CONNECTIONS, "lower end of that slope's interval",
           followed=True, beside_of=CONNECTION_KIB, label="low end of the slope"),
    Metric(CONNECTION_HIGH, _PER_CONNECTION, _NEITHER, _CONNECTIONS, "upper end of that slope's interval",
           followed=True, beside_of=CONNECTION_KIB, label="high end of the slope"),
    Metric(CONNECTION_TABLES, _PER_CONNECTION, _LOWER, _CONNECTIONS, "the page tables in it",
           followed=True, beside_of=CONNECTION_KIB, label="page tables"),
    Metric(CONNECTION_RSS, _PER_CONNECTION, _LOWER, _CONNECTIONS, "RSS of the server per open connection",
           followed=True, beside_of=CONNECTION_KIB, label="RSS", column="RSS",
           legend="RSS as top shows it"),
    Metric(CONNECTS, "connects/s", _HIGHER, _CONNECTIONS, "connections opened per second, many at once",
           followed=True, beside_of=CONNECTION_KIB, label="connects", column="conn/s",
           legend="connects per second (conn/s)", most=_RATE),
    Metric(CONNECTION_STATEMENTS, "statements", _NEITHER, _CONNECTIONS, "prepared by each connection",
           followed=True, beside_of=CONNECTION_KIB, label="prepared statements"),

    *RESET_ROWS,

    Metric("companion_lag_bytes", "bytes", _LOWER, _CONTEXT,
           "log of the server that its consumers had yet to get when the load ended", followed=True,
           label="consumer's lag"),

    Metric("machine_steal_share", "ratio", _LOWER, _CONTEXT,
           "wanted CPU time that the host of a virtual machine withheld", most=1.0),
    Metric("others_cpu_share", "ratio", _LOWER, _CONTEXT,
           "CPU time of processes that are not ours, in cores"),

    Metric("statement_seconds", "s", _LOWER, _CONTEXT,
           "the one transaction of a timed step, such as building indexes", followed=True,
           label="seconds of the statement", most=YEARS),
    Metric(OPERATION_TIME, "ms", _LOWER, _CONTEXT,
           "mean time of an operation, as other tools report it instead of a rate",
           followed=True, judged=True, followed_without=QPS, beside_of=OPERATION_TIME,
           label="time per operation", most=YEARS * 1000),
)
# fmt: on
