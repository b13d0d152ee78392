"""Sizes of files when a reset begins, after the load, beside those that they have after it."""

from collections.abc import Mapping

from suites.metric_names import LOG_BYTES, UNDO_BYTES

BEFORE: Mapping[str, str] = {
    "table_bytes": "reset_table_bytes_before",
    "index_bytes": "reset_index_bytes_before",
    LOG_BYTES: "reset_log_file_bytes_before",
    UNDO_BYTES: "reset_undo_bytes_before",
}
"""Size after the reset -> the same when the reset began, after the load."""


def sizes_before(sizes: Mapping[str, float]) -> dict[str, float]:
    """Return sizes that were read before the reset as metrics."""
    return {BEFORE[name]: value for name, value in sizes.items()}
