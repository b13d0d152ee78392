"""A comparison for a terminal, a pipe or a log."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from history.comparison import Comparison, ContenderComparison
from history.rendering.notes import notes
from history.rendering.table import (
    COSTS_HEADS,
    COSTS_LEGEND,
    LEFT,
    LEGEND,
    MEAN_ROW,
    Row,
    Tone,
    costs_rows,
    heads,
    rows,
    title,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLAIN_WIDTH = 100
"""Columns of a table that goes to a file or a pipe."""

_STYLES = {
    Tone.PLAIN: "",
    Tone.GOOD: "bold green",
    Tone.BAD: "bold red",
    Tone.QUIET: "dim",
    Tone.OPEN: "yellow",
}


def render_terminal(comparison: Comparison, console: "Console", *, costs: bool = False) -> None:
    """Print a table and its notes per contender; with `costs` a table of all costs of each step too."""
    for contender in comparison.contenders:
        console.print(title(comparison, contender), style="bold", markup=False)
        console.print(_verdicts(contender))
        console.print()
        if costs:
            console.print(_costs(contender))
            console.print()
        legends = [LEGEND, COSTS_LEGEND] if costs else [LEGEND]
        for note in (*legends, *notes(comparison, contender)):
            console.print(note, markup=False, highlight=False)
        console.print()


def _verdicts(contender: ContenderComparison) -> "Table":
    names = heads(contender)
    table = _table(names)
    body = list(rows(contender))
    # A column of numbers with marks has room for one in each row, so that its digits stay below each other.
    columns = zip(names, zip(*body, strict=True), strict=True)
    room = [head not in LEFT and any(cell.mark for cell in cells) for head, cells in columns]
    for row in body:
        if row[0].text.startswith(MEAN_ROW):
            table.add_section()
        _add(table, row, room)
    return table


def _costs(contender: ContenderComparison) -> "Table":
    table = _table(COSTS_HEADS)
    for step in contender.steps:
        table.add_section()
        for row in costs_rows(step):
            _add(table, row, [False] * len(row))
    return table


def _table(columns: Sequence[str]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    for head in columns:
        side = "left" if head in LEFT else "right"
        table.add_column(head, justify=side, no_wrap=head != "step", overflow="fold")  # type: ignore[arg-type]
    return table


def _add(table: "Table", row: Row, room: Sequence[bool]) -> None:
    """Add a row; `room` says of which columns the marks take a place of their own."""
    from rich.text import Text

    marks = [cell.mark or " " * kept for cell, kept in zip(row, room, strict=True)]
    table.add_row(
        *(Text(cell.text + mark, style=_STYLES[cell.tone]) for cell, mark in zip(row, marks, strict=True))
    )
