"""The metric registry: one row for each quantity that a step can record, and the lists that follow from rows.

A new metric is one row of METRICS and one producer, which records a value under the row's name: a module of
`suites/accounting/`, `suites/step.py`, or the counters or the reset of an engine. Which metrics are followed
over nights, judged there, shown beside a verdict and under which heading is never listed elsewhere.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from build.version import Engine


class Better(StrEnum):
    """Which direction of a metric is the good one."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Role(StrEnum):
    """What a metric is used for. Metrics beside a verdict stand in this order, and within a role by row."""

    THROUGHPUT = "throughput"
    """Work per second: a cost per query can explain a change of it."""

    COST = "cost"
    """What a query costs. A change of throughput that no cost explains is to be doubted: a run may have
    stalled."""

    LATENCY = "latency"
    VARIATION = "variation"
    """How much throughput varies within a step, from second to second."""

    RESET = "reset"
    """What the reset after a step took, found and left."""

    CONTEXT = "context"
    """How much was done, and what else happened on the machine."""


@dataclass(frozen=True)
class Metric:
    """A quantity with its unit and direction, and all that the program does with it."""

    name: str
    unit: str
    better: Better
    role: Role
    description: str

    engines: frozenset[Engine] = frozenset(Engine)
    """The engines whose servers have such a quantity."""

    followed: bool = False
    """Whether there is a series of it over nights, as far as a step records it."""

    judged: bool = False
    """Whether changes are looked for in its series; it has to be followed."""

    beside: bool = False
    """Whether it is compared beside the judged metric."""

    label: str = ""
    """What people call it; empty where they use its name (label_of)."""

    column: str = ""
    """Narrow heading of its column in the table of verdicts; empty for a metric that has no column there."""

    gives_way: int = 0
    """When its column makes room in a narrow terminal: 1 goes first. 0 never goes."""

    legend: str = ""
    """How the lines below a table explain its column, or else its label; empty where nobody has to ask."""

    imported_for: str = ""
    """The metric that it stands for in sessions that were imported, where that one was not recorded.

    Other people measure the whole machine, with vmstat and iostat; the load generator is in it."""

    short_name: str = ""
    """What `bisect --metric` takes for it besides its name."""

    least: float = 0.0
    """The smallest value that it can have, in its unit: none of them can be negative."""

    most: float = 1e18
    """The largest plausible value, in its unit. Unless a row says less, what no machine counts up to."""

    def is_plausible(self, value: float) -> bool:
        """Whether it can have a value: a number from `least` to `most`, and so neither infinite nor NaN."""
        return self.least <= value <= self.most

    def refusal(self, value: float) -> str:
        """What is wrong with a value that is not plausible."""
        if not math.isfinite(value):
            return f"not a finite number: {self.name}"
        return f"{self.name} cannot be {value:g} {self.unit}: it lies from {self.least:g} to {self.most:g}"


_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_THROUGHPUT, _COST, _LATENCY, _VARIATION = Role.THROUGHPUT, Role.COST, Role.LATENCY, Role.VARIATION
_RESET, _CONTEXT = Role.RESET, Role.CONTEXT
_POSTGRES, _MYSQL = frozenset({Engine.POSTGRES}), frozenset({Engine.MYSQL})

_RATE = 1e9
"""Queries or transactions per second that no server finishes."""

_YEARS = 1e8
"""Seconds, three years: longer than any step, reset or transaction."""

QPS = "qps"

PRIMARY = QPS
"""The primary metric: what is compared when nobody asks for another one, and what a session's rounds go on
for until it is decided."""

