"""What metrics are called in tables, charts and sentences: one entry of words for each that is shown."""

from collections.abc import Mapping
from dataclasses import dataclass

from suites.metrics import (
    BEFORE,
    BINLOG_BYTES,
    CLIENT_CPU,
    CONNECT,
    CONNECTION_HIGH,
    CONNECTION_KIB,
    CONNECTION_LOW,
    CONNECTION_RSS,
    CONNECTION_STATEMENTS,
    CONNECTION_TABLES,
    CONNECTS,
    DEAD_ITEMS,
    DEAD_ITEMS_LEFT,
    DEAD_TUPLES,
    DEAD_TUPLES_LEFT,
    DEADLOCKS,
    DETRENDED,
    DIRTY_LEFT,
    DIRTY_PAGES,
    ERRORS,
    FIRST_ANSWER,
    HARDWARE_INSTRUCTIONS,
    HISTORY_LEFT,
    INSTRUCTIONS,
    LOG_BYTES,
    LOG_SYNCS,
    MEAN_LATENCY,
    METRICS,
    NOT_FROZEN,
    NOT_VISIBLE,
    OPERATION_TIME,
    RECOVERY,
    REDO_BYTES,
    REFUSED,
    SERVER_CPU,
    SERVER_MEMORY,
    SERVER_SWITCHES,
    SERVER_WRITTEN,
    STALL_LIMITS,
    STALL_LIMITS_MS,
    START,
    STATEMENT_SECONDS,
    TAIL_LATENCY,
    TAIL_LIMITS,
    TAIL_LIMITS_US,
    UNDO_BYTES,
    VARIATION,
    WAL_BYTES,
    WAL_IMAGES,
    WAL_RECORDS,
    WORST_SECOND,
    Role,
)


@dataclass(frozen=True)
class Words:
    """The words for a metric, and those for its events if it counts any."""

    label: str = ""
    """The name in running text; empty if that is the metric's own (see label_of)."""

    noun: str = ""
    """What there is more or fewer of, as in `4.9 % more instructions`; empty if the label says it."""

    subject: str = ""
    """What of a step is slower or faster by a duration, as in `reset of insert`; empty for other metrics."""

    column: str = ""
    """The narrow heading of its column in the table of verdicts; empty for a metric without a column."""

    gives_way: int = 0
    """The order, from 1, in which a narrow terminal drops columns; a column with 0 is never dropped."""

    legend: str = ""
    """The explanation below the table of its column, or of its label; empty if none is needed."""

    event: str = ""
    """What its events are, after their number and what they were counted in: `failed`."""

    events: str = ""
    """What its events are, in a word or two: `errors`."""


