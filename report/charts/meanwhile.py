"""What servers did beside queries, as marks below the axis of a chart of seconds."""

from collections.abc import Collection, Iterator, Sequence

import htpy as h
from markupsafe import Markup

from report.charts import svg
from suites.accounting.activity import CAUSES, DATA_WAIT, DISK, DISK_LIMIT, LOG_WAIT, STALL, Activity

LANES_HEIGHT = 30.0
"""What both lanes take below the axis."""

_LANE, _HEIGHT, _LESS, _STALL = 15.0, 8.0, 0.6, 4.0
"""The heights of a lane, of what is lowest in it, of how much lower each other one is, and of a stall below
them."""

_WORDS = {STALL: "transaction of more than a second"}
DRAWN = tuple(name for name in (*CAUSES, STALL) if name not in (LOG_WAIT, DATA_WAIT, DISK_LIMIT, DISK))
"""What is drawn, the last on top. Clients wait for the log all the time where commits are durable, and for
data files and the disk where data are larger than memory, or the disk is declared."""


def drawn_in(several: Collection[Sequence[Activity]]) -> tuple[str, ...]:
    """Return the names of what is drawn of several runs."""
    found = {activity.name for activities in several for activity in activities}
    return tuple(name for name in DRAWN if name in found)


def legend(names: Sequence[str]) -> h.Node:
    """Return what the marks mean; None without any."""
    if not names:
        return None
    drawn: list[h.Node] = []
    for name in names:
        swatch = h.span(f".swatch.{_class(name)}", aria_hidden="true")
        drawn += [h.span(".item")[swatch, _words(name)], " "]
    return h.p(".key")["Below the axis, a row for each version: ", drawn]


def lane_names(axis: float, right: float) -> Iterator[Markup]:
    """Yield a line in the colour of each version that ends at `right`, in front of its lane."""
    for lane, class_ in enumerate(("base", "contender")):
        middle = axis + _LANE * lane + _LANE / 2
        yield svg.line(right - 20, middle, right, middle, f"mean {class_}")


def marks(
    activities: Sequence[Activity], version: str, lane: int, x: float, second: float, axis: float
) -> Iterator[Markup]:
    """Yield the marks of a run in lane 0, the upper, or 1; `second` is the width of a second.

    Stalls are below what may have been their cause.
    """
    top = axis + _LANE * lane + 1.5
    for place, name in enumerate(DRAWN):
        for activity in (found for found in activities if found.name == name):
            title = f"{version}: {_words(name)}, {seconds_text(activity)}"
            width = round(max(1.0, (activity.last - activity.first + 1) * second), 1)
            left, is_stall = round(x + (activity.first - 1) * second, 1), name == STALL
            height = _STALL if is_stall else _HEIGHT - _LESS * place
            at = top + _HEIGHT if is_stall else top
            yield svg.rect(left, round(at, 1), width, round(height, 1), f"meanwhile {_class(name)}", title)


def seconds_text(activity: Activity) -> str:
    """Return the seconds of an activity: `seconds 12 to 19`."""
    if activity.first == activity.last:
        return f"second {activity.first}"
    return f"seconds {activity.first} to {activity.last}"


def in_second(activities: Sequence[Activity], second: int) -> str:
    """Return what went on in a second, from 1, in words."""
    names = (activity.name for activity in activities if activity.first <= second <= activity.last)
    return ", ".join(dict.fromkeys(map(_words, names)))


def _words(name: str) -> str:
    return _WORDS.get(name, name)


def _class(name: str) -> str:
    return name.replace(" ", "-")
