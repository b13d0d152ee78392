"""The metrics: their names, what a row says of one, the table of all rows, and lists that follow from them.

A new metric is one row and one producer, which records a value under the row's name: a module of
`suites/accounting/`, `suites/turns/`, or the counters or the reset of an engine. Only the rows say which
metrics matter, for nights and comparisons alike: which have a series and are shown, and which are judged.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import starmap

from build.version import Engine

# --- names, and groups of them

QPS = "qps"
"""The primary metric of suites that do not name another one."""

OVER_LIMIT = "censored_seconds"
STATEMENT_SECONDS = "statement_seconds"
"""The metric of a failed run that was ended at the limit of a query.

The other versions' runs of that step failed with it, because they cannot be compared, and have no such value.
"""

INSTRUCTIONS = "instructions_per_op"
"""The metric of counted passes."""

COUNTED_TRANSACTIONS = "counted_transactions"
"""The metric with the transactions that a counted pass counts: as many in all passes of a session's step."""

START, FIRST_ANSWER, CONNECT = "start_seconds", "first_answer_seconds", "connect_ms"
"""The metrics of a start for a round, of its first answer, and of a client's connect after it."""

RECOVERY = "recovery_seconds"
"""The metric of a start after a crash that followed the same transactions."""

DEAD_ITEMS, DEAD_ITEMS_LEFT = "reset_dead_items", "reset_dead_items_left"
"""The metrics of row versions that indexes referred to in vain: those that a vacuum met, and that it left."""

DEAD_TUPLES, DEAD_TUPLES_LEFT = "reset_dead_tuples_before", "reset_dead_tuples_after"
"""The metrics of dead tuples when a reset began, and when its vacuums were done."""

NOT_VISIBLE, NOT_FROZEN = "reset_not_visible_share", "reset_not_frozen_share"
"""The metrics of pages that a reset left without the marks of all-visible and all-frozen."""

DIRTY_PAGES = "reset_dirty_pages_before"
"""The metric of dirty pages when a reset of InnoDB began."""

HISTORY_LEFT, DIRTY_LEFT = "reset_history_left", "reset_dirty_pages_left"
"""The metrics of transactions whose old row versions purge left, where it did not keep up, and of pages that
were not written, where flushing did not."""

LOG_BYTES, UNDO_BYTES = "log_file_bytes", "undo_bytes"
"""The metrics of the sizes of the log and of undo after a reset, beside those of tables and indexes."""

PROVED_ROWS = "proved_rows"
"""The metric with the rows that a version holds as the base does, after the same transactions and a crash."""

OVERLOADED = "overload"
"""The metric that says whether a server did not keep up with the rate of its step: then it is not judged."""

TPS = "tps"

TRANSACTIONS = "transactions"

EQUAL_WORK = "equal_work_queries"
"""The metric with the work at which the versions of a round were compared by metrics `at_equal_work`."""

RETRIED = ("retried_serialisation", "retried_deadlock", "retried_duplicate_key")
"""The metrics of transactions that a server rolled back, and that were begun again, by cause."""

FAILED = ("failed_serialisation", "failed_deadlock")
"""The metrics of transactions that a server rolled back, and that were not begun again, by cause."""

ERRORS = "errors"
"""The metric of all transactions that failed or were begun again."""

DEADLOCKS = "deadlocks"
"""The metric of deadlocks that the server counts: not every load generator knows the cause of its errors."""

CAUSES_OF_ERRORS = (*RETRIED, *FAILED)
"""The metrics of which `errors` is the sum where they are recorded."""

REFUSED = "refused_transactions"

SECONDS = "seconds"

SLOWEST = "latency_max_ms"

MEAN_LATENCY, TAIL_LATENCY, SECOND_LATENCY = "latency_mean_ms", "latency_p99_ms", "latency_second_ms"

OPERATION_TIME = "operation_ms"
"""The primary metric of imported sessions whose tool gives times and no rates."""

PRIMARY = QPS
"""The primary metric: the default of comparisons, and the metric that --until-decided runs rounds for.

A load generator that measures something else has another one (suites/definition.py)."""

PRIMARIES = (PRIMARY, TPS, OPERATION_TIME)
"""The primary metrics that results of other tools can have, the preferred first."""

STALL_LIMITS_MS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""The latencies in ms beyond which the seconds of a round are counted."""

STALL_LIMITS = tuple(f"seconds_beyond_{limit}_ms" for limit in STALL_LIMITS_MS)
"""The metrics of the seconds with a transaction beyond each of these limits."""

STALL_MS = 1000
"""A transaction that takes longer is a stall, whose cause is recorded (suites/accounting/activity.py)."""

STALLED_SECONDS = f"seconds_beyond_{STALL_MS}_ms"
"""The metric of the seconds with one."""

TAIL_LIMITS_US = tuple(digit * 10**power for power in range(2, 7) for digit in (1, 2, 5))
"""The latencies in µs, from 0.1 ms to 5 s, beyond which the transactions of a round are counted."""

TAIL_LIMITS = tuple(
    f"transactions_beyond_{limit}_us" if limit < 1000 else f"transactions_beyond_{limit // 1000}_ms"
    for limit in TAIL_LIMITS_US
)
"""The metrics of the transactions beyond each of these limits, in the same order.