# fmt: off
_ROWS = (
    Metric(QPS, "queries/s", _HIGHER, _THROUGHPUT, "queries finished per second over the whole step",
           followed=True, judged=True, most=_RATE),
    Metric("tps", "transactions/s", _HIGHER, _THROUGHPUT,
           "transactions finished per second over the whole step", most=_RATE),
    Metric("transactions", "transactions", _NEITHER, _CONTEXT, "transactions finished: the work of the step"),
    Metric("seconds", "s", _NEITHER, _CONTEXT, "length of the measured window", most=_YEARS),
    Metric("errors", "errors", _LOWER, _CONTEXT, "failed or retried transactions"),

    Metric("latency_mean_ms", "ms", _LOWER, _LATENCY, "mean latency of a transaction",
           most=_YEARS * 1000),
    Metric("latency_p50_ms", "ms", _LOWER, _LATENCY, "median latency of a transaction",
           most=_YEARS * 1000),
    Metric("latency_p95_ms", "ms", _LOWER, _LATENCY, "95th percentile of transaction latency",
           most=_YEARS * 1000),
    Metric("latency_p99_ms", "ms", _LOWER, _LATENCY, "99th percentile of transaction latency",
           followed=True, beside=True, label="p99 latency", column="p99", gives_way=5, legend="p99 latency",
           most=_YEARS * 1000),
    Metric("latency_p999_ms", "ms", _LOWER, _LATENCY, "99.9th percentile of transaction latency",
           most=_YEARS * 1000),
    Metric("latency_max_ms", "ms", _LOWER, _LATENCY, "slowest transaction",
           most=_YEARS * 1000),

    # A step that varies more is named below the table as well.
    Metric("qps_cv", "ratio", _LOWER, _VARIATION, "coefficient of variation of the per-second throughput",
           followed=True, beside=True, label="cv", column="cv", gives_way=2,
           legend="cv, how much QPS varies from second to second"),
    Metric("qps_p1_over_median", "ratio", _HIGHER, _VARIATION,
           "1st percentile of per-second throughput over its median",
           beside=True, label="p1/median", legend="1st percentile over median of QPS from second to second",
           most=1.0),

    Metric("server_cpu_us_per_op", "µs/query", _LOWER, _COST, "CPU time of all server processes per query",
           followed=True, judged=True, beside=True, label="server CPU", column="CPU",
           legend="CPU time of the server", short_name="cpu-per-op"),
    Metric("client_cpu_us_per_op", "µs/query", _LOWER, _COST, "CPU time of the load generator per query",
           followed=True, beside=True, label="client CPU"),
    Metric("machine_cpu_us_per_op", "µs/query", _LOWER, _COST, "busy CPU time of the whole machine per query",
           label="machine CPU", column="CPU", imported_for="server_cpu_us_per_op"),
    # Context switches mostly follow CPU, so that their column is the first to go.
    Metric("server_cs_per_op", "switches/query", _LOWER, _COST, "context switches of the server per query",
           followed=True, beside=True, label="context switches", column="cs", gives_way=1,
           legend="its context switches (cs)", short_name="cs-per-op"),
    Metric("client_cs_per_op", "switches/query", _LOWER, _COST,
           "context switches of the load generator per query"),
    Metric("machine_cs_per_op", "switches/query", _LOWER, _COST,
           "context switches of the whole machine per query",
           label="machine's context switches", column="cs", imported_for="server_cs_per_op"),
    Metric("server_read_kb_per_op", "KiB/query", _LOWER, _COST,
           "read from storage by server processes per query", followed=True, beside=True, label="read"),
    Metric("server_written_kb_per_op", "KiB/query", _LOWER, _COST,
           "sent to storage by server processes per query",
           followed=True, judged=True, beside=True, label="written", column="wrt", gives_way=3,
           legend="KiB written (wrt)", short_name="written-per-op"),
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
           followed=True, judged=True, beside=True, label="WAL or redo", column="WAL", gives_way=4,
           legend="WAL or redo bytes", short_name="wal-per-op"),
    Metric("server_instructions_per_op", "instructions/query", _LOWER, _COST,
           "instructions of all server processes per query, where the machine has counters",
           followed=True, judged=True, beside=True, label="instructions", short_name="instructions-per-op"),
    Metric("pages_flushed_per_op", "pages/query", _LOWER, _COST,
           "InnoDB pages written from the buffer pool per query", engines=_MYSQL),

    Metric("reset_seconds", "s", _LOWER, _RESET, "the whole reset after the step",
           followed=True, judged=True, most=_YEARS),
    Metric("reset_vacuum_seconds", "s", _LOWER, _RESET, "VACUUM (ANALYZE) of all tables after the step",
           engines=_POSTGRES, most=_YEARS),
    Metric("reset_checkpoint_seconds", "s", _LOWER, _RESET, "CHECKPOINT after the vacuum", engines=_POSTGRES,
           most=_YEARS),
    Metric("reset_wal_bytes", "bytes", _LOWER, _RESET, "write-ahead or redo log written by the reset"),
    Metric("reset_dead_tuples_before", "tuples", _NEITHER, _RESET, "dead tuples when the reset began",
           engines=_POSTGRES),
    Metric("reset_dead_tuples_after", "tuples", _LOWER, _RESET, "dead tuples that the reset could not remove",
           engines=_POSTGRES),
    Metric("reset_purge_seconds", "s", _LOWER, _RESET, "waiting until InnoDB has purged old row versions",
           engines=_MYSQL, most=_YEARS),
    Metric("reset_flush_seconds", "s", _LOWER, _RESET, "waiting until InnoDB has written its dirty pages",
           engines=_MYSQL, most=_YEARS),
    Metric("reset_history_before", "transactions", _NEITHER, _RESET,
           "length of the history list when the reset began", engines=_MYSQL),
    Metric("reset_history_after", "transactions", _LOWER, _RESET,
           "length of the history list that purge left", engines=_MYSQL),
    Metric("reset_dirty_pages_before", "pages", _NEITHER, _RESET, "dirty pages when the reset began",
           engines=_MYSQL),
    Metric("reset_dirty_pages_after", "pages", _LOWER, _RESET, "dirty pages that the reset left",
           engines=_MYSQL),

    Metric("machine_steal_share", "ratio", _LOWER, _CONTEXT,
           "wanted CPU time that the host of a virtual machine withheld", most=1.0),
    Metric("others_cpu_share", "ratio", _LOWER, _CONTEXT,
           "CPU time of processes that are not ours, in cores"),

    Metric("table_bytes", "bytes", _LOWER, _RESET, "tables without their indexes after the reset",
           followed=True, judged=True),
    Metric("index_bytes", "bytes", _LOWER, _RESET, "indexes after the reset", followed=True, judged=True),
)
# fmt: on

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ROWS}
"""Every metric that a step can record, by name. A step records those that its engine and generator have."""


