"""Ratios with their intervals, one below the other: boxes of a change, rounds of a session, metrics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import htpy as h
from markupsafe import Markup

from report.charts import svg
from report.charts.scales import RatioScale
from report.markup.formats import DASH, percent, span
from report.markup.parts import numeric, table

WIDTH = 960
_ROW, _TOP, _LEFT, _RIGHT = 26, 24, 290, 20


@dataclass(frozen=True)
class IntervalRow:
    """A ratio with its interval."""

    label: str
    ratio: float | None
    low: float | None = None
    high: float | None = None
    tone: str = "plain"
    """better, worse, open or plain."""

    note: str = ""
    href: str = ""
    is_small: bool = False
    """Whether it is one of several observations, such as a round, rather than their result."""


def interval_figure(
    rows: Sequence[IntervalRow], caption: str, *, what: str, threshold: float | None = None
) -> h.Node:
    """Return the chart with its table; `what` heads the first column."""
    return svg.figure(_draw(rows, caption, threshold), caption, _numbers(rows, caption, what))


def _draw(rows: Sequence[IntervalRow], caption: str, threshold: float | None) -> Markup:
    height = _TOP + _ROW * len(rows) + 8
    values = [value for row in rows for value in (row.ratio, row.low, row.high) if value is not None]
    x = RatioScale.around(values, _LEFT, WIDTH - _RIGHT)
    parts = []
    if threshold is not None:
        edges = x.at(1 - threshold), x.at(1 + threshold)
        parts.append(svg.rect(edges[0], _TOP, edges[1] - edges[0], height - _TOP, "tolerance"))
    for ratio, label in x.ticks():
        parts.append(
            svg.line(x.at(ratio), _TOP - 4, x.at(ratio), height, "one" if abs(ratio - 1) < 1e-9 else "grid")
        )
        parts.append(svg.text(x.at(ratio), 12, label, "tick", "middle"))
    for number, row in enumerate(rows):
        parts += _row(row, _TOP + _ROW * number + _ROW / 2, x)
    return svg.picture(WIDTH, height, parts, caption)


def _row(row: IntervalRow, y: float, x: RatioScale) -> Iterator[Markup]:
    label = svg.text(_LEFT - 12, y + 4, row.label[:44], "row-label", "end")
    yield svg.link(row.href, row.label, label) if row.href else label
    if row.ratio is None:
        yield svg.text(_LEFT + 6, y + 4, row.note or DASH, "tick")
        return
    if row.low is not None and row.high is not None:
        yield svg.line(x.at(row.low), y, x.at(row.high), y, f"whisker {row.tone}")
        for edge in (row.low, row.high):
            yield svg.line(x.at(edge), y - 4, x.at(edge), y + 4, f"whisker {row.tone}")
    yield svg.circle(x.at(row.ratio), y, 3 if row.is_small else 5, f"dot {row.tone}", f"{row.ratio:.4f}")


def _numbers(rows: Sequence[IntervalRow], caption: str, what: str) -> h.Node:
    body = (
        h.tr[
            h.th(scope="row")[h.a(href=row.href)[row.label] if row.href else row.label],
            h.td(".n", data_y=f"{row.ratio:.4f}" if row.ratio is not None else None)[percent(row.ratio)],
            numeric(span(row.low, row.high) if row.low is not None and row.high is not None else DASH),
            h.td[row.note],
        ]
        for row in rows
    )
    return table((what, "change", "interval", "remark"), body, caption=caption)
