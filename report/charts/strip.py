"""A strip: the steps of a branch by nights, a coloured cell for each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import htpy as h
from markupsafe import Markup

from report.charts import svg
from report.markup.formats import day, percent, ratio_text
from report.markup.parts import numbers, shade_of, table
from report.markup.template import Template, joined
from suites.metric import Better

_ROW, _HEAD, _LABELS = 18, 22, 170
WIDTH = 960
_GROUP = Template('<g transform="translate({} {}) scale({} 1)">{}</g>')
_CELL = Template('<rect x="{}" class="cell {}"><title>{}</title></rect>')
_NONE = Template('<rect x="{}" vector-effect="non-scaling-stroke" class="cell none"><title>{}</title></rect>')
_BLIND = Template('<path d="{}" vector-effect="non-scaling-stroke" class="blind"/>')


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

    better: Better


def strip_figure(strip: Strip) -> h.Node:
    """Return the strip with its table."""
    return svg.figure(_draw(strip), strip.title, _numbers(strip))


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
    """Draw each row in a group of its own, a night wide per unit: a strip has thousands of cells."""
    days = [day(when) for when, _, _ in strip.nights]
    for row, (step, cells) in enumerate(strip.rows.items()):
        y = _HEAD + _ROW * row
        label = svg.text(_LABELS - 8, y + 13, step[:24], "row-label", "end")
        yield svg.link(strip.links[step], f"{step}: its series", label)
        drawn = (
            _cell(strip, cell, number, f"{step}, {on}")
            for number, (cell, on) in enumerate(zip(cells, days, strict=True))
        )
        yield _GROUP(_LABELS, y, round(width, 2), joined((*drawn, *_blind(cells))))


def _cell(strip: Strip, cell: StripCell, number: int, where: str) -> Markup:
    if cell.ratio is None:
        return _NONE(number, f"{where}: {cell.reason or 'no value'}")
    below = ", below what this step can see" if cell.is_blind else ""
    return _CELL(number, shade_of(cell.ratio, strip.better), f"{where}: {percent(cell.ratio)}{below}")


def _blind(cells: Sequence[StripCell]) -> Iterator[Markup]:
    """Strike out the cells whose change the step cannot see."""
    strokes = [f"M{number} 16l.9-16" for number, cell in enumerate(cells) if cell.is_blind]
    if strokes:
        yield _BLIND("".join(strokes))


def _numbers(strip: Strip) -> h.Node:
    heads = [
        "step",
        *(h.a(href=href)[day(when)] if href else day(when) for when, _, href in reversed(strip.nights)),
    ]
    rows = (
        h.tr[
            h.th(scope="row")[step],
            numbers(ratio_text(cell.ratio) for cell in reversed(cells)),
        ]
        for step, cells in strip.rows.items()
    )
    return table(
        heads, rows, caption=f"{strip.title}: ratios to the base, latest night first", class_="numbers"
    )
