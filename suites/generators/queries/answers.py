"""The known answers of a suite's queries, and whether a result is one of them within TPC-H's tolerances."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path

from build.errors import TidemarkError

Row = Sequence[str | None]

SUM_TOLERANCE = Decimal(100)
"""How far a sum may be from the known one (TPC-H, clause 2.1.3.5)."""

SHARE_TOLERANCE = Decimal("0.01")
"""How far an average or ratio may be from the known one, as a share of it, after rounding to hundredths."""

MAX_ROWS = 100
"""The rows of an answer that are kept; of longer ones the first, the number of rows and the totals."""

MAX_COUNTED = 10**9
"""The most rows of an answer."""

_CENT = Decimal("0.01")


class Kind(StrEnum):
    """What a column of an answer is, which decides how it is compared."""

    EXACT = "exact"
    """Keys, texts, dates, counts, and sums of quantities."""
    SUM = "sum"
    """Sums of money."""
    SHARE = "share"
    """Averages and ratios."""


class AnswerError(TidemarkError):
    """A query's result is not the known answer, or the file of the answers is damaged."""


@dataclass(frozen=True)
class Answer:
    """The known answer of one query at one scale."""

    kinds: tuple[Kind, ...]
    """What each column is."""
    rows: tuple[tuple[str | None, ...], ...]
    """All rows in order, or the first MAX_ROWS of them."""
    count: int
    """The number of all rows."""
    totals: tuple[str | None, ...]
    """The sum of each column over all rows; None where one is no number."""


def answers_of(folder: Path, scale: int) -> dict[str, Answer]:
    """Return the answers by step for a scale, from the file of the suite; empty where there is none.

    Raises AnswerError for a file that is damaged.
    """
    file = folder / f"answers-{scale}.json"
    if not file.is_file():
        return {}
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        return {name: _answer(value) for name, value in values.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise AnswerError(f"the known answers cannot be read: {error!r}", where=str(file)) from error


def _answer(value: dict[str, object]) -> Answer:
    columns, rows, totals, count = (value[key] for key in ("columns", "rows", "totals", "count"))
    if not isinstance(columns, list) or not isinstance(rows, list) or not isinstance(totals, list):
        raise TypeError("columns, rows and totals are arrays")
    if type(count) is not int or not 0 <= count <= MAX_COUNTED:
        raise ValueError("count is a number of rows")
    if any(len(row) != len(columns) for row in (*rows, totals)) or any(
        cell is not None and not isinstance(cell, str) for row in (*rows, totals) for cell in row
    ):
        raise ValueError("a row has as many cells as there are columns, each a text or null")
    return Answer(tuple(map(Kind, columns)), tuple(map(tuple, rows)), count, tuple(totals))


def answer_from(kinds: Sequence[Kind], rows: Sequence[Row]) -> Answer:
    """Return the answer that a result is."""
    kept = tuple(tuple(row) for row in rows[:MAX_ROWS])
    return Answer(tuple(kinds), kept, len(rows), tuple(_total(rows, place) for place in range(len(kinds))))


def difference(known: Answer, rows: Sequence[Row]) -> str | None:
    """Return how a result differs from the known answer; None where it is right."""
    if len(rows) != known.count:
        return f"{len(rows)} rows instead of {known.count}"
    for number, (expected, row) in enumerate(zip(known.rows, rows, strict=False), start=1):
        if len(row) != len(expected):
            return f"row {number} has {len(row)} columns instead of {len(expected)}"
        for kind, right, cell in zip(known.kinds, expected, row, strict=True):
            if not is_same(kind, right, cell):
                return f"row {number}: {cell} instead of {right}"
    for place, (kind, right) in enumerate(zip(known.kinds, known.totals, strict=True)):
        # Averages of many rows have no tolerance of their own.
        if kind is not Kind.SHARE and right is not None and not is_same(kind, right, _total(rows, place)):
            return f"column {place + 1} comes to {_total(rows, place)} instead of {right}"
    return None


def is_same(kind: Kind, right: str | None, cell: str | None) -> bool:
    """Return whether a cell is the known one within the tolerance of its column."""
    if right is None or cell is None:
        return right is cell
    known, seen = _number(right), _number(cell)
    if known is None or seen is None:
        return right == cell
    if kind is Kind.SUM:
        return abs(known - seen) <= SUM_TOLERANCE
    if kind is Kind.SHARE:
        known, seen = (number.quantize(_CENT, ROUND_HALF_UP) for number in (known, seen))
        return abs(known - seen) <= SHARE_TOLERANCE * abs(known)
    return known == seen


def _number(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and value.adjusted() < 20 else None


def _total(rows: Sequence[Row], place: int) -> str | None:
    numbers = [None if row[place] is None else _number(str(row[place])) for row in rows]
    known = [number for number in numbers if number is not None]
    return f"{sum(known, Decimal(0)):f}" if len(known) == len(numbers) else None