A round has those from the lowest limit that at most TAIL_SHARE of its transactions exceed up to the first
that none does. A round without any is not known: its session is older, or its load generator does not say it.
"""

TAIL_SHARE = 0.05
"""The share of transactions up to which those beyond a limit are counted: percentiles tell of the others."""

SLOWEST_SECOND = "latency_max_second"
"""The metric that says when the slowest transaction of a round ended."""

FIRST_THIRD, LAST_THIRD = "qps_first_third", "qps_last_third"
"""The metrics of throughput in the first and the last third of the seconds of a round."""

VARIATION = "qps_cv"

DETRENDED, WORST_SECOND = "qps_cv_detrended", "qps_worst_second"
"""The metrics of how throughput varies around its trend (suites/turns/turn.py)."""

IN_ROUNDS = (
    SECONDS,
    VARIATION,
    DETRENDED,
    WORST_SECOND,
    FIRST_THIRD,
    LAST_THIRD,
    SLOWEST,
    SLOWEST_SECOND,
)
"""What is compared within rounds, beside events."""

MEMORY_GROWTH = "memory_growth_bytes_per_op"
"""The metric of memory that a server takes and keeps, per query. It is about zero, or below."""

SERVER_MEMORY = "server_memory_bytes"

BUFFER_POOL = "buffer_pool_bytes"
"""The metric of memory that pages in the buffer pool of InnoDB use, which is no part of the other two."""

CONNECTION_KIB = "connection_kib"
"""The primary metric of held connections: a slope over levels."""
CONNECTION_LOW, CONNECTION_HIGH = "connection_kib_low", "connection_kib_high"
CONNECTION_TABLES, CONNECTION_RSS = "connection_page_tables_kib", "connection_rss_kib"
CONNECTS, CONNECTION_STATEMENTS = "connects_per_second", "connection_statements"

WAL_RECORDS, WAL_IMAGES = "wal_record_bytes_per_transaction", "wal_image_bytes_per_transaction"
REDO_BYTES, BINLOG_BYTES = "redo_bytes_per_transaction", "binlog_bytes_per_transaction"

LOG_SYNCS = "log_syncs_per_commit"
"""The metric of how often the log was flushed for each commit that wrote, by one client."""

FIXED_WORK = (WAL_RECORDS, WAL_IMAGES, REDO_BYTES, BINLOG_BYTES, LOG_SYNCS)
"""The metrics of what a server writes and flushes for fixed transactions (suites/counting/fixed_work.py)."""

SERVER_CPU, CLIENT_CPU = "server_cpu_us_per_op", "client_cpu_us_per_op"
HARDWARE_INSTRUCTIONS = "server_instructions_per_op"
"""The metrics of CPU time per query, and of the instructions in user code that rounds count."""

SERVER_SWITCHES, SERVER_WRITTEN = "server_cs_per_op", "server_written_kb_per_op"
"""The metrics of context switches of the server, and of what it sends to storage, per query."""

WAL_BYTES = "wal_bytes_per_op"
"""The metric of write-ahead or redo log per query."""

BEFORE: Mapping[str, str] = {
    "table_bytes": "reset_table_bytes_before",
    "index_bytes": "reset_index_bytes_before",
    LOG_BYTES: "reset_log_file_bytes_before",
    UNDO_BYTES: "reset_undo_bytes_before",
}
"""Size after the reset -> the same when the reset began, after the load."""


# --- what a row says


class Better(StrEnum):
    """The direction in which a metric improves."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"

    @property
    def words(self) -> str:
        """The direction in words: `less is better`; empty for NEITHER."""
        return {Better.HIGHER: "more is better", Better.LOWER: "less is better", Better.NEITHER: ""}[self]

    def gain(self, change: float) -> float:
        """Return a change of the metric as a gain: below 0 for the worse, 0 without a better direction.

        `change` is above 0 for more: a difference of levels, the logarithm of a ratio, or a ratio less 1.
        """
        return {Better.HIGHER: change, Better.LOWER: -change, Better.NEITHER: 0.0}[self]


