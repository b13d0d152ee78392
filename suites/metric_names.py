"""The names of metrics that code refers to, and groups of them; their rows are in metric_rows.py."""

from suites.metric import QPS

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

A load generator that measures something else has another one (suites/keys/generator_rules.py)."""

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
"""The metrics of how throughput varies around its trend (suites/turns/detrended.py)."""

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
