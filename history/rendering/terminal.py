"""A comparison for a terminal, a pipe or a log."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from history.compared import Comparison, ContenderComparison
from history.rendering.notes import notes
from history.rendering.sparkline import SPARKLINE_LEGEND
from history.rendering.table import (
    COSTS_HEADS,
    COSTS_LEGEND,
    LEFT,
    LEGEND,
    Cell,
    Row,
    Tone,
    costs_rows,
    head_of,
    heads,
    left_out,
    mean_rows,
    shows_nights,
    step_row,
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
        without = left_out(contender, console.width)
        console.print(_verdicts(contender, without))
        console.print()
        if costs:
            console.print(_costs(contender))
            console.print()
        legends = [LEGEND, *([SPARKLINE_LEGEND] if shows_nights(contender) else [])]
        legends += [COSTS_LEGEND] if costs else []
        if without:
            names = ", ".join(map(head_of, without))
            legends.append(f"No room here for {names}: see --costs, or a wider terminal.")
        for note in (*legends, *notes(comparison, contender)):
            console.print(note, markup=False, highlight=False)
        console.print()


def _verdicts(contender: ContenderComparison, without: Sequence[str]) -> "Table":
    names = heads(contender, without)
    steps = [step_row(contender, step, without) for step in contender.steps]
    means = list(mean_rows(contender, without))
    body = [*steps, *means]
    columns = zip(names, zip(*body, strict=True), strict=True)
    marked = {head: _width(head, cells) for head, cells in columns if _has_marks(head, cells)}
    # rich strips what is right-justified, and with it the room behind digits without a mark.
    table = _table([head.rjust(marked.get(head, 0)) for head in names], left=(*LEFT, *marked))
    for row in body:
        if row is means[0]:
            table.add_section()
        _add(table, row, [marked.get(head, 0) for head in names])
    return table


def _has_marks(head: str, cells: Sequence[Cell]) -> bool:
    return head not in LEFT and any(cell.mark for cell in cells)


def _width(head: str, cells: Sequence[Cell]) -> int:
    return max(len(head), *(len(cell.text) for cell in cells))


def _costs(contender: ContenderComparison) -> "Table":
    table = _table(COSTS_HEADS)
    for step in contender.steps:
        table.add_section()
        for row in costs_rows(step):
            _add(table, row, [0] * len(row))
    return table


def _table(columns: Sequence[str], left: Sequence[str] = LEFT) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    for head in columns:
        side = "left" if head.strip() in left else "right"
        table.add_column(head, justify=side, no_wrap=head != "step", overflow="fold")  # type: ignore[arg-type]
    return table


def _add(table: "Table", row: Row, widths: Sequence[int]) -> None:
    """Add a row; in columns with marks, digits end at their width and a mark stands behind it."""
    from rich.text import Text

    cells = zip(row, widths, strict=True)
    table.add_row(
        *(Text(cell.text.rjust(width) + cell.mark, style=_STYLES[cell.tone]) for cell, width in cells)
    )