class Role(StrEnum):
    """The purpose of a metric. Metrics beside a verdict are shown in the order of roles, then of rows."""

    THROUGHPUT = "throughput"
    """Work per second. A change of a cost per query can explain a change of throughput."""

    COST = "cost"
    """The cost of a query. A change of throughput that no cost explains may be due to a stall."""

    LATENCY = "latency"
    VARIATION = "variation"
    """How much throughput varies from second to second within a step."""

    CONNECTIONS = "connections"
    """The cost of a connection that is open."""

    RESET = "reset"
    """The duration of the reset after a step, and the state before and after it."""

    CONTEXT = "context"
    """The amount of work, and other activity on the machine."""


class CountedBy(StrEnum):
    """What counts a metric for fixed work."""

    CALLGRIND = "callgrind"
    PROOF = "proof"
    """A proof of equal work (suites/counting/fixed_work.py)."""


@dataclass(frozen=True)
class RoundScatter:
    """What is known, before anything is measured, of how log ratios of single rounds of a metric scatter."""

    least: float
    """The smallest standard deviation that rounds can have."""

    typical: float
    spread: float
    """The prior of the standard deviation is lognormal: `typical` times e to the power of +-2 `spread` in 95
    of 100 cases."""

    wobble: float
    """The standard deviation of the lasting difference between builds of code that does the same work."""

    rounds: int
    """The rounds of a version before anything is concluded from them."""

    least_threshold: float
    """The smallest change that can be searched for: 5 standard deviations between equal commits."""


TIMED = RoundScatter(least=0.004, typical=0.025, spread=0.7, wobble=0.003, rounds=3, least_threshold=0.015)
"""Of what is timed: 0.6 to 10 % a round, and the layout of code in memory."""

COUNTED = RoundScatter(
    least=0.0005, typical=0.001, spread=0.5, wobble=0.001, rounds=2, least_threshold=0.0025
)
"""Of what is counted for fixed work: 0.1 % a pass (docs/instructions.md). A single pass cannot be slow by
chance, but it can have failed to do the work, so that the ends of a range have two. Where a search found
nothing between commits, their levels differed by 0.001 to 0.055 % (docs/decisions/0096)."""


_YEARS = 1e8
"""Seconds, three years: longer than any step, reset or transaction."""

_RATE = 1e9
"""Queries, transactions or connects per second that no server finishes."""

_MOST: Mapping[str, float] = {
    "s": _YEARS,
    "ms": _YEARS * 1000,
    **dict.fromkeys(("queries/s", "transactions/s", "connects/s"), _RATE),
}
"""The largest plausible value in a unit."""


@dataclass(frozen=True)
class Metric:
    """A quantity with its unit and direction, and how the program uses it."""

    name: str
    unit: str
    better: Better
    role: Role
    description: str

    engines: frozenset[Engine] = frozenset(Engine)
    """The engines whose servers have this metric."""

    followed: bool = False
    """Whether the metric matters by itself, for steps that record it: it has a series over nights, and is
    shown in comparisons beside the one that decides the verdict."""

    judged: bool = False
    """Whether comparisons judge it beside the verdict (history/comparison/findings/), and nights search its
    series for changes; requires `followed`."""

    buys_speed: bool = False
    """Whether more of it may be the price of a faster step, such as CPU time: there it is no finding."""

    beside_of: str = QPS
    """The primary metric of the suites in whose comparisons it is shown. Beside OPERATION_TIME, which other
    tools alone report, it has a series in imported sessions alone: in our own, whose clients wait for each
    answer, a latency repeats the throughput."""

    part_of: str = ""
    """The metric that it is a part of: where it is not known whether both are worse, that one is named."""

    imported_for: str = ""
    """The metric that this one replaces in imported sessions that do not have that metric.

    Other benchmarks measure the whole machine with vmstat and iostat, which includes the load generator."""

    threshold_percent: float | None = None
    """Its own practical threshold, in percent, where that of throughput is too small; None for that one."""

    negligible: float = 0.0
    """The difference between versions that matters to nobody, in its unit: twice of next to nothing."""

    counted_by: CountedBy | None = None
    """What counts it for fixed work: its interval is of another kind (history/comparison/exact.py), and its
    series are searched for steps by their size (history/changes/detection.py). None if it is timed. Requires
    `threshold_percent`."""

    at_equal_work: bool = False
    """Whether a query costs less of it the longer a server works, as it does of full-page images, so that the
    versions of a round are compared at equal work (suites/accounting/work_curve.py)."""

    evidence: str = ""
    """The counted metric that tells which commits are worth timing when this one changed; empty without."""

    counted_in: str = ""
    """The metric with what its events are counted in, such as transactions; empty unless it counts events.

    Rounds without any are the rule, so that it has no ratio (history/stats/event_counts.py)."""

    least: float = 0.0
    """The smallest value that it can have, in its unit: below zero only where something can shrink."""

    limit: float | None = None
    """The largest plausible value, in its unit, where that is less than the unit allows (see `most`)."""

    @property
    def most(self) -> float:
        """The largest plausible value, in its unit: of most units what no machine counts up to."""
        return _MOST.get(self.unit, 1e18) if self.limit is None else self.limit

    @property
    def is_counted(self) -> bool:
        """Whether it is counted for fixed work instead of timed."""
        return self.counted_by is not None

    @property
    def scatter(self) -> RoundScatter:
        """How its rounds scatter, for searches that begin without any."""
        return COUNTED if self.is_counted else TIMED

    def threshold(self, timed: float) -> float:
        """Return the fraction beyond which it has changed: its own, else `timed`, that of throughput."""
        return timed if self.threshold_percent is None else self.threshold_percent / 100

    def threshold_at(self, base: float, threshold: float) -> float:
        """Return a threshold, a fraction, or what a negligible difference is of a base's value, if more."""
        return max(threshold, self.negligible / base) if base > 0 else threshold

    def is_plausible(self, value: float) -> bool:
        """Whether it can have a value: a number from `least` to `most`, and so neither infinite nor NaN."""
        return self.least <= value <= self.most

    def refusal(self, value: float) -> str:
        """What is wrong with a value that is not plausible."""
        if not math.isfinite(value):
            return f"not a finite number: {self.name}"
        return f"{self.name} cannot be {value:g} {self.unit}: it lies from {self.least:g} to {self.most:g}"


