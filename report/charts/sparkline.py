"""A small picture of a series: its last nights, and the nights between which a change lies."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from markupsafe import Markup

from report.charts import svg
from report.charts.nights import ChangeMark
from report.charts.scales import RatioScale, TimeScale
from report.markup.formats import day
from report.markup.template import Template, joined

WIDTH, HEIGHT = 320, 92
_EDGE, _BOTTOM = 4, 18

_PICTURE = Template('<svg viewBox="0 0 {} {}" class="chart spark" role="img" aria-label="{}">{}</svg>')


def spark(nights: Sequence[tuple[datetime, float | None]], change: ChangeMark, label: str) -> Markup:
    """Return the picture of the nights of a series; `label` says in a sentence what it shows.

    `nights` are the time of each night and its ratio to the base, None in a gap; there must be at least one.
    """
    x = TimeScale.over([when for when, _ in nights], _EDGE, WIDTH - _EDGE)
    known = [ratio for _, ratio in nights if ratio is not None]
    y = RatioScale.around([*known, change.level_before, change.level_after], HEIGHT - _BOTTOM, _EDGE)
    parts = [*_change(change, x, y), *_nights(nights, x, y), *_ends(nights)]
    return _PICTURE(WIDTH, HEIGHT, label, joined(parts))


def _change(change: ChangeMark, x: TimeScale, y: RatioScale) -> Iterator[Markup]:
    low, high = x.at(change.last_before), x.at(change.first_after)
    tone = "shift" if change.is_worse is None else "worse" if change.is_worse else "better"
    kind = f"range {tone}{' confirmed' if change.is_confirmed else ''}"
    yield svg.rect(low, y.top, max(high - low, 3), y.bottom - y.top, kind)
    yield svg.line(x.start, y.at(1.0), x.end, y.at(1.0), "one")
    yield svg.line(x.start, y.at(change.level_before), low, y.at(change.level_before), "level")
    yield svg.line(high, y.at(change.level_after), x.end, y.at(change.level_after), "level")


def _nights(nights: Sequence[tuple[datetime, float | None]], x: TimeScale, y: RatioScale) -> Iterator[Markup]:
    places = [None if ratio is None else (x.at(when), y.at(ratio)) for when, ratio in nights]
    yield svg.path(svg.polyline(places), "trace")
    yield svg.path("".join(f"M{place[0]:g} {place[1]:g}h0" for place in places if place), "dots")
    gaps = [x.at(when) for when, ratio in nights if ratio is None]
    yield svg.path("".join(f"M{at - 2:g} {y.bottom - 6:g}l5 5m0 -5l-5 5" for at in gaps), "gap")


def _ends(nights: Sequence[tuple[datetime, float | None]]) -> Iterator[Markup]:
    first, last = nights[0][0], nights[-1][0]
    yield svg.text(_EDGE, HEIGHT - 4, day(first), "tick")
    if day(last) != day(first):
        yield svg.text(WIDTH - _EDGE, HEIGHT - 4, day(last), "tick", "end")
