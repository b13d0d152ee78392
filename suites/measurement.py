"""What one run of a step yields, and the dictionary of everything that can be measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suites.profiling.stacks import StepProfile


class Better(StrEnum):
    """Which direction of a metric is the good one."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True)
class Metric:
    """A quantity with its unit and direction."""

    name: str
    unit: str
    better: Better
    description: str


@dataclass(frozen=True)
class Measurement:
    """The numbers of one run of one step.

    `values` maps a name of METRICS to its value in that metric's unit. `per_second` is the throughput in
    queries/s of each whole second of the run, in order. `warnings` say what makes a reader doubt the numbers,
    such as a reset that could not be finished.
    """

    values: Mapping[str, float]
    per_second: Sequence[float]
    warnings: Sequence[str] = ()
    profile: "StepProfile | None" = None
    """Where the CPU time went, when the step was profiled."""


_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_ROWS = [
    ("qps", "queries/s", _HIGHER, "queries finished per second over the whole step"),
    ("tps", "transactions/s", _HIGHER, "transactions finished per second over the whole step"),
    ("transactions", "transactions", _NEITHER, "transactions finished: the work of the step"),
    ("seconds", "s", _NEITHER, "length of the measured window"),
    ("errors", "errors", _LOWER, "failed or retried transactions"),
    ("latency_mean_ms", "ms", _LOWER, "mean latency of a transaction"),
    ("latency_p50_ms", "ms", _LOWER, "median latency of a transaction"),
    ("latency_p95_ms", "ms", _LOWER, "95th percentile of transaction latency"),
    ("latency_p99_ms", "ms", _LOWER, "99th percentile of transaction latency"),
    ("latency_p999_ms", "ms", _LOWER, "99.9th percentile of transaction latency"),
    ("latency_max_ms", "ms", _LOWER, "slowest transaction"),
    ("qps_cv", "ratio", _LOWER, "coefficient of variation of the per-second throughput"),
    ("qps_p1_over_median", "ratio", _HIGHER, "1st percentile of per-second throughput over its median"),
    ("server_cpu_us_per_op", "µs/query", _LOWER, "CPU time of all server processes per query"),
    ("client_cpu_us_per_op", "µs/query", _LOWER, "CPU time of the load generator per query"),
    ("machine_cpu_us_per_op", "µs/query", _LOWER, "busy CPU time of the whole machine per query"),
    ("server_cs_per_op", "switches/query", _LOWER, "context switches of the server per query"),
    ("client_cs_per_op", "switches/query", _LOWER, "context switches of the load generator per query"),
    ("machine_cs_per_op", "switches/query", _LOWER, "context switches of the whole machine per query"),
    ("server_read_kb_per_op", "KiB/query", _LOWER, "read from storage by server processes per query"),
    ("server_written_kb_per_op", "KiB/query", _LOWER, "sent to storage by server processes per query"),
    ("client_read_kb_per_op", "KiB/query", _LOWER, "read from storage by the load generator per query"),
    ("client_written_kb_per_op", "KiB/query", _LOWER, "sent to storage by the load generator per query"),
    ("machine_reads_per_op", "reads/query", _LOWER, "read requests of all disks per query"),
    ("machine_read_kb_per_op", "KiB/query", _LOWER, "read by all disks per query"),
    ("machine_written_kb_per_op", "KiB/query", _LOWER, "written by all disks per query"),
    (
        "server_instructions_per_op",
        "instructions/query",
        _LOWER,
        "instructions of all server processes per query, where the machine has counters",
    ),
    (
        "wal_bytes_per_op",
        "bytes/query",
        _LOWER,
        "write-ahead or redo log written during the step per query",
    ),
    ("pages_flushed_per_op", "pages/query", _LOWER, "InnoDB pages written from the buffer pool per query"),
    ("reset_seconds", "s", _LOWER, "the whole reset after the step"),
    ("reset_vacuum_seconds", "s", _LOWER, "VACUUM (ANALYZE) of all tables after the step"),
    ("reset_checkpoint_seconds", "s", _LOWER, "CHECKPOINT after the vacuum"),
    ("reset_wal_bytes", "bytes", _LOWER, "write-ahead or redo log written by the reset"),
    ("reset_dead_tuples_before", "tuples", _NEITHER, "dead tuples when the reset began"),
    ("reset_dead_tuples_after", "tuples", _LOWER, "dead tuples that the reset could not remove"),
    ("reset_purge_seconds", "s", _LOWER, "waiting until InnoDB has purged old row versions"),
    ("reset_flush_seconds", "s", _LOWER, "waiting until InnoDB has written its dirty pages"),
    ("reset_history_before", "transactions", _NEITHER, "length of the history list when the reset began"),
    ("reset_history_after", "transactions", _LOWER, "length of the history list that purge left"),
    ("reset_dirty_pages_before", "pages", _NEITHER, "dirty pages when the reset began"),
    ("reset_dirty_pages_after", "pages", _LOWER, "dirty pages that the reset left"),
    (
        "machine_steal_share",
        "ratio",
        _LOWER,
        "wanted CPU time that the host of a virtual machine withheld",
    ),
    ("others_cpu_share", "ratio", _LOWER, "CPU time of processes that are not ours, in cores"),
    ("table_bytes", "bytes", _LOWER, "tables without their indexes after the reset"),
    ("index_bytes", "bytes", _LOWER, "indexes after the reset"),
]

METRICS: Mapping[str, Metric] = {name: Metric(name, unit, better, text) for name, unit, better, text in _ROWS}
"""Every metric that a step can record, by name. A step records those that its engine and generator have."""

LEADING = "qps"
"""The metric that a session's rounds go on for."""

COSTS = (
    "server_cpu_us_per_op",
    "client_cpu_us_per_op",
    "server_cs_per_op",
    "server_read_kb_per_op",
    "server_written_kb_per_op",
    "wal_bytes_per_op",
    "server_instructions_per_op",
)
"""The metrics of what a query costs. A change of throughput that none of them explains is doubtful: a run may
have stalled."""