# --- the rows

_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_THROUGHPUT, _COST, _LATENCY, _VARIATION = Role.THROUGHPUT, Role.COST, Role.LATENCY, Role.VARIATION
_RESET, _CONTEXT, _CONNECTIONS = Role.RESET, Role.CONTEXT, Role.CONNECTIONS
_POSTGRES, _INNODB = frozenset({Engine.POSTGRES}), frozenset({Engine.MYSQL, Engine.MARIADB})

_SECONDS, _SHARE, _PAGES = 0.05, 0.01, 8 * 8192
"""Seconds of a reset, a share of pages, and bytes of log, tables and indexes that matter to nobody."""

_FILES = 4 * 2**24
"""Likewise: files of a log and of undo grow by 16 MiB or more at once, and as often as chance has it."""

_PER_CONNECTION = "KiB/connection"

_WRITTEN_PERCENT = 1.0
"""The practical threshold of bytes that are written for fixed work."""

_WRITTEN_BYTES = 8
"""Those per transaction or query that are none: a record of the log has a header of 24."""


def _seconds_beyond(limit: int) -> Metric:
    return Metric(
        f"seconds_beyond_{limit}_ms",
        "s",
        _LOWER,
        _CONTEXT,
        f"seconds of work in which a transaction ended that took longer than {limit} ms",
        counted_in=SECONDS,
    )


def _written(name: str, what: str, engines: frozenset[Engine]) -> Metric:
    return Metric(
        name,
        "bytes/transaction",
        _LOWER,
        _COST,
        f"{what} by fixed transactions of one client",
        engines=engines,
        followed=True,
        judged=True,
        threshold_percent=_WRITTEN_PERCENT,
        negligible=_WRITTEN_BYTES,
        counted_by=CountedBy.PROOF,
    )


def _transactions_beyond(name: str, limit: int) -> Metric:
    return Metric(
        name,
        "transactions",
        _LOWER,
        _CONTEXT,
        f"transactions that took longer than {limit / 1000:g} ms",
        counted_in=TRANSACTIONS,
    )


