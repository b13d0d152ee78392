"""A comparison as GitHub's Markdown."""

from collections.abc import Iterable, Iterator, Sequence

from history.comparison.beside.curves import curves
from history.comparison.beside.open_connections import connection_costs
from history.comparison.findings.plans import changed_plans
from history.comparison.result import Comparison, ContenderComparison
from history.comparison.verdict import Tone
from history.escaping.markdown import Markdown, columns, indented, joined, md, row
from history.rendering.notes import notes
from history.rendering.sparkline import SPARKLINE_LEGEND
from history.rendering.table import (
    CONNECTION_HEADS,
    CONNECTION_TITLE,
    CURVE_HEADS,
    KIND_HEADS,
    LEFT,
    Row,
    connection_row,
    curve_rows,
    heads,
    kind_rows,
    kinds_legends,
    legend,
    outcome,
    plans_legends,
    rows,
    title,
)
from history.rendering.tables.costs import COSTS_HEADS, costs_legend, costs_rows


def render_markdown(
    comparison: Comparison, *, costs: bool = False, kinds: bool = False, plans: bool = False
) -> Markdown:
    """Return tables and notes.

    `costs` adds a table of all costs of each step, `kinds` one of kinds, `plans` the whole plans of the steps
    with another one.
    """
    lines = (
        line
        for contender in comparison.contenders
        for line in _lines(comparison, contender, costs=costs, kinds=kinds, plans=plans)
    )
    return joined([*lines, ""])


def _lines(
    comparison: Comparison, contender: ContenderComparison, *, costs: bool, kinds: bool, plans: bool
) -> Iterator[str]:
    yield md("### {}", title(comparison, contender))
    yield ""
    yield md("{}", outcome(contender))
    yield ""
    yield from _table(heads(contender), rows(contender))
    for curve in curves(contender):
        yield md("{}: {} by clients", curve.step, curve.unit)
        yield ""
        yield from _table(CURVE_HEADS, curve_rows(contender, curve))
    if held := [connection_row(cost) for cost in connection_costs(contender)]:
        yield CONNECTION_TITLE
        yield ""
        yield from _table(CONNECTION_HEADS, held)
    if costs:
        yield from _table(
            COSTS_HEADS, (row for step in contender.steps for row in costs_rows(contender, step))
        )
    if kinds and contender.kinds:
        yield from _table(KIND_HEADS, kind_rows(contender.kinds))
    legends = [*legend(contender), *([SPARKLINE_LEGEND] if contender.has_trends else [])]
    legends += costs_legend(contender) if costs else []
    legends += [*kinds_legends(contender, kinds), *plans_legends(contender, plans)]
    for note in notes(comparison, contender, legends, costs=costs):
        yield md("- {}", note)
    yield ""
    for plan in changed_plans(contender) if plans else ():
        for side, text in plan.sides:
            yield md("{}, plan of {}:", plan.step, side)
            yield ""
            yield indented(text)
            yield ""


def _table(heads_: Sequence[str], body: Iterable[Row]) -> Iterator[str]:
    yield columns(heads_, left=(*LEFT, "kind"))
    yield from map(table_row, body)
    yield ""


def table_row(cells: Row) -> Markdown:
    """Return a row of a table, whose last cell is bold where it is bad."""
    *texts, last = (cell.text + cell.mark for cell in cells)
    return row([*texts, md("**{}**", last) if cells[-1].tone is Tone.BAD else last])
