"""A comparison as text for a terminal, a pipe or a log."""

from collections.abc import Sequence

from history.comparison.beside.curves import curves
from history.comparison.beside.open_connections import connection_costs
from history.comparison.findings.plans import changed_plans
from history.comparison.result import Comparison, ContenderComparison
from history.comparison.verdict import Tone
from history.metric_words import words_of
from history.rendering.next_step.closing import located
from history.rendering.notes import basis, told
from history.rendering.plain_table import BOLD, PlacedField, Screen
from history.rendering.sparkline import SPARKLINE_LEGEND
from history.rendering.table import (
    CONNECTION_HEADS,
    CONNECTION_TITLE,
    CURVE_HEADS,
    KIND_HEADS,
    KINDS_LEFT,
    LEFT,
    Cell,
    Row,
    connection_row,
    curve_rows,
    heads,
    kind_rows,
    kinds_legends,
    left_out,
    legend,
    mean_rows,
    outcome,
    plans_legends,
    step_row,
    title,
)
from history.rendering.tables.costs import COSTS_HEADS, costs_legend, costs_rows

_STYLES = {
    Tone.PLAIN: "",
    Tone.GOOD: "1;32",
    Tone.BAD: "1;31",
    Tone.QUIET: "2",
    Tone.OPEN: "33",
}


def render_terminal(
    comparison: Comparison,
    screen: Screen,
    *,
    costs: bool = False,
    kinds: bool = False,
    plans: bool = False,
) -> None:
    """Print a table with notes per contender.

    `costs` adds a table of all costs of each step, `kinds` one of the kinds of transactions, `plans` the
    whole plans of the steps with another one.
    """
    for contender in comparison.contenders:
        without = render_verdicts(comparison, contender, screen)
        _further_tables(contender, screen, costs=costs, kinds=kinds)
        legends = [*legend(contender), *([SPARKLINE_LEGEND] if contender.has_trends else [])]
        legends += costs_legend(contender) if costs else []
        legends += [*kinds_legends(contender, kinds), *plans_legends(contender, plans)]
        if without:
            names = ", ".join(words_of(metric).column for metric in without)
            legends.append(f"Columns that do not fit: {names}; --costs has all metrics.")
        notes = basis(comparison, contender, legends, located)
        for paragraph in filter(None, (told(contender, costs=costs), notes)):
            for line in paragraph:
                if "/tidemark " in line:
                    screen.lines([line])  # so that the command can be pasted
                else:
                    screen.line(line)
            screen.line()
        for plan in changed_plans(contender) if plans else ():
            for side, text in plan.sides:
                screen.line(f"{plan.step}, plan of {side}", BOLD)
                screen.lines(text.splitlines())
                screen.line()


def render_verdicts(comparison: Comparison, contender: ContenderComparison, screen: Screen) -> Sequence[str]:
    """Print the sentence on a contender and the table of its steps; return the columns that do not fit."""
    screen.line(title(comparison, contender), BOLD)
    screen.line(outcome(contender))
    without = left_out(contender, screen.width)
    _verdicts(contender, without, screen)
    screen.line()
    return without


def _further_tables(contender: ContenderComparison, screen: Screen, *, costs: bool, kinds: bool) -> None:
    """Print the tables below that of verdicts, with what the session has of them."""
    for curve in curves(contender):
        screen.line(f"{curve.step}: {curve.unit} by clients", BOLD)
        screen.table(CURVE_HEADS, [[_fields(row) for row in curve_rows(contender, curve)]], LEFT)
        screen.line()
    if held := [connection_row(cost) for cost in connection_costs(contender)]:
        screen.line(CONNECTION_TITLE, BOLD)
        screen.table(CONNECTION_HEADS, [[_fields(row) for row in held]], LEFT)
        screen.line()
    if costs:
        sections = [[_fields(row) for row in costs_rows(contender, step)] for step in contender.steps]
        screen.table(COSTS_HEADS, [section for section in sections if section], LEFT)
        screen.line()
    if kinds and contender.kinds:
        screen.table(KIND_HEADS, [[_fields(row) for row in kind_rows(contender.kinds)]], KINDS_LEFT)
        screen.line()


def _verdicts(contender: ContenderComparison, without: Sequence[str], screen: Screen) -> None:
    """Print the table of verdicts, with the digits of a column aligned and marks after them."""
    names = heads(contender, without)
    steps = [step_row(contender, step, without) for step in contender.steps]
    means = list(mean_rows(contender, without))
    columns = zip(names, zip(*steps, *means, strict=True), strict=True)
    marked = {head: _width(head, cells) for head, cells in columns if _has_marks(head, cells)}
    widths = [marked.get(head, 0) for head in names]
    shown = [head.rjust(width) for head, width in zip(names, widths, strict=True)]
    sections = [[_fields(row, widths) for row in rows] for rows in (steps, means)]
    screen.table(shown, sections, (*LEFT, *marked))


def _has_marks(head: str, cells: Sequence[Cell]) -> bool:
    return head not in LEFT and any(cell.mark for cell in cells)


def _width(head: str, cells: Sequence[Cell]) -> int:
    return max(len(head), *(len(cell.text) for cell in cells))


def _fields(row: Row, widths: Sequence[int] = ()) -> list[PlacedField]:
    padded = widths or [0] * len(row)
    return [
        PlacedField(cell.text.rjust(width) + cell.mark, _STYLES[cell.tone])
        for cell, width in zip(row, padded, strict=True)
    ]
