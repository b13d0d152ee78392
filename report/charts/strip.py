"""A strip: the steps of a branch by nights, a coloured cell for each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import htpy as h
from markupsafe import Markup

from report.charts import svg
from report.markup.formats import day, percent, ratio_text
from report.markup.parts import numeric, shade_of, table
from suites.metrics import Better

_ROW, _HEAD, _LABELS = 18, 22, 170
WIDTH = 960


@dataclass(frozen=True)
class StripCell:
    """One step in one night."""

    ratio: float | None
    reason: str = ""
    is_blind: bool = False
    """Whether the step cannot see a change of this size."""


@dataclass(frozen=True)
class Strip:
    """The steps of a branch over its nights, in one environment."""

    title: str
    nights: Sequence[tuple[datetime, str, str]]
    """Start, version and page of each night, in order."""

    rows: Mapping[str, Sequence[StripCell]]
    """The cells of each step, one for each night."""

    links: Mapping[str, str]
    """The series of each step."""

    better: Better = Better.HIGHER


def strip_figure(strip: Strip, caption: h.Node = None) -> h.Node:
    """Return the strip with its table."""
    return svg.figure(_draw(strip), caption or strip.title, _numbers(strip))


def _draw(strip: Strip) -> Markup:
    count = max(1, len(strip.nights))
    width = min(24.0, (WIDTH - _LABELS - 8) / count)
    height = _HEAD + _ROW * len(strip.rows) + 6
    parts = [*_heads(strip, width), *_rows(strip, width)]
    label = f"{strip.title}: {len(strip.rows)} steps by {len(strip.nights)} nights"
    return svg.picture(WIDTH, height, parts, label, "strip")


def _heads(strip: Strip, width: float) -> Iterator[Markup]:
    last = -100.0
    for number, (when, _, _) in enumerate(strip.nights):
        at = _LABELS + width * number
        if at - last > 64 and at < WIDTH - 50:
            yield svg.text(round(at, 1), 13, day(when)[5:], "tick")
            last = at


def _rows(strip: Strip, width: float) -> Iterator[Markup]:
    for row, (step, cells) in enumerate(strip.rows.items()):
        y = _HEAD + _ROW * row
        label = svg.text(_LABELS - 8, y + 13, step[:24], "row-label", "end")
        yield svg.link(strip.links[step], f"{step}: its series", label)
        for number, (cell, night) in enumerate(zip(cells, strip.nights, strict=True)):
            x = round(_LABELS + width * number, 1)
            yield _cell(strip, step, cell, night, (x, y, round(max(width - 1, 1.5), 1), _ROW - 2))


def _cell(
    strip: Strip,
    step: str,
    cell: StripCell,
    night: tuple[datetime, str, str],
    box: tuple[float, float, float, float],
) -> Markup:
    when, version, _ = night
    if cell.ratio is None:
        return svg.rect(*box, "cell none", f"{step}, {day(when)}, {version}: {cell.reason or 'no value'}")
    title = f"{step}, {day(when)}, {version}: {percent(cell.ratio)}"
    shade = f"cell {shade_of(cell.ratio, strip.better)}"
    drawn = svg.rect(*box, shade, f"{title}{', below what this step can see' if cell.is_blind else ''}")
    if not cell.is_blind:
        return drawn
    x, y, width, height = box
    return drawn + svg.line(x, y + height, x + width, y, "blind")


def _numbers(strip: Strip) -> h.Node:
    heads = [
        "step",
        *(h.a(href=href)[day(when)] if href else day(when) for when, _, href in reversed(strip.nights)),
    ]
    rows = (
        h.tr[
            h.th(scope="row")[step],
            (numeric(ratio_text(cell.ratio)) for cell in reversed(cells)),
        ]
        for step, cells in strip.rows.items()
    )
    return table(heads, rows, caption=f"{strip.title}: ratios to the base, latest night first")
