"""A series over nights: its points, what the step can see, the range of a change, its levels.

Three uncertainties have three marks: the hatched band is what a step cannot see, the error bar is the
interval of one session, the bracket is the range of nights in which a change lies.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import htpy as h
from markupsafe import Markup

from history.counts import counted
from history.numbers import DASH
from report.charts import svg
from report.charts.looks import Sight, look_of
from report.charts.scales import RatioScale, TimeScale, usual_ends
from report.markup.formats import change_of, day, moment, share, span
from report.markup.parts import cell, charted, numeric, row, table
from suites.metrics import Better

WIDTH, HEIGHT = 960, 260
MAX_NAMED = 3
"""The changes that the label of a chart has, of more the latest."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 14, 26


@dataclass(frozen=True)
class NightMark:
    """One night of a series in a chart."""

    when: datetime
    version: str
    ratio: float | None
    """The value over the base's of the same night; None in a gap."""

    gap: str = ""
    href: str = ""
    """The page of its session."""

    interval: tuple[float, float] | None = None
    """The interval of its session, where it is known."""

    is_open: bool | None = None
    """Whether the verdict of its session is open; None where it is not known."""


@dataclass(frozen=True)
class ChangeMark:
    """A change in a chart: it lies between two nights, and moved the level."""

    last_before: datetime
    first_after: datetime
    level_before: float
    level_after: float
    label: str
    href: str
    is_worse: bool | None
    """None when the metric has no better direction."""

    is_confirmed: bool
    until: datetime | None = None
    """The first night back at the old level."""


@dataclass(frozen=True)
class NightChart:
    """What a chart of a series shows."""

    title: str
    marks: Sequence[NightMark]
    better: Better
    visible: float | None
    """The smallest change that the step is likely to see, as a fraction; None without a calibration."""

    threshold: float
    """The fraction beyond which a change is reported."""

    changes: Sequence[ChangeMark] = ()
    notes: Sequence[tuple[datetime, str]] = ()
    """What else changed before a night: machine, base, suite."""

    name: str = "c"
    """Unique among the charts of a page."""

    y_values: Sequence[float] = field(default=())
    """Further values that the axis shows, to be common within a row of charts."""

    @property
    def is_unseen(self) -> bool:
        """Whether nobody knows what its step can see: no calibration, and a night without a verdict."""
        return self.visible is None and any(
            mark.is_open is None for mark in self.marks if mark.ratio is not None
        )

    def is_blind(self, mark: NightMark) -> bool:
        """Whether a night shows nothing: undecided, or a change that its step cannot see."""
        sight = Sight(self.better, self.threshold, self.visible, mark.is_open, mark.interval)
        return look_of(mark.ratio, mark.gap, sight).is_blind


def night_figure(chart: NightChart, *, small: bool = False) -> h.Node:
    """Return the chart of a series with its table; a small one is for rows of many."""
    return svg.figure(
        draw(chart, small=small),
        chart.title,
        _numbers(chart),
        wide=not small,
        key=None if small else chart_key(chart),
    )


def draw(chart: NightChart, *, small: bool = False) -> svg.Picture:
    """Return the picture alone. The chart must have a night."""
    width, height = (460, 150) if small else (WIDTH, HEIGHT)
    x = TimeScale.over([mark.when for mark in chart.marks], _LEFT, width - _RIGHT)
    values = [mark.ratio for mark in chart.marks if mark.ratio is not None]
    levels = [level for change in chart.changes for level in (change.level_before, change.level_after)]
    ends = usual_ends(mark.interval for mark in chart.marks if mark.interval is not None and not small)
    y = RatioScale.around([*values, *levels, *ends, *chart.y_values], height - _BOTTOM, _TOP)
    parts = [
        svg.hatch(f"hatch-{chart.name}"),
        *_band(chart, x, y),
        *_axes(x, y, height),
        *_changes(chart, x, y, height),
        *_notes(chart, x, height),
        *_points(chart, x, y, height, small),
    ]
    return svg.picture(width, height, parts, finding(chart), "small" if small else "nights")


