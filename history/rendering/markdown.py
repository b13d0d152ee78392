"""A comparison as GitHub's Markdown."""

from collections.abc import Iterable, Iterator, Sequence

from history.comparison.beside.curves import curves
from history.comparison.beside.open_connections import connection_costs
from history.comparison.result import Comparison, ContenderComparison
from history.comparison.verdict import Tone
from history.rendering.notes import notes
from history.rendering.sparkline import SPARKLINE_LEGEND
from history.rendering.table import (
    CONNECTION_HEADS,
    CONNECTION_TITLE,
    COSTS_HEADS,
    CURVE_HEADS,
    KIND_HEADS,
    LEFT,
    Row,
    connection_row,
    costs_legend,
    costs_rows,
    curve_rows,
    heads,
    kind_rows,
    kinds_legends,
    legend,
    rows,
    title,
)


def render_markdown(comparison: Comparison, *, costs: bool = False, kinds: bool = False) -> str:
    """Return tables and notes; `costs` adds a table of all costs of each step, `kinds` one of kinds."""
    return (
        "\n".join(
            line
            for contender in comparison.contenders
            for line in _lines(comparison, contender, costs=costs, kinds=kinds)
        )
        + "\n"
    )


def _lines(
    comparison: Comparison, contender: ContenderComparison, *, costs: bool, kinds: bool
) -> Iterator[str]:
    yield f"### {title(comparison, contender)}"
    yield ""
    yield from _table(heads(contender), rows(contender))
    for curve in curves(contender):
        yield f"{curve.step}: {curve.unit} by clients"
        yield ""
        yield from _table(CURVE_HEADS, curve_rows(curve))
    if held := [connection_row(cost) for cost in connection_costs(contender)]:
        yield CONNECTION_TITLE
        yield ""
        yield from _table(CONNECTION_HEADS, held)
    if costs:
        yield from _table(COSTS_HEADS, (row for step in contender.steps for row in costs_rows(step)))
    if kinds and contender.kinds:
        yield from _table(KIND_HEADS, kind_rows(contender.kinds))
    legends = [legend(contender), *([SPARKLINE_LEGEND] if contender.has_trends else [])]
    legends += [costs_legend(contender)] if costs else []
    legends += kinds_legends(contender, kinds)
    for note in (*legends, *notes(comparison, contender)):
        yield f"- {note}"
    yield ""


def _table(columns: Sequence[str], body: Iterable[Row]) -> Iterator[str]:
    yield _line(columns)
    yield _line([":--" if head in (*LEFT, "kind") else "--:" for head in columns])
    for row in body:
        *texts, last = (cell.text + cell.mark for cell in row)
        yield _line([*texts, f"**{last}**" if row[-1].tone is Tone.BAD else last])
    yield ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