# fmt: off
_ROWS: tuple[Metric, ...] = (
    Metric(QPS, "queries/s", _HIGHER, _THROUGHPUT, "queries finished per second over the whole step",
           followed=True, judged=True, evidence=INSTRUCTIONS),
    Metric(TPS, "transactions/s", _HIGHER, _THROUGHPUT,
           "transactions finished per second over the whole step", followed=True, judged=True,
           evidence=INSTRUCTIONS),
    Metric(TRANSACTIONS, "transactions", _NEITHER, _CONTEXT, "transactions finished: the work of the step"),
    Metric(COUNTED_TRANSACTIONS, "transactions", _NEITHER, _CONTEXT,
           "transactions whose instructions a counted pass counts"),
    Metric(EQUAL_WORK, "queries", _NEITHER, _CONTEXT,
           "the first queries of the round, warm-up included, over which log and storage were counted: each"
           " version finished as many"),
    Metric(SECONDS, "s", _NEITHER, _CONTEXT, "length of the measured window"),
    Metric(OVER_LIMIT, "s", _NEITHER, _CONTEXT,
           "the limit at which a query was ended: it would have taken longer"),
    Metric(ERRORS, "errors", _LOWER, _CONTEXT, "failed or retried transactions", counted_in=TRANSACTIONS),
    Metric("retried_serialisation", "transactions", _LOWER, _CONTEXT,
           "transactions that a serialisation failure rolled back, and that were begun again",
           counted_in=TRANSACTIONS),
    Metric("retried_deadlock", "transactions", _LOWER, _CONTEXT,
           "transactions that a deadlock rolled back, and that were begun again", counted_in=TRANSACTIONS),
    Metric("retried_duplicate_key", "transactions", _LOWER, _CONTEXT,
           "transactions that a duplicate key rolled back, and that were begun again",
           counted_in=TRANSACTIONS),
    Metric("failed_serialisation", "transactions", _LOWER, _CONTEXT,
           "transactions that a serialisation failure ended, and that were not begun again",
           engines=_POSTGRES, counted_in=TRANSACTIONS),
    Metric("failed_deadlock", "transactions", _LOWER, _CONTEXT,
           "transactions that a deadlock ended, and that were not begun again", engines=_POSTGRES,
           counted_in=TRANSACTIONS),
    Metric(DEADLOCKS, "transactions", _LOWER, _CONTEXT,
           "transactions that the server rolled back because of a deadlock, those of the warm-up included",
           counted_in=TRANSACTIONS),
    Metric(REFUSED, "transactions", _NEITHER, _CONTEXT,
           "transactions that the application itself ended without committing", counted_in=TRANSACTIONS),
    Metric("late_seconds", "s", _LOWER, _CONTEXT,
           "at a rate, the most that a transaction began later than it was due"),
    Metric(OVERLOADED, "ratio", _LOWER, _CONTEXT, "at a rate, 1 if the server did not keep up, else 0",
           limit=1.0),
    Metric("background_share", "ratio", _HIGHER, _CONTEXT,
           "transactions beside the measured ones, carried out of those due: the least of all kinds",
           limit=1.0, followed=True),
    Metric("most_apart", "transactions", _LOWER, _CONTEXT,
           "the most transactions by which one kind was ahead of another that keeps pace with it"),
    Metric(START, "s", _LOWER, _CONTEXT,
           "start of the server from the loaded data, until it accepts connections", followed=True,
           threshold_percent=25, negligible=0.05),
    Metric(FIRST_ANSWER, "s", _LOWER, _CONTEXT,
           "from then until the first query is answered, on a connection of its own", followed=True),
    Metric(CONNECT, "ms", _LOWER, _CONTEXT,
           "connecting, one statement and disconnecting, before the load: the median", followed=True,
           threshold_percent=10, negligible=0.1),
    Metric(RECOVERY, "s", _LOWER, _RESET,
           "start of the server after the same transactions and a crash, until it accepts connections",
           followed=True, threshold_percent=30, negligible=0.1),
    Metric(PROVED_ROWS, "rows", _NEITHER, _CONTEXT,
           "rows that are those of the base after the transactions of a counted pass and a crash"),
    Metric("check_seconds", "s", _LOWER, _CONTEXT,
           "asking the checks of the suite, which is not part of the step"),

    Metric(MEAN_LATENCY, "ms", _LOWER, _LATENCY, "mean latency of a transaction", followed=True, judged=True,
           beside_of=OPERATION_TIME),
    Metric("latency_p50_ms", "ms", _LOWER, _LATENCY, "median latency of a transaction"),
    Metric("latency_p95_ms", "ms", _LOWER, _LATENCY, "95th percentile of transaction latency"),
    Metric(TAIL_LATENCY, "ms", _LOWER, _LATENCY, "99th percentile of transaction latency", followed=True),
    Metric("latency_p999_ms", "ms", _LOWER, _LATENCY, "99.9th percentile of transaction latency"),
    Metric(SLOWEST, "ms", _LOWER, _LATENCY, "slowest transaction"),
    Metric(SECOND_LATENCY, "ms", _LOWER, _LATENCY,
           "slowest transaction in each second of work: the median over the seconds"),

    *map(_seconds_beyond, STALL_LIMITS_MS),
    *map(_transactions_beyond, TAIL_LIMITS, TAIL_LIMITS_US),
    Metric(SLOWEST_SECOND, "s", _NEITHER, _CONTEXT,
           "second of the step's work, from 1, in which its slowest transaction ended"),
    Metric(FIRST_THIRD, "queries/s", _HIGHER, _CONTEXT,
           "queries finished per second in the first third of the seconds of the step"),
    Metric(LAST_THIRD, "queries/s", _HIGHER, _CONTEXT,
           "queries finished per second in the last third of the seconds of the step"),

    Metric(VARIATION, "ratio", _LOWER, _VARIATION, "coefficient of variation of the per-second throughput",
           followed=True),
    Metric("qps_p1_over_median", "ratio", _HIGHER, _VARIATION,
           "1st percentile of per-second throughput over its median", followed=True, limit=1.0),
    Metric(DETRENDED, "ratio", _LOWER, _VARIATION,
           "coefficient of variation of the per-second throughput around its trend, without the tenth of the"
           " seconds that is furthest from it", followed=True),
    Metric(WORST_SECOND, "ratio", _HIGHER, _VARIATION, "throughput of the worst second over its trend",
           followed=True, limit=1.0),

    Metric(SERVER_CPU, "µs/query", _LOWER, _COST, "CPU time of all server processes per query", followed=True,
           judged=True, buys_speed=True, evidence=INSTRUCTIONS),
    Metric(CLIENT_CPU, "µs/query", _LOWER, _COST, "CPU time of the load generator per query", followed=True),
    Metric("machine_cpu_us_per_op", "µs/query", _LOWER, _COST, "busy CPU time of the whole machine per query",
           imported_for=SERVER_CPU),
    Metric(SERVER_SWITCHES, "switches/query", _LOWER, _COST, "context switches of the server per query",
           followed=True),
    Metric("client_cs_per_op", "switches/query", _LOWER, _COST,
           "context switches of the load generator per query"),
    Metric("machine_cs_per_op", "switches/query", _LOWER, _COST,
           "context switches of the whole machine per query", imported_for=SERVER_SWITCHES),
    Metric("server_read_kb_per_op", "KiB/query", _LOWER, _COST,
           "read from storage by server processes per query", followed=True, negligible=0.05,
           at_equal_work=True),
    Metric(SERVER_WRITTEN, "KiB/query", _LOWER, _COST, "sent to storage by server processes per query",
           followed=True, judged=True, threshold_percent=5, negligible=0.05, at_equal_work=True),
    Metric("client_read_kb_per_op", "KiB/query", _LOWER, _COST,
           "read from storage by the load generator per query"),
    Metric("client_written_kb_per_op", "KiB/query", _LOWER, _COST,
           "sent to storage by the load generator per query"),
    Metric("machine_reads_per_op", "reads/query", _LOWER, _COST, "read requests of all disks per query"),
    Metric("machine_read_kb_per_op", "KiB/query", _LOWER, _COST, "read by all disks per query",
           imported_for="server_read_kb_per_op"),
    Metric("machine_written_kb_per_op", "KiB/query", _LOWER, _COST, "written by all disks per query",
           imported_for=SERVER_WRITTEN),
    Metric(WAL_BYTES, "bytes/query", _LOWER, _COST,
           "write-ahead or redo log written during the step per query", followed=True, judged=True,
           negligible=_WRITTEN_BYTES, at_equal_work=True),
    Metric("binlog_bytes_per_op", "bytes/query", _LOWER, _COST,
           "binary log written during the step per query", engines=_INNODB, followed=True),
    # Of pairs alone: every version of such a session has them, 0 without a companion.
    Metric("companion_cpu_us_per_op", "µs/query", _LOWER, _COST,
           "CPU time of pooler and consumers per query, which is not the server's", followed=True),
    Metric(HARDWARE_INSTRUCTIONS, "instructions/query", _LOWER, _COST,
           "instructions in user code of all server processes per query in the rounds, where the machine has"
           " counters", followed=True, judged=True, buys_speed=True),
    Metric(INSTRUCTIONS, "instructions/query", _LOWER, _COST,
           "instructions of the client's backend or connection thread per query, in user code, counted under"
           " callgrind for fixed work", followed=True, judged=True, threshold_percent=0.5,
           counted_by=CountedBy.CALLGRIND),
    *starmap(_written, (
        (WAL_RECORDS, "WAL without images of pages written", _POSTGRES),
        (WAL_IMAGES, "images of pages in the WAL written", _POSTGRES),
        (REDO_BYTES, "redo log written", _INNODB),
        (BINLOG_BYTES, "binary log written", _INNODB),
    )),
    Metric(LOG_SYNCS, "syncs/commit", _NEITHER, _CONTEXT,
           "system calls that made the log durable, per commit that wrote, with full durability",
           followed=True),
    Metric("pages_flushed_per_op", "pages/query", _LOWER, _COST,
           "InnoDB pages written from the buffer pool per query", engines=_INNODB),

    # It is about zero, so that it has no ratio: history/comparison/findings/memory_growth.py judges it.
    Metric(MEMORY_GROWTH, "bytes/query", _LOWER, _CONTEXT,
           "growth of the private memory of all server processes per query, in the second half of the work",
           least=-1e12, limit=1e12),
    Metric(SERVER_MEMORY, "bytes", _LOWER, _CONTEXT,
           "private memory of all server processes together in the second half of the work, without pages of"
           " the buffer pool: the median", followed=True, judged=True, threshold_percent=10,
           negligible=2**20),
    Metric(BUFFER_POOL, "bytes", _NEITHER, _CONTEXT,
           "memory of the buffer pool that pages have used since the start of the server", engines=_INNODB),

    Metric(CONNECTION_KIB, _PER_CONNECTION, _LOWER, _CONNECTIONS,
           "memory of the server per open connection, with page tables, without shared memory", followed=True,
           judged=True, beside_of=CONNECTION_KIB),
    Metric(CONNECTION_LOW, _PER_CONNECTION, _NEITHER, _CONNECTIONS, "lower end of that slope's interval",
           followed=True, beside_of=CONNECTION_KIB),
    Metric(CONNECTION_HIGH, _PER_CONNECTION, _NEITHER, _CONNECTIONS, "upper end of that slope's interval",
           followed=True, beside_of=CONNECTION_KIB),
    Metric(CONNECTION_TABLES, _PER_CONNECTION, _LOWER, _CONNECTIONS, "the page tables in it", followed=True,
           beside_of=CONNECTION_KIB),
    Metric(CONNECTION_RSS, _PER_CONNECTION, _LOWER, _CONNECTIONS, "RSS of the server per open connection",
           followed=True, beside_of=CONNECTION_KIB),
    Metric(CONNECTS, "connects/s", _HIGHER, _CONNECTIONS, "connections opened per second, many at once",
           followed=True, beside_of=CONNECTION_KIB),
    Metric(CONNECTION_STATEMENTS, "statements", _NEITHER, _CONNECTIONS, "prepared by each connection",
           followed=True, beside_of=CONNECTION_KIB),

    # When the load ends, before any server is reset.
    Metric("debt_dead_tuples", "tuples", _LOWER, _RESET, "dead tuples, which vacuum had yet to remove",
           engines=_POSTGRES, followed=True),
    Metric("debt_history", "transactions", _LOWER, _RESET,
           "length of the history list, which InnoDB had yet to purge", engines=_INNODB, followed=True),
    Metric(BEFORE["table_bytes"], "bytes", _LOWER, _RESET,
           "tables without their indexes when the reset began", followed=True),
    Metric(BEFORE["index_bytes"], "bytes", _LOWER, _RESET, "indexes when the reset began", followed=True),
    Metric(BEFORE[LOG_BYTES], "bytes", _LOWER, _RESET,
           "files of the write-ahead or redo log when the reset began", followed=True),
    Metric(BEFORE[UNDO_BYTES], "bytes", _LOWER, _RESET,
           "undo tablespaces and system tablespace when the reset began", engines=_INNODB, followed=True),
    Metric("reset_seconds", "s", _LOWER, _RESET, "the whole reset after the step", followed=True, judged=True,
           threshold_percent=20, negligible=_SECONDS),
    Metric("reset_vacuum_seconds", "s", _LOWER, _RESET, "VACUUM (ANALYZE) of all tables after the step",
           engines=_POSTGRES, followed=True, judged=True, threshold_percent=30, negligible=_SECONDS,
           part_of="reset_seconds"),
    Metric("reset_checkpoint_seconds", "s", _LOWER, _RESET, "CHECKPOINT after the vacuum", engines=_POSTGRES),
    Metric("reset_wal_bytes", "bytes", _LOWER, _RESET, "write-ahead or redo log written by the reset",
           followed=True, judged=True, threshold_percent=20, negligible=_PAGES),
    Metric(DEAD_TUPLES, "tuples", _NEITHER, _RESET, "dead tuples when the reset began", engines=_POSTGRES),
    Metric(DEAD_TUPLES_LEFT, "tuples", _LOWER, _RESET, "dead tuples that the reset could not remove",
           engines=_POSTGRES, counted_in=DEAD_TUPLES),
    Metric(DEAD_ITEMS, "row versions", _NEITHER, _RESET,
           "row versions that the vacuum met and indexes referred to in vain", engines=_POSTGRES,
           followed=True),
    Metric(DEAD_ITEMS_LEFT, "row versions", _LOWER, _RESET,
           "those of them that the vacuum left, and in the indexes", engines=_POSTGRES,
           counted_in=DEAD_ITEMS),
    Metric(NOT_VISIBLE, "ratio", _LOWER, _RESET,
           "pages that the reset left without the mark of all-visible, which the next vacuum reads again",
           engines=_POSTGRES, followed=True, judged=True, threshold_percent=20, negligible=_SHARE, limit=1.0),
    Metric(NOT_FROZEN, "ratio", _LOWER, _RESET,
           "pages that the reset left without the mark of all-frozen, which a later vacuum must freeze",
           engines=_POSTGRES, followed=True, judged=True, threshold_percent=20, negligible=_SHARE, limit=1.0),
    Metric("reset_purge_seconds", "s", _LOWER, _RESET, "waiting until InnoDB has purged old row versions",
           engines=_INNODB),
    Metric("reset_flush_seconds", "s", _LOWER, _RESET, "waiting until InnoDB has written its dirty pages",
           engines=_INNODB),
    Metric("reset_history_before", "transactions", _NEITHER, _RESET,
           "length of the history list when the reset began", engines=_INNODB),
    Metric("reset_history_after", "transactions", _LOWER, _RESET,
           "length of the history list that purge left", engines=_INNODB),
    Metric(HISTORY_LEFT, "transactions", _LOWER, _RESET,
           "transactions whose old row versions purge did not remove in time; 0 if only as many are left as"
           " the reset accepts", engines=_INNODB, counted_in=TRANSACTIONS),
    Metric(DIRTY_PAGES, "pages", _NEITHER, _RESET, "dirty pages when the reset began", engines=_INNODB),
    Metric("reset_dirty_pages_after", "pages", _LOWER, _RESET, "dirty pages that the reset left",
           engines=_INNODB),
    Metric(DIRTY_LEFT, "pages", _LOWER, _RESET,
           "pages that were not written in time; 0 if only as many are left as the reset accepts",
           engines=_INNODB, counted_in=DIRTY_PAGES),
    Metric("table_bytes", "bytes", _LOWER, _RESET, "tables without their indexes after the reset",
           followed=True, judged=True, negligible=_PAGES),
    Metric("index_bytes", "bytes", _LOWER, _RESET, "indexes after the reset", followed=True, judged=True,
           negligible=_PAGES),
    Metric(LOG_BYTES, "bytes", _LOWER, _RESET, "files of the write-ahead or redo log after the reset",
           followed=True, judged=True, negligible=_FILES),
    Metric(UNDO_BYTES, "bytes", _LOWER, _RESET, "undo tablespaces and system tablespace after the reset",
           engines=_INNODB, followed=True, judged=True, negligible=_FILES),

    Metric("companion_lag_bytes", "bytes", _LOWER, _CONTEXT,
           "log of the server that its consumers had yet to get when the load ended", followed=True),

    Metric("machine_steal_share", "ratio", _LOWER, _CONTEXT,
           "wanted CPU time that the host of a virtual machine withheld", limit=1.0),
    Metric("others_cpu_share", "ratio", _LOWER, _CONTEXT,
           "CPU time of processes that are not ours, in cores"),

    Metric(STATEMENT_SECONDS, "s", _LOWER, _CONTEXT,
           "the one transaction of a timed step, such as building indexes", followed=True),
    Metric(OPERATION_TIME, "ms", _LOWER, _CONTEXT,
           "mean time of an operation, as other tools report it instead of a rate", followed=True,
           judged=True, beside_of=OPERATION_TIME),
)
# fmt: on

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ROWS}
"""Every metric that a step can record, by name. A step records those of its engine and generator."""

