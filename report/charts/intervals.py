"""Ratios with their intervals, one below the other: boxes of a change, rounds of a session, metrics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import htpy as h
from markupsafe import Markup

from history.numbers import DASH
from report.charts import svg
from report.charts.scales import RatioScale, usual_ends
from report.markup.formats import change_of, span
from report.markup.parts import cell, charted, numeric, row, table

WIDTH = 960
_ROW, _TOP, _RIGHT, _GAP = 26, 24, 20, 12
MAX_NAMED = 4
"""How many rows the label of a chart names."""

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
    """better, worse, open, plain, or quiet for what has no part in the result."""

    note: str = ""
    href: str = ""
    is_small: bool = False
    """Whether it is one of several observations, such as a round, rather than their result."""


def interval_figure(
    rows: Sequence[IntervalRow], caption: str, *, what: str, threshold: float | None = None
) -> h.Node:
    """Return the chart with its table; `what` heads the first column."""
    x = _axis(rows)
    beyond = any(not x.low <= end <= x.high for row in rows for end in (row.low, row.high) if end is not None)
    return svg.figure(
        _draw(rows, x, caption, threshold),
        caption,
        _numbers(rows, caption, what),
        key=h.p(".key")["An interval that leaves the chart ends in an arrow."] if beyond else None,
    )


def _finding(rows: Sequence[IntervalRow], caption: str) -> str:
    """Return what a chart shows: each of a few rows, or how far apart many are."""
    known = [(row.label, row.ratio) for row in rows if row.ratio is not None]
    if len(known) <= MAX_NAMED:
        said = ", ".join(f"{label} {change_of(ratio)}" for label, ratio in known) or "no value"
    else:
        ratios = [ratio for _, ratio in known]
        said = f"{span(min(ratios), max(ratios))} in {len(known)} rows"
    return f"{caption}: {said}"


def _axis(rows: Sequence[IntervalRow]) -> RatioScale:
    values = [interval.ratio for interval in rows if interval.ratio is not None]
    values += usual_ends(
        (interval.low, interval.high)
        for interval in rows
        if interval.low is not None and interval.high is not None
    )
    left = _GAP + svg.LETTER * min(_MAX_LETTERS, max((len(interval.label) for interval in rows), default=0))
    return RatioScale.around(values, left, WIDTH - _RIGHT)


def _draw(rows: Sequence[IntervalRow], x: RatioScale, caption: str, threshold: float | None) -> svg.Picture:
    height = _TOP + _ROW * len(rows) + 8
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
        parts += _row(interval, _TOP + _ROW * number + _ROW / 2, x)
    return svg.picture(WIDTH, height, parts, _finding(rows, caption))


def _row(interval: IntervalRow, y: float, x: RatioScale) -> Iterator[Markup]:
    left = x.bottom
    label = svg.name(left - _GAP, y + 4, interval.label, _MAX_LETTERS, "row-label", "end")
    yield svg.link(interval.href, interval.label, label) if interval.href else label
    if interval.ratio is None:
        yield svg.text(left + 6, y + 4, interval.note or DASH, "tick")
        return
    if interval.low is not None and interval.high is not None:
        yield svg.line(x.at(interval.low), y, x.at(interval.high), y, f"whisker {interval.tone}")
        for edge, inwards in ((interval.low, 5), (interval.high, -5)):
            at, kind = x.at(edge), f"whisker {interval.tone}"
            if x.low <= edge <= x.high:
                yield svg.line(at, y - 4, at, y + 4, kind)
            else:
                yield svg.path(
                    f"M{at + inwards:g} {y - 4:g}L{at:g} {y:g}L{at + inwards:g} {y + 4:g}", f"{kind} beyond"
                )
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
            charted(change_of(interval.ratio), interval.ratio),
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
