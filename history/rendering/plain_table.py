"""Lines and tables for a terminal, a pipe or a log, in which no text acts on the terminal.

Texts come plain. A Screen alone makes sequences for the terminal, and writes them as Styled
(docs/decisions/0058-escaping-by-the-output.md). It is no table of rich's, whose import takes longer than the
whole output of `compare` (docs/decisions/0021-compare-in-a-blink.md).
"""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from history.escaping.characters import unbroken
from history.escaping.streams import Styled

PLAIN_WIDTH = 100
"""The width of output to a file or a pipe, in columns."""

BOLD = "1"

LONGEST_FIELD = 400
"""Characters of a field of a table: every row is padded to the longest."""

NO_BREAK = "\N{NO-BREAK SPACE}"

NARROWEST_WRAPPED = 30
"""Columns of a field that is wrapped, if the others leave less."""


@dataclass(frozen=True)
class PlacedField:
    """A field of a table, padded to its column."""

    text: str
    style: str = ""
    """The parameters of the terminal's SGR sequence, such as 1;31; empty for none."""


@dataclass(frozen=True)
class Screen:
    """The destination of lines and tables."""

    file: TextIO
    width: int = PLAIN_WIDTH
    """The column at which text is wrapped; tables are not wrapped."""

    colours: bool = False

    def line(self, text: str = "", style: str = "") -> None:
        """Print a text, wrapped between words."""
        for line in _lines_of(unbroken(text), self.width):
            self._write(self._styled(line, style))

    def lines(self, texts: Iterable[str]) -> None:
        """Print each text as a line of its own, which is not wrapped."""
        for text in texts:
            self._write(Styled(unbroken(text)))

    def table(
        self,
        heads: Sequence[str],
        sections: Sequence[Sequence[Sequence[PlacedField]]],
        left: Sequence[str],
        *,
        gap: int = 1,
        has_rule: bool = True,
        wraps_last: bool = False,
    ) -> None:
        """Print a table of sections of rows, with a rule below the heads and a blank line between sections.

        Columns with these heads are flush left, the others flush right, `gap` blanks apart. With `wraps_last`
        the last column, which is flush left, is wrapped to the width of the screen.
        """
        head = [PlacedField(text, BOLD) for text in heads]
        placed = [[[_one_line(field) for field in row] for row in section] for section in sections]
        body = [row for section in placed for row in section]
        widths = [max(len(field.text) for field in column) for column in zip(head, *body, strict=True)]
        if wraps_last:
            room = self.width - sum(widths[:-1]) - gap * len(widths[:-1])
            widths[-1] = min(widths[-1], max(room, NARROWEST_WRAPPED))
        sides = [text.strip() in left for text in heads]
        self._row(head, widths, sides, gap)
        if has_rule:
            self._write(Styled("─" * (sum(widths) + gap * (len(widths) - 1))))
        for number, section in enumerate(placed):
            if number:
                self._write(Styled(""))
            for row in section:
                for line in _wrapped(row, widths[-1]) if wraps_last else [row]:
                    self._row(line, widths, sides, gap)

    def _row(
        self, row: Sequence[PlacedField], widths: Sequence[int], sides: Sequence[bool], gap: int
    ) -> None:
        cells = []
        for field, width, is_left in zip(row, widths, sides, strict=True):
            room = " " * (width - len(field.text))
            text = self._styled(field.text, field.style)
            cells.append(text + room if is_left else room + text)
        self._write(Styled((" " * gap).join(cells).rstrip()))

    def _styled(self, text: str, style: str) -> Styled:
        return Styled(f"\x1b[{style}m{text}\x1b[0m" if style and text and self.colours else text)

    def _write(self, line: Styled) -> None:
        self.file.write(Styled(f"{line}\n"))


def standard_output(plain_width: int = PLAIN_WIDTH) -> Screen:
    """Return standard output: as wide as the terminal, and coloured unless NO_COLOR is set (no-color.org).

    If it is not a terminal, it is plain and `plain_width` wide.
    """
    if not sys.stdout.isatty():
        return Screen(sys.stdout, plain_width)
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Screen(sys.stdout, shutil.get_terminal_size().columns, colours=not plain)


def _one_line(field: PlacedField) -> PlacedField:
    text = unbroken(field.text)
    shown = text if len(text) <= LONGEST_FIELD else f"{text[: LONGEST_FIELD - 1]}…"
    return PlacedField(shown, field.style)


def _lines_of(text: str, width: int) -> list[str]:
    """Return the lines of a text that is wrapped between words; a figure keeps its per cent sign."""
    bound = re.sub(r"(?<=\d) (?=%)", NO_BREAK, text)
    lines = textwrap.wrap(bound, width, break_on_hyphens=False) or [""]
    return [line.replace(NO_BREAK + "%", " %") for line in lines]


def _wrapped(row: Sequence[PlacedField], width: int) -> list[list[PlacedField]]:
    """Return the lines of a row whose last field is wrapped."""
    *fields, last = row
    first, *more = _lines_of(last.text, width)
    below = [PlacedField("") for _ in fields]
    return [
        [*fields, PlacedField(first, last.style)],
        *([*below, PlacedField(text, last.style)] for text in more),
    ]