def finding(chart: NightChart) -> str:
    """Return what a chart shows: `update-index, qps: 12.6 % lower since 2026-04-07, 46 nights`."""
    known = [mark for mark in chart.marks if mark.ratio is not None]
    moves = [_move(change) for change in sorted(chart.changes, key=lambda change: change.first_after)]
    if not known:
        moves = ["no value"]
    elif not moves:
        moves = [f"no change found, {change_of(known[-1].ratio)} in the latest night"]
    more = len(moves) - MAX_NAMED
    parts = [
        f"{more} earlier {'change' if more == 1 else 'changes'}" if more > 0 else "",
        *moves[-MAX_NAMED:],
        counted(len(known), "night"),
        f"{undecided} undecided" if (undecided := sum(mark.is_open is True for mark in known)) else "",
        f"{len(chart.marks) - len(known)} without a value" if len(known) < len(chart.marks) else "",
    ]
    return f"{chart.title}: {', '.join(filter(None, parts))}"


def _move(change: ChangeMark) -> str:
    ratio = change.level_after / change.level_before
    until = f" until {day(change.until)}" if change.until else ""
    return (
        f"{share(abs(ratio - 1))} {'lower' if ratio < 1 else 'higher'} since {day(change.first_after)}{until}"
    )


def chart_key(chart: NightChart) -> h.Node:
    """Return what the marks of a chart mean."""
    sees = ""
    if chart.is_unseen:
        sees = "Hollow points and the hatched ground: what this step can see was never measured here."
    if chart.visible is not None:
        sees = f"Hatched: changes below {share(chart.visible)} cannot be seen by this step."
        if chart.visible <= chart.threshold:
            sees = f"This step can see every change beyond {share(chart.threshold)}, the threshold."
    return h.p(".key")[
        sees,
        " Bars: the interval of a session; one that leaves the chart ends in an arrow."
        if any(mark.interval for mark in chart.marks)
        else None,
        " Hollow: an undecided night, or one whose change cannot be seen." if not chart.is_unseen else None,
        " Shaded: the nights between which a change lies; its frame is solid once it was confirmed."
        if chart.changes
        else None,
        " Ratios to the base of the same night, on a logarithmic axis.",
    ]


def _band(chart: NightChart, x: TimeScale, y: RatioScale) -> Iterator[Markup]:
    if chart.is_unseen:
        top, bottom = y.at(y.high), y.at(y.low)
    elif chart.visible is not None and chart.visible > chart.threshold:
        top, bottom = y.at(1 + chart.visible), y.at(1 / (1 + chart.visible))
    else:
        return
    yield svg.hatched(x.start, top, x.end - x.start, bottom - top, f"hatch-{chart.name}")


def _axes(x: TimeScale, y: RatioScale, height: float) -> Iterator[Markup]:
    for ratio, label in y.ticks():
        at = y.at(ratio)
        yield svg.line(x.start, at, x.end, at, "one" if abs(ratio - 1) < 1e-9 else "grid")
        yield svg.text(x.start - 6, at + 4, label, "tick", "end")
    for when, label in x.ticks():
        at = x.at(when)
        if x.start + 14 < at < x.end - 14:
            yield svg.line(at, height - _BOTTOM, at, height - _BOTTOM + 4, "axis")
            yield svg.text(at, height - 8, label, "tick", "middle")


def _changes(chart: NightChart, x: TimeScale, y: RatioScale, height: float) -> Iterator[Markup]:
    for change in chart.changes:
        low, high = x.at(change.last_before), x.at(change.first_after)
        tone = "shift" if change.is_worse is None else "worse" if change.is_worse else "better"
        kind = f"range {tone}{' confirmed' if change.is_confirmed else ''}"
        area = svg.rect(low, _TOP, max(high - low, 3), height - _BOTTOM - _TOP, kind)
        yield svg.link(change.href, change.label, area) if change.href else area
        end = x.at(change.until) if change.until else x.end
        yield svg.line(
            max(x.start, low - 140), y.at(change.level_before), low, y.at(change.level_before), "level"
        )
        yield svg.line(high, y.at(change.level_after), end, y.at(change.level_after), "level")


