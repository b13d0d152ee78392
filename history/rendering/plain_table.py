"""Lines and tables for a terminal, a pipe or a log.

Other tables are drawn by rich, whose import takes longer than the whole output of `compare`
(docs/decisions/0021-compare-in-a-blink.md).
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

PLAIN_WIDTH = 100
"""The width of output to a file or a pipe, in columns."""

BOLD = "1"


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
        for line in textwrap.wrap(text, self.width, break_on_hyphens=False) or [""]:
            self.file.write(self._styled(line, style) + "\n")

    def table(
        self, heads: Sequence[str], sections: Sequence[Sequence[Sequence[PlacedField]]], left: Sequence[str]
    ) -> None:
        """Print a table of sections of rows, with a rule below the heads and a blank line between sections.

        Columns with these heads are flush left, the others flush right.
        """
        body = [row for section in sections for row in section]
        widths = [
            max(len(field.text) for field in column) for column in zip(_head(heads), *body, strict=True)
        ]
        sides = [head.strip() in left for head in heads]
        self._row(_head(heads), widths, sides)
        self.file.write("─" * (sum(widths) + len(widths) - 1) + "\n")
        for number, section in enumerate(sections):
            if number:
                self.file.write("\n")
            for row in section:
                self._row(row, widths, sides)

    def _row(self, row: Sequence[PlacedField], widths: Sequence[int], sides: Sequence[bool]) -> None:
        cells = []
        for field, width, is_left in zip(row, widths, sides, strict=True):
            room = " " * (width - len(field.text))
            text = self._styled(field.text, field.style)
            cells.append(text + room if is_left else room + text)
        self.file.write(" ".join(cells).rstrip() + "\n")

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if style and text and self.colours else text


def standard_output(plain_width: int = PLAIN_WIDTH) -> Screen:
    """Return standard output: as wide as the terminal, and coloured unless NO_COLOR is set (no-color.org).

    If it is not a terminal, it is plain and `plain_width` wide.
    """
    if not sys.stdout.isatty():
        return Screen(sys.stdout, plain_width)
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Screen(sys.stdout, shutil.get_terminal_size().columns, colours=not plain)


def _head(heads: Sequence[str]) -> list[PlacedField]:
    return [PlacedField(head, BOLD) for head in heads]