RETIRED: Mapping[str, str] = {"latency_geometric_mean_ms": "ms"}
"""The units of metrics that only older histories have, by name."""


# --- what follows from the rows

EVENTS: tuple[str, ...] = tuple(name for name, metric in METRICS.items() if metric.counted_in)
"""The metrics of events that are rare or absent, judged by counts."""

RESET_COSTS = frozenset({"reset_seconds", "reset_vacuum_seconds", "reset_wal_bytes"})
"""The metrics of what a reset takes."""

RESET_LEFT = frozenset(
    name for name, metric in METRICS.items() if metric.role is _RESET and metric.better is _LOWER
) - {*RESET_COSTS, RECOVERY}
"""Those of what is left to do. A reset that takes less and leaves more is no better (docs/verdicts.md)."""


def of_role(*roles: Role) -> tuple[str, ...]:
    """Return the metrics with one of these roles, in the order of the rows."""
    return tuple(name for name, metric in METRICS.items() if metric.role in roles)


def followed_metrics() -> tuple[str, ...]:
    """Return the metrics that have a series over nights, in the order of the rows."""
    return tuple(name for name, metric in METRICS.items() if metric.followed)


def judged_metrics() -> tuple[str, ...]:
    """Return the metrics whose series are searched for changes, in the order of the rows."""
    return tuple(name for name, metric in METRICS.items() if metric.judged)


def metrics_at_equal_work() -> tuple[str, ...]:
    """Return the metrics of which a query costs less the longer a server works, in the order of the rows."""
    return tuple(name for name, metric in METRICS.items() if metric.at_equal_work)


def beside_verdict(engines: Collection[Engine] = tuple(Engine), primary: str = PRIMARY) -> tuple[str, ...]:
    """Return the metrics shown beside a verdict that at least one of `engines` has.

    They are those of suites with this `primary` metric, ordered by role, then as the rows are.
    """
    shown = [
        metric
        for metric in METRICS.values()
        if metric.followed
        and metric.name not in PRIMARIES
        and metric.beside_of == primary
        and not metric.engines.isdisjoint(engines)
    ]
    order = list(Role)
    return tuple(metric.name for metric in sorted(shown, key=lambda metric: order.index(metric.role)))