def _notes(chart: NightChart, x: TimeScale, height: float) -> Iterator[Markup]:
    for when, what in chart.notes:
        at = x.at(when)
        mark = svg.path(f"M{at:g} {height - _BOTTOM}l-5 -9h10z", "event")
        yield svg.noted(f"{day(when)}: {what}", mark)


def _points(chart: NightChart, x: TimeScale, y: RatioScale, height: float, small: bool) -> Iterator[Markup]:
    places = [None if mark.ratio is None else (x.at(mark.when), y.at(mark.ratio)) for mark in chart.marks]
    yield svg.path(svg.polyline(places), "trace")
    if small:
        yield from _dots(chart, places, [x.at(mark.when) for mark in chart.marks], height)
        return
    radius = 3.2 if len(places) < 150 else 2.2
    for mark, place in zip(chart.marks, places, strict=True):
        if place is None or mark.ratio is None:
            if not mark.gap:
                continue  # it was not to be measured, and so has not failed
            at = x.at(mark.when)
            cross = svg.path(f"M{at - 3:g} {height - _BOTTOM - 8}l6 6m0 -6l-6 6", "gap")
            label = f"{moment(mark.when)}: no value, {mark.gap}"
            yield svg.link(mark.href, label, cross) if mark.href else cross
            continue
        if mark.interval is not None:
            yield svg.line(place[0], y.at(mark.interval[0]), place[0], y.at(mark.interval[1]), "error")
            yield from _arrows(mark.interval, place[0], y)
        kind = "point hollow" if chart.is_blind(mark) else "point"
        point = svg.circle(*place, radius, kind, f"{mark.ratio:.4f}")
        yield svg.link(mark.href, _label(mark), point) if mark.href else point


def _arrows(interval: tuple[float, float], at: float, y: RatioScale) -> Iterator[Markup]:
    """Draw an arrow at each end of an interval that lies outside the chart."""
    if interval[0] < y.low:
        yield svg.path(f"M{at - 3.5:g} {y.bottom - 5:g}l3.5 5l3.5 -5", "error beyond")
    if interval[1] > y.high:
        yield svg.path(f"M{at - 3.5:g} {y.top + 5:g}l3.5 -5l3.5 5", "error beyond")


def _dots(
    chart: NightChart, places: Sequence[tuple[float, float] | None], times: Sequence[float], height: float
) -> Iterator[Markup]:
    """Draw all points as three paths: rows of small charts have thousands of points."""
    known = [(mark, place) for mark, place in zip(chart.marks, places, strict=True) if place is not None]
    hollow = [place for mark, place in known if chart.is_blind(mark)]
    gaps = [at for mark, at in zip(chart.marks, times, strict=True) if mark.ratio is None and mark.gap]
    yield svg.path("".join(f"M{x:g} {y:g}h0" for _, (x, y) in known), "dots")
    yield svg.path("".join(f"M{x:g} {y:g}h0" for x, y in hollow), "dots-inside")
    if gaps:
        yield svg.path("".join(f"M{at - 2:g} {height - _BOTTOM - 7}l5 5m0 -5l-5 5" for at in gaps), "gap")


def _label(mark: NightMark) -> str:
    return f"{moment(mark.when)}, {mark.version}: {change_of(mark.ratio)}"


def _happened(
    mark: NightMark, notes: Mapping[datetime, str], changes: Mapping[datetime, str]
) -> Iterator[str | None]:
    yield mark.gap
    yield "undecided" if mark.is_open else None
    yield notes.get(mark.when)
    yield changes.get(mark.when)


def _numbers(chart: NightChart) -> h.Node:
    changes = {change.first_after: change.label for change in chart.changes}
    notes = dict(chart.notes)
    rows = (
        row(
            h.a(href=mark.href)[moment(mark.when)] if mark.href else moment(mark.when),
            cell(mark.version),
            charted(f"{mark.ratio:.4f}" if mark.ratio is not None else DASH, mark.ratio),
            numeric(span(*mark.interval) if mark.interval else DASH),
            cell(", ".join(filter(None, _happened(mark, notes, changes)))),
        )
        for mark in reversed(chart.marks)
    )
    heads = ("night", "version", "ratio to the base", "interval", "what happened")
    return table(heads, rows, caption=f"{chart.title}, night by night")
