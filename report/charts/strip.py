"""A strip: the steps of a branch by nights, a cell for each with a colour and a sign."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import htpy as h
from markupsafe import Markup

from history.counts import counted
from history.numbers import two_decimals
from report.charts import svg
from report.charts.looks import Look, drawn_cell, legend_of, meaning, signs
from report.markup.formats import change_of, day
from report.markup.parts import cell, flat, numbers, row, table
from report.markup.template import Template, joined
from suites.metrics import Better

_ROW, _HEAD, _LABELS = 18, 22, 170
WIDTH = 960
_GROUP = Template('<g transform="translate({} {}) scale({} 1)">{}</g>')


@dataclass(frozen=True)
class StripCell:
    """One step in one night."""

    ratio: float | None
    look: Look
    reason: str = ""
    """Why there is no ratio."""


@dataclass(frozen=True)
class Strip:
    """The steps of a branch over its nights, in one environment."""

    title: str
    nights: Sequence[tuple[datetime, str, str]]
    """Start, version and page of each night, in order; a missing night has neither version nor page."""

    rows: Mapping[str, Sequence[StripCell]]
    """The cells of each step, one for each night."""

    links: Mapping[str, str]
    """The series of each step."""

    better: Better
    threshold: float
    """The fraction beyond which a change is reported."""

    @property
    def looks(self) -> Counter[Look]:
        """How many cells have each look."""
        return Counter(cell.look for cells in self.rows.values() for cell in cells)


def strip_figure(strip: Strip) -> h.Node:
    """Return the strip with its legend and its table."""
    key = legend_of(strip.looks, strip.threshold, strip.better)
    return svg.figure(_draw(strip), strip.title, flat(_numbers(strip), _failures(strip)), key=key)


def _draw(strip: Strip) -> svg.Picture:
    count = max(1, len(strip.nights))
    width = min(24.0, (WIDTH - _LABELS - 8) / count)
    height = _HEAD + _ROW * len(strip.rows) + 6
    parts = [*_heads(strip, width), *_rows(strip, width)]
    looks = strip.looks
    found = ", ".join(f"{looks[look]} {look.name.lower()}" for look in Look if looks[look])
    size = f"{counted(len(strip.rows), 'step')} by {counted(len(strip.nights), 'night')}"
    return svg.picture(WIDTH, height, parts, f"{strip.title}: {size}: {found}", "strip")


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
    for number, (step, cells) in enumerate(strip.rows.items()):
        y = _HEAD + _ROW * number
        label = svg.name(_LABELS - 8, y + 13, step, 24, "row-label", "end")
        yield svg.link(strip.links[step], f"{step}: its series", label)
        drawn = (
            drawn_cell(at, of_night.look, of_night.ratio, strip.better, f"{step}, {on}: {_said(of_night)}")
            for at, (of_night, on) in enumerate(zip(cells, days, strict=True))
        )
        inner = joined((*drawn, *signs(of_night.look for of_night in cells)))
        yield _GROUP(_LABELS, y, round(width, 2), inner)


def _said(of_night: StripCell) -> str:
    """Return what a cell says, in the fewest words: a strip has thousands."""
    name = of_night.look.name.lower()
    if of_night.ratio is None:
        return f"{name}, {of_night.reason}" if of_night.reason else name
    return f"{change_of(of_night.ratio)}, {name}"


def _numbers(strip: Strip) -> h.Node:
    heads = [
        "step",
        *(h.a(href=href)[day(when)] if href else day(when) for when, _, href in reversed(strip.nights)),
    ]
    rows = (
        h.tr[
            h.th(scope="row")[step],
            numbers(
                of_night.look.value
                if of_night.ratio is None
                else f"{of_night.look.value} {two_decimals(of_night.ratio)}"
                for of_night in reversed(cells)
            ),
        ]
        for step, cells in strip.rows.items()
    )
    return table(
        heads, rows, caption=f"{strip.title}: ratios to the base, latest night first", class_="numbers"
    )


def _failures(strip: Strip) -> h.Node:
    """Return the nights that failed, each with its reasons and their steps."""
    found: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for step, cells in strip.rows.items():
        for number, of_night in enumerate(cells):
            if of_night.look is Look.FAILED:
                found[number, of_night.reason].append(step)
    if not found:
        return None
    rows = []
    for (number, reason), steps in sorted(found.items(), reverse=True):
        when, version, href = strip.nights[number]
        named = "all" if len(steps) == len(strip.rows) else ", ".join(steps)
        night = h.a(href=href)[day(when)] if href else day(when)
        rows.append(row(night, cell(version), cell(named), cell(reason)))
    heads = ("night", "version", "steps", "reason")
    return table(heads, rows, caption=f"{strip.title}: {meaning(Look.FAILED)}")