def of_role(*roles: Role) -> tuple[str, ...]:
    """The metrics with one of these roles, in the order of the rows."""
    return tuple(name for name, metric in METRICS.items() if metric.role in roles)


def followed_metrics() -> tuple[str, ...]:
    """The metrics that have a series over nights, in the order of the rows."""
    return tuple(name for name, metric in METRICS.items() if metric.followed)


def judged_metrics() -> tuple[str, ...]:
    """Of the metrics that have a series over nights those in which changes are looked for."""
    return tuple(name for name, metric in METRICS.items() if metric.judged)


def beside_verdict(engines: Collection[Engine] = tuple(Engine)) -> tuple[str, ...]:
    """The metrics that are compared beside the judged one, by role, then in the order of the rows.

    Of those, what a server of at least one of `engines` has.
    """
    chosen = [each for each in METRICS.values() if each.beside and not each.engines.isdisjoint(engines)]
    order = list(Role)
    return tuple(each.name for each in sorted(chosen, key=lambda metric: order.index(metric.role)))


def imported_stand_ins() -> Mapping[str, str]:
    """Metric -> what stands for it in a session that was imported, where it was not recorded."""
    return {metric.imported_for: name for name, metric in METRICS.items() if metric.imported_for}


def short_names() -> Mapping[str, str]:
    """Short name -> metric, in alphabetical order."""
    return dict(sorted((metric.short_name, name) for name, metric in METRICS.items() if metric.short_name))


def label_of(name: str) -> str:
    """What people call a metric; its name where it has no other, or where an older Tidemark recorded it."""
    return (METRICS[name].label if name in METRICS else "") or name
