"""Rows that cannot be: values out of their metric's bounds, counts below zero, options of no session."""

from collections.abc import Iterator, Mapping

from build.errors import TidemarkError
from history.changes.confirmation import Confirms
from history.errors import DamagedTextError, stored_object
from history.series.night import branches, configuration_name
from history.transfer.portable_schema import FieldKind, Row
from history.transfer.row_source import INTEGER_LIMIT, Item
from suites.metrics import METRICS, PRIMARY

_VALUES: Mapping[str, tuple[str, ...]] = {
    "measurements": ("value",),
    "points": ("value",),
    "confirmations": ("level_before",),
    "change_series": ("level_before", "level_after"),
}
"""The fields of a table that hold values of the metric which the row names."""

_ANY = ("seed",)
"""Whole numbers that may be negative."""


def impossible(item: Item) -> str:
    """What is wrong with a row, by the first value in it that cannot be; empty when nothing is."""
    return next(_wrong(item), "")


def _wrong(item: Item) -> Iterator[str]:
    row, table = item.row, item.table
    for name in _VALUES.get(table.name, ()):
        yield from _refused(row["metric"], row[name])
    if table.name == "samples":
        yield from _refused(PRIMARY, row["qps"])
    if table.name == "dropped_rounds":
        yield from _wrong_rates(row)
    if table.name == "sessions":
        yield from _wrong_options(row)
    for field in table.fields.values():
        value = row[field.name]
        if field.kind is FieldKind.INTEGER and value is not None and value < 0 and field.name not in _ANY:
            yield f"{table.name}: {field.name} cannot be {value}"


def _refused(metric: str, value: float) -> Iterator[str]:
    """Of a metric that the code does not have any more, nothing is known."""
    if metric in METRICS and not METRICS[metric].is_plausible(value):
        yield METRICS[metric].refusal(value)


def _wrong_rates(row: Row) -> Iterator[str]:
    """What is wrong with the throughput by version of a dropped round."""
    for version, qps in stored_object(row["measured"]).items():
        if type(qps) not in (int, float) or (type(qps) is int and abs(qps) >= INTEGER_LIMIT):
            yield f"dropped_rounds: measured is no rate for {version}"
        else:
            yield from _refused(PRIMARY, qps)


def _wrong_options(row: Row) -> Iterator[str]:
    """What is wrong with the options of a session: its night could not be derived from them."""
    options = stored_object(row["options"])
    try:
        configuration_name(row)
        Confirms.of(options)
        named = options.get("branches", {})
        branches(options.get("versions", ()), named)
        texts = [*named.values(), *options.get("not_built", {}).values()]
    except (ValueError, TypeError, AttributeError, KeyError, TidemarkError) as error:
        reason = error.reason if isinstance(error, DamagedTextError) else str(error)
        yield f"the options of session {row['uid']} are not those of a session: {reason}"
        return
    if not all(isinstance(text, str) for text in texts):
        yield f"the options of session {row['uid']} are not those of a session: a branch or reason is no text"
