"""Geometric means of several branches over time, with their releases and changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

import htpy as h
from markupsafe import Markup

from history.counts import counted
from history.numbers import DASH
from report.charts import svg
from report.charts.nights import ChangeMark
from report.charts.scales import RatioScale, TimeScale
from report.markup.formats import change_of, day
from report.markup.parts import cell, numeric, row, table

WIDTH, HEIGHT = 960, 300
LOOKS = 6
"""The looks of lines, each of another dash and colour, of which site.css has the style."""

AT_ENDS = 7
"""The first and last nights whose medians are compared."""

MAX_LETTERS = 22
"""How many letters of the name of a branch stand at the end of its line."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 168, 44, 26
_LINE = 14
"""The height of a line of a label."""


@dataclass(frozen=True)
class TrendNight:
    """One night of a branch."""

    when: datetime
    mean: float
    """The geometric mean of its ratios to the base."""

    href: str


@dataclass(frozen=True)
class TrendLine:
    """A branch. It has at least one night."""

    name: str
    nights: Sequence[TrendNight]
    look: int
    """The number of its look: that of the branch in all charts of a page."""

    @property
    def ends(self) -> tuple[float, float]:
        """The medians of the first and of the last nights, AT_ENDS of each, at most half of all."""
        means = [night.mean for night in self.nights]
        count = max(1, min(AT_ENDS, len(means) // 2))
        return median(means[:count]), median(means[-count:])

    @property
    def move(self) -> float:
        """The level of the last nights over that of the first ones."""
        first, last = self.ends
        return last / first


@dataclass(frozen=True)
class ReleaseMark:
    """The first night with a release."""

    when: datetime
    label: str
    """Short, as it stands in the chart."""

    text: str
    """As it is told under the mouse and in the table."""


@dataclass(frozen=True)
class TrendChart:
    """What a chart shows. It has at least one line."""

    title: str
    lines: Sequence[TrendLine]
    releases: Sequence[ReleaseMark]
    changes: Sequence[ChangeMark]

    @property
    def times(self) -> list[datetime]:
        """The times of all nights."""
        return [night.when for line in self.lines for night in line.nights]


def trend_figure(chart: TrendChart) -> h.Node:
    """Return the chart with its key and its table."""
    return svg.figure(_draw(chart), chart.title, _numbers(chart), key=_key(chart))


def finding(chart: TrendChart) -> str:
    """Return what a chart shows: how far each branch moved, and how many releases and changes there are."""
    moves = ", ".join(f"{line.name} {change_of(line.move)}" for line in chart.lines)
    times = chart.times
    marks = f"{counted(len(chart.releases), 'release')}, {counted(len(chart.changes), 'change')}"
    return f"{chart.title}: {moves} from {day(min(times))} to {day(max(times))}; {marks}"


def _draw(chart: TrendChart) -> svg.Picture:
    x = TimeScale.over(chart.times, _LEFT, WIDTH - _RIGHT)
    means = [night.mean for line in chart.lines for night in line.nights]
    y = RatioScale.around(means, HEIGHT - _BOTTOM, _TOP)
    parts = [*_axes(x, y), *_changes(chart, x), *_releases(chart, x), *_lines(chart, x, y)]
    return svg.picture(WIDTH, HEIGHT, parts, finding(chart), "nights trend")


def _axes(x: TimeScale, y: RatioScale) -> Iterator[Markup]:
    for ratio, label in y.ticks():
        yield svg.line(x.start, y.at(ratio), x.end, y.at(ratio), "one" if abs(ratio - 1) < 1e-9 else "grid")
        yield svg.text(x.start - 6, y.at(ratio) + 4, label, "tick", "end")
    for when, label in x.ticks():
        if x.start + 14 < x.at(when) < x.end - 14:
            yield svg.line(x.at(when), y.bottom, x.at(when), y.bottom + 4, "axis")
            yield svg.text(x.at(when), HEIGHT - 8, label, "tick", "middle")


def _changes(chart: TrendChart, x: TimeScale) -> Iterator[Markup]:
    for change in chart.changes:
        low, high = x.at(change.last_before), x.at(change.first_after)
        tone, sign = {None: ("shift", "◇"), True: ("worse", "▾"), False: ("better", "▴")}[change.is_worse]
        kind = f"range {tone}{' confirmed' if change.is_confirmed else ''}"
        area = svg.rect(low, _TOP, max(high - low, 3), HEIGHT - _BOTTOM - _TOP, kind)
        area += svg.text(round((low + high) / 2, 1), HEIGHT - _BOTTOM - 5, sign, "change-sign", "middle")
        yield svg.link(change.href, change.label, area)


def _releases(chart: TrendChart, x: TimeScale) -> Iterator[Markup]:
    """Draw a line for each release, with its label in one of two rows, where there is room for it."""
    until = [-1.0, -1.0]
    for release in chart.releases:
        at = x.at(release.when)
        parts = svg.line(at, _TOP - 2, at, HEIGHT - _BOTTOM, "release")
        half = svg.LETTER * len(release.label) / 2
        free = next((number for number, taken in enumerate(until) if at - half > taken), None)
        if free is not None:
            until[free] = at + half + 6
            parts += svg.text(at, _TOP - 7 - free * _LINE, release.label, "mark", "middle")
        yield svg.noted(release.text, parts)


def _lines(chart: TrendChart, x: TimeScale, y: RatioScale) -> Iterator[Markup]:
    labels = []
    for line in chart.lines:
        places = [(x.at(night.when), y.at(night.mean)) for night in line.nights]
        yield svg.path(
            svg.polyline(places) + ("h.1" if len(places) == 1 else ""), f"trend-{line.look % LOOKS}"
        )
        labels.append((places[-1][1], line.name, line.look))
    at = _TOP - 2.0
    for wanted, name, look in sorted(labels):
        at = max(wanted, at + _LINE)
        yield svg.line(x.end + 4, at, x.end + 26, at, f"trend-{look % LOOKS}")
        yield svg.name(x.end + 30, at + 4, name, MAX_LETTERS, "mark")


def _key(chart: TrendChart) -> h.Node:
    return h.p(".key")[
        "Dotted: the first night with a release. " if chart.releases else None,
        "Shaded, with ▾ for the worse and ▴ for the better: the nights between which a change lies; its "
        "frame is solid once it was confirmed. "
        if chart.changes
        else None,
        "Ratios to the base of the same night, on a logarithmic axis.",
    ]


def _numbers(chart: TrendChart) -> h.Node:
    means = {(night.when, line.name): night for line in chart.lines for night in line.nights}
    happened: dict[datetime, list[h.Node]] = {}
    for change in chart.changes:
        happened.setdefault(change.first_after, []).append(h.a(href=change.href)[change.label])
    for release in chart.releases:
        happened.setdefault(release.when, []).append(release.text)
    rows = []
    for when in sorted({*chart.times, *happened}, reverse=True):
        nights = [means.get((when, line.name)) for line in chart.lines]
        href = next((night.href for night in nights if night is not None), None)
        rows.append(
            row(
                h.a(href=href)[day(when)] if href else day(when),
                *(numeric(f"{night.mean:.4f}" if night is not None else DASH) for night in nights),
                cell(_listed(happened.get(when, ()))),
            )
        )
    heads = ("night", *(line.name for line in chart.lines), "what happened")
    return table(heads, rows, caption=f"{chart.title}, night by night")


def _listed(texts: Sequence[h.Node]) -> h.Node:
    return [[", " if number else "", text] for number, text in enumerate(texts)]
