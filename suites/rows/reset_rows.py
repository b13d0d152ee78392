"""The rows of the metric registry about the reset after a step: what is left to clean up, and what stays."""

from build.version import Engine
from suites.metric import YEARS, Better, Metric, Role
from suites.metric_names import (
    DEAD_ITEMS,
    DEAD_ITEMS_LEFT,
    DEAD_TUPLES,
    DEAD_TUPLES_LEFT,
    DIRTY_LEFT,
    DIRTY_PAGES,
    HISTORY_LEFT,
    LOG_BYTES,
    NOT_FROZEN,
    NOT_VISIBLE,
    TRANSACTIONS,
    UNDO_BYTES,
)
from suites.rows.sizes_before import BEFORE

_LOWER, _NEITHER, _RESET = Better.LOWER, Better.NEITHER, Role.RESET
_POSTGRES, _INNODB = frozenset({Engine.POSTGRES}), frozenset({Engine.MYSQL, Engine.MARIADB})

_SECONDS = 0.05
_PAGES = 8 * 8192

_FILES = 4 * 2**24
"""Files of a log and of undo grow by 16 MiB or more at once, and as often as chance has it."""

_SHARE = 0.01

# fmt: off
RESET_ROWS: tuple[Metric, ...] = (
    # When the load ends, before any server is reset.
    Metric("debt_dead_tuples", "tuples", _LOWER, _RESET, "dead tuples, which vacuum had yet to remove",
           engines=_POSTGRES, followed=True, label="vacuum debt"),
    Metric("debt_history", "transactions", _LOWER, _RESET,
           "length of the history list, which InnoDB had yet to purge", engines=_INNODB, followed=True,
           label="purge debt"),
    Metric(BEFORE["table_bytes"], "bytes", _LOWER, _RESET,
           "tables without their indexes when the reset began", followed=True,
           label="table bytes before the reset"),
    Metric(BEFORE["index_bytes"], "bytes", _LOWER, _RESET, "indexes when the reset began",
           followed=True, label="index bytes before the reset"),
    Metric(BEFORE[LOG_BYTES], "bytes", _LOWER, _RESET,
           "files of the write-ahead or redo log when the reset began", followed=True,
           label="WAL or redo files before the reset"),
    Metric(BEFORE[UNDO_BYTES], "bytes", _LOWER, _RESET,
           "undo tablespaces and system tablespace when the reset began", engines=_INNODB, followed=True,
           label="undo bytes before the reset"),
    Metric("reset_seconds", "s", _LOWER, _RESET, "the whole reset after the step",
           followed=True, judged=True, threshold_percent=20, grows_with_work=True,
           negligible=_SECONDS, label="reset seconds", subject="reset", most=YEARS),
    Metric("reset_vacuum_seconds", "s", _LOWER, _RESET, "VACUUM (ANALYZE) of all tables after the step",
           engines=_POSTGRES, followed=True, judged=True, threshold_percent=30, grows_with_work=True,
           negligible=_SECONDS, part_of="reset_seconds", label="vacuum seconds",
           subject="vacuum", most=YEARS),
    Metric("reset_checkpoint_seconds", "s", _LOWER, _RESET, "CHECKPOINT after the vacuum", engines=_POSTGRES,
           most=YEARS),
    Metric("reset_wal_bytes", "bytes", _LOWER, _RESET, "write-ahead or redo log written by the reset",
           followed=True, judged=True, threshold_percent=20, grows_with_work=True,
           negligible=_PAGES, label="WAL or redo of the reset"),
    Metric(DEAD_TUPLES, "tuples", _NEITHER, _RESET, "dead tuples when the reset began",
           engines=_POSTGRES, label="dead tuples"),
    Metric(DEAD_TUPLES_LEFT, "tuples", _LOWER, _RESET, "dead tuples that the reset could not remove",
           engines=_POSTGRES, event="were left by the vacuum", counted_in=DEAD_TUPLES),
    Metric(DEAD_ITEMS, "row versions", _NEITHER, _RESET,
           "row versions that the vacuum met and indexes referred to in vain", engines=_POSTGRES,
           followed=True, label="dead row versions"),
    Metric(DEAD_ITEMS_LEFT, "row versions", _LOWER, _RESET,
           "those of them that the vacuum left, and in the indexes", engines=_POSTGRES,
           event="were left in the indexes by the vacuum", counted_in=DEAD_ITEMS),
    Metric(NOT_VISIBLE, "ratio", _LOWER, _RESET,
           "pages that the reset left without the mark of all-visible, which the next vacuum reads again",
           engines=_POSTGRES, followed=True, judged=True, threshold_percent=20, grows_with_work=True,
           negligible=_SHARE, label="pages not all-visible", most=1.0),
    Metric(NOT_FROZEN, "ratio", _LOWER, _RESET,
           "pages that the reset left without the mark of all-frozen, which a later vacuum must freeze",
           engines=_POSTGRES, followed=True, judged=True, threshold_percent=20, grows_with_work=True,
           negligible=_SHARE, label="pages not all-frozen", most=1.0),
    Metric("reset_purge_seconds", "s", _LOWER, _RESET, "waiting until InnoDB has purged old row versions",
           engines=_INNODB, most=YEARS),
    Metric("reset_flush_seconds", "s", _LOWER, _RESET, "waiting until InnoDB has written its dirty pages",
           engines=_INNODB, most=YEARS),
    Metric("reset_history_before", "transactions", _NEITHER, _RESET,
           "length of the history list when the reset began", engines=_INNODB),
    Metric("reset_history_after", "transactions", _LOWER, _RESET,
           "length of the history list that purge left", engines=_INNODB),
    Metric(HISTORY_LEFT, "transactions", _LOWER, _RESET,
           "transactions whose old row versions purge did not remove in time; 0 if only as many are left as"
           " the reset accepts", engines=_INNODB, counted_in=TRANSACTIONS,
           event="left old row versions that purge did not remove in time"),
    Metric(DIRTY_PAGES, "pages", _NEITHER, _RESET, "dirty pages when the reset began",
           engines=_INNODB, label="dirty pages"),
    Metric("reset_dirty_pages_after", "pages", _LOWER, _RESET, "dirty pages that the reset left",
           engines=_INNODB),
    Metric(DIRTY_LEFT, "pages", _LOWER, _RESET,
           "pages that were not written in time; 0 if only as many are left as the reset accepts",
           engines=_INNODB, event="were left by the flush", counted_in=DIRTY_PAGES),
    Metric("table_bytes", "bytes", _LOWER, _RESET, "tables without their indexes after the reset",
           followed=True, judged=True, grows_with_work=True, negligible=_PAGES, label="table bytes"),
    Metric("index_bytes", "bytes", _LOWER, _RESET, "indexes after the reset", followed=True, judged=True,
           grows_with_work=True, negligible=_PAGES, label="index bytes"),
    Metric(LOG_BYTES, "bytes", _LOWER, _RESET, "files of the write-ahead or redo log after the reset",
           followed=True, judged=True, grows_with_work=True, negligible=_FILES, label="WAL or redo files"),
    Metric(UNDO_BYTES, "bytes", _LOWER, _RESET, "undo tablespaces and system tablespace after the reset",
           engines=_INNODB, followed=True, judged=True, grows_with_work=True, negligible=_FILES,
           label="undo bytes"),
)
# fmt: on

RESET_COSTS = frozenset({"reset_seconds", "reset_vacuum_seconds", "reset_wal_bytes"})
"""Those of what a reset takes."""

RESET_LEFT = frozenset(row.name for row in RESET_ROWS if row.better is _LOWER) - RESET_COSTS
"""Those of what is left to do. A reset that takes less and leaves more is no better (docs/verdicts.md)."""
