"""CSV for spreadsheets, in which no text becomes a formula."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from history.escaping.characters import one_line

_FORMULA = re.compile(r"[=+\-@＝＋－＠]")
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?", re.IGNORECASE)

Cell = str | float | None
"""Nothing is an empty cell."""


def csv_text(rows: Iterable[Sequence[Cell]]) -> str:
    """Return rows as CSV, one line each.

    An apostrophe stands before a text that a spreadsheet would calculate, as OWASP recommends; numbers stay.
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_cell, row) for row in rows)
    return text.getvalue()


def _cell(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    line = one_line(cell)
    return f"'{line}" if _FORMULA.match(line) and not _NUMBER.fullmatch(line) else line
