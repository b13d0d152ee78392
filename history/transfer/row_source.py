"""Rows on their way from one history to another, one at a time, checked."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol

from build.errors import TidemarkError
from build.files import json_value
from build.version import parse_version
from history.errors import HistoryError
from history.timestamps import from_text, to_text
from history.transfer.portable_schema import PORTABLE, FieldKind, Portable, Row

INTEGER_LIMIT = 2**63
"""Of both databases."""


class TransferError(HistoryError):
    """What should come in is not what it claims to be, or contradicts the history; nothing of it is kept."""


class Item(NamedTuple):
    """One row, and where it stood."""

    table: Portable
    row: Row
    number: int
    """Of its line, or of its row in the table's file; from 1."""


class RowSource(Protocol):
    """Rows in any order."""

    @property
    def where(self) -> str:
        """The path or URL, for people."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """What the source holds and does not give, one text each."""

    def items(self) -> Iterator[Item]:
        """All rows, checked by `checked`; can be asked for again. Raises TransferError."""

    def place(self, item: Item) -> str:
        """Where a row stood, for people: `line 7`."""


def checked(table: Portable, row: Mapping[str, Any]) -> Row:
    """The row with each value as its kind says. Raises ValueError that says what is wrong with it."""
    if row.keys() != table.fields.keys():
        raise ValueError(_wrong_fields(table, row.keys()))
    name, good = "", {}
    try:
        for name, check, optional in _checks(table.name):
            value = row[name]
            good[name] = None if value is None and optional else check(value)
    except (ValueError, TypeError, AttributeError, OverflowError, TidemarkError) as error:
        shown = repr(row[name])[:60]
        raise ValueError(f"{table.name}: {name} is {shown}, not a {table.fields[name].kind}") from error
    return good


def _wrong_fields(table: Portable, names: Collection[str]) -> str:
    missing = sorted(table.fields.keys() - set(names))
    if missing:
        return f"a row of {table.name} without {', '.join(missing)}"
    unknown = ", ".join(sorted(set(names) - table.fields.keys()))
    return f"a row of {table.name} with {unknown}, which is unknown"


@cache  # rows are many
def _checks(table: str) -> tuple[tuple[str, Callable[[Any], Any], bool], ...]:
    """Name of each field, what checks it, and whether it may be null."""
    fields = PORTABLE[table].fields.values()
    return tuple((field.name, _CHECKS[field.kind], field.optional) for field in fields)


def _integer(value: Any) -> int:
    if type(value) is not int or abs(value) >= INTEGER_LIMIT:
        raise ValueError
    return value


def _real(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError
    value.encode()  # half a surrogate pair is a text of Python's that no database takes
    return value


def _json_of(kind: type) -> Any:
    def check(value: Any) -> str:
        if not isinstance(json_value(_text(value)), kind):
            raise TypeError
        return _text(value)

    return check


def _time(value: Any) -> str:
    if to_text(from_text(_text(value))) != value:
        raise ValueError
    return _text(value)


@lru_cache(1024)
def _version(value: Any) -> str:
    parse_version(_text(value))
    return _text(value)


_CHECKS: Mapping[FieldKind, Callable[[Any], Any]] = {
    FieldKind.TEXT: _text,
    FieldKind.INTEGER: _integer,
    FieldKind.REAL: _real,
    FieldKind.BYTES: _bytes,
    FieldKind.OBJECT: _json_of(dict),
    FieldKind.ARRAY: _json_of(list),
    FieldKind.TIME: _time,
    FieldKind.VERSION: _version,
}
