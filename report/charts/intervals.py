"""Ratios with their intervals, one below the other: boxes of a change, rounds of a session, metrics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import htpy as h
from markupsafe import Markup

from report.charts import svg
from report.charts.scales import RatioScale
from report.markup.formats import DASH, percent, span
from report.markup.parts import cell, charted, numeric, row, table

WIDTH = 960
_ROW, _TOP, _RIGHT, _GAP = 26, 24, 20, 12
_MAX_LETTERS = 44
"""How many letters of a label are shown."""


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
    values = [
        value
        for interval in rows
        for value in (interval.ratio, interval.low, interval.high)
        if value is not None
    ]
    left = _GAP + svg.LETTER * min(_MAX_LETTERS, max((len(interval.label) for interval in rows), default=0))
    x = RatioScale.around(values, left, WIDTH - _RIGHT)
    parts = []
    if threshold is not None:
        edges = x.at(1 - threshold), x.at(1 + threshold)
        parts.append(svg.rect(edges[0], _TOP, edges[1] - edges[0], height - _TOP, "tolerance"))
    for ratio, label in x.ticks():
        parts.append(
            svg.line(x.at(ratio), _TOP - 4, x.at(ratio), height, "one" if abs(ratio - 1) < 1e-9 else "grid")
        )
        parts.append(svg.text(x.at(ratio), 12, label, "tick", "middle"))
    for number, interval in enumerate(rows):
        parts += _row(interval, left, _TOP + _ROW * number + _ROW / 2, x)
    return svg.picture(WIDTH, height, parts, caption)


def _row(interval: IntervalRow, left: float, y: float, x: RatioScale) -> Iterator[Markup]:
    label = svg.text(left - _GAP, y + 4, interval.label[:_MAX_LETTERS], "row-label", "end")
    yield svg.link(interval.href, interval.label, label) if interval.href else label
    if interval.ratio is None:
        yield svg.text(left + 6, y + 4, interval.note or DASH, "tick")
        return
    if interval.low is not None and interval.high is not None:
        yield svg.line(x.at(interval.low), y, x.at(interval.high), y, f"whisker {interval.tone}")
        for edge in (interval.low, interval.high):
            yield svg.line(x.at(edge), y - 4, x.at(edge), y + 4, f"whisker {interval.tone}")
    yield svg.circle(
        x.at(interval.ratio),
        y,
        3 if interval.is_small else 5,
        f"dot {interval.tone}",
        f"{interval.ratio:.4f}",
    )


def _numbers(rows: Sequence[IntervalRow], caption: str, what: str) -> h.Node:
    body = (
        row(
            h.a(href=interval.href)[interval.label] if interval.href else interval.label,
            charted(percent(interval.ratio), interval.ratio),
            numeric(
                span(interval.low, interval.high)
                if interval.low is not None and interval.high is not None
                else DASH
            ),
            cell(interval.note),
        )
        for interval in rows
    )
    return table((what, "change", "interval", "remark"), body, caption=caption)