WORDS: Mapping[str, Words] = {
    ERRORS: Words(event="failed or were begun again", events="errors"),
    "retried_serialisation": Words(
        event="were begun again after a serialisation failure (40001; MySQL and MariaDB: 1020)",
        events="errors",
    ),
    "retried_deadlock": Words(
        event="were begun again after a deadlock (40P01; MySQL and MariaDB: 1213)", events="errors"
    ),
    "retried_duplicate_key": Words(
        event="were begun again after a duplicate key (23505; MySQL and MariaDB: 1062)", events="errors"
    ),
    "failed_serialisation": Words(event="failed with a serialisation failure (40001)", events="errors"),
    "failed_deadlock": Words(event="failed with a deadlock (40P01)", events="errors"),
    DEADLOCKS: Words(event="ended in a deadlock, by the server's count", events="deadlock victims"),
    REFUSED: Words(event="were ended by the application without committing", events="refusals"),
    "background_share": Words("background, done of due"),
    START: Words("start"),
    FIRST_ANSWER: Words("first answer"),
    CONNECT: Words("connect"),
    RECOVERY: Words("recovery after a crash"),
    MEAN_LATENCY: Words("mean latency"),
    TAIL_LATENCY: Words("p99 latency", column="p99", gives_way=5, legend="p99 latency"),
    VARIATION: Words("cv", column="cv", gives_way=2, legend="cv, how much QPS varies from second to second"),
    "qps_p1_over_median": Words(
        "p1/median", legend="1st percentile over median of QPS from second to second"
    ),
    DETRENDED: Words("cv without trend"),
    WORST_SECOND: Words("worst second"),
    SERVER_CPU: Words("server CPU", column="CPU", legend="CPU time of the server"),
    CLIENT_CPU: Words("client CPU"),
    "machine_cpu_us_per_op": Words("machine CPU", column="CPU"),
    # Context switches are mostly proportional to CPU time, so that their column is dropped first.
    SERVER_SWITCHES: Words("context switches", column="cs", gives_way=1, legend="its context switches (cs)"),
    "machine_cs_per_op": Words("machine's context switches", column="cs"),
    "server_read_kb_per_op": Words("read"),
    SERVER_WRITTEN: Words("written", column="wrt", gives_way=3, legend="KiB written (wrt)"),
    "machine_read_kb_per_op": Words("read by all disks"),
    "machine_written_kb_per_op": Words("written by all disks", column="wrt"),
    WAL_BYTES: Words("WAL or redo", column="WAL", gives_way=4, legend="WAL or redo bytes"),
    "binlog_bytes_per_op": Words("binary log"),
    "companion_cpu_us_per_op": Words("companion CPU"),
    HARDWARE_INSTRUCTIONS: Words("hardware instructions"),
    INSTRUCTIONS: Words(
        "exact instructions",
        noun="instructions",
        column="instr",
        legend="exact instructions (instr) under callgrind",
    ),
    WAL_RECORDS: Words("WAL records"),
    WAL_IMAGES: Words("WAL page images"),
    REDO_BYTES: Words("redo of fixed work"),
    BINLOG_BYTES: Words("binary log of fixed work"),
    LOG_SYNCS: Words("log flushes per commit"),
    SERVER_MEMORY: Words("server memory"),
    CONNECTION_KIB: Words("memory per connection"),
    CONNECTION_LOW: Words("low end of the slope"),
    CONNECTION_HIGH: Words("high end of the slope"),
    CONNECTION_TABLES: Words("page tables"),
    CONNECTION_RSS: Words("RSS", column="RSS", legend="RSS as top shows it"),
    CONNECTS: Words("connects", column="conn/s", legend="connects per second (conn/s)"),
    CONNECTION_STATEMENTS: Words("prepared statements"),
    "debt_dead_tuples": Words("vacuum debt"),
    "debt_history": Words("purge debt"),
    BEFORE["table_bytes"]: Words("table bytes before the reset"),
    BEFORE["index_bytes"]: Words("index bytes before the reset"),
    BEFORE[LOG_BYTES]: Words("WAL or redo files before the reset"),
    BEFORE[UNDO_BYTES]: Words("undo bytes before the reset"),
    "reset_seconds": Words("reset seconds", subject="reset"),
    "reset_vacuum_seconds": Words("vacuum seconds", subject="vacuum"),
    "reset_wal_bytes": Words("WAL or redo of the reset"),
    DEAD_TUPLES: Words("dead tuples"),
    DEAD_TUPLES_LEFT: Words(event="were left by the vacuum", events="dead rows left"),
    DEAD_ITEMS: Words("dead row versions"),
    DEAD_ITEMS_LEFT: Words(
        event="were left in the indexes by the vacuum", events="dead rows left in indexes"
    ),
    NOT_VISIBLE: Words("pages not all-visible"),
    NOT_FROZEN: Words("pages not all-frozen"),
    HISTORY_LEFT: Words(
        event="left old row versions that purge did not remove in time", events="row versions left by purge"
    ),
    DIRTY_PAGES: Words("dirty pages"),
    DIRTY_LEFT: Words(event="were left by the flush", events="dirty pages left"),
    "table_bytes": Words("table bytes"),
    "index_bytes": Words("index bytes"),
    LOG_BYTES: Words("WAL or redo files"),
    UNDO_BYTES: Words("undo bytes"),
    "companion_lag_bytes": Words("consumer's lag"),
    STATEMENT_SECONDS: Words("seconds of the statement"),
    OPERATION_TIME: Words("time per operation"),
    **{
        name: Words(event=f"had a transaction of more than {limit} ms", events="slow transactions")
        for name, limit in zip(STALL_LIMITS, STALL_LIMITS_MS, strict=True)
    },
    **{
        name: Words(event=f"took longer than {limit / 1000:g} ms", events="slow transactions")
        for name, limit in zip(TAIL_LIMITS, TAIL_LIMITS_US, strict=True)
    },
}
"""By metric. Of what is recorded alone, and never shown but by its own name, there is no entry."""


def words_of(name: str) -> Words:
    """Return the words for a metric; none if it has none or is unknown to this version."""
    return WORDS.get(name, Words())


def moved_by(name: str, ratio: float) -> str:
    """Return how a metric moved, to follow its size: `slower`, `more instructions per query`."""
    metric, words = METRICS.get(name), words_of(name)
    if metric is not None and (metric.role is Role.THROUGHPUT or words.subject):
        return "slower" if metric.better.gain(ratio - 1) < 0 else "faster"
    per_query = " per query" if metric is not None and metric.unit.endswith("/query") else ""
    few = "fewer" if words.noun else "less"
    return f"{few if ratio < 1 else 'more'} {words.noun or label_of(name)}{per_query}"


def subject_of(name: str, steps: str) -> str:
    """Return what moved by a metric, to precede how: `insert`, `reset of insert and 3 more`."""
    subject = words_of(name).subject
    return f"{subject} of {steps}" if subject else steps


def label_of(name: str) -> str:
    """Return the label of a metric, or its name if it has no label or is unknown to this version."""
    return words_of(name).label or name
