"""What servers did beside queries, as marks above the axis of a chart of seconds."""

from collections.abc import Collection, Iterator, Sequence

import htpy as h
from markupsafe import Markup

from report.charts import svg
from suites.accounting.activity import CAUSES, DATA_WAIT, DISK, LOG_WAIT, STALL, Activity

_HEIGHT, _LANE = 5.0, 6.0
_WORDS = {STALL: "transaction of more than a second"}
DRAWN = tuple(name for name in (*CAUSES, STALL) if name not in (LOG_WAIT, DATA_WAIT, DISK))
"""What is drawn, the last on top. Clients wait for the log all the time where commits are durable, and for
data files and the disk where data are larger than memory."""


def drawn_in(several: Collection[Sequence[Activity]]) -> tuple[str, ...]:
    """Return the names of what is drawn of several runs."""
    found = {activity.name for activities in several for activity in activities}
    return tuple(name for name in DRAWN if name in found)


def legend(names: Sequence[str]) -> h.Node:
    """Return what the marks mean; None without any."""
    if not names:
        return None
    drawn = [
        h.span[h.span(f".swatch.{_class(name)}", aria_hidden="true"), f"{_words(name)} "] for name in names
    ]
    return h.p(".key")["Above the axis, the base's marks over the other's: ", drawn]


def marks(
    activities: Sequence[Activity], version: str, lane: int, x: float, second: float, axis: float
) -> Iterator[Markup]:
    """Yield the marks of a run in lane 0, the upper, or 1; `second` is the width of a second."""
    top = axis - _LANE * (2 - lane)
    for place, name in enumerate(DRAWN):
        for activity in (found for found in activities if found.name == name):
            title = f"{version}: {_words(name)}, {seconds_text(activity)}"
            width = round(max(1.0, (activity.last - activity.first + 1) * second), 1)
            left, height = round(x + (activity.first - 1) * second, 1), _HEIGHT - 0.6 * place
            yield svg.rect(left, round(top, 1), width, round(height, 1), f"meanwhile {_class(name)}", title)


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
    return name.rsplit(" ", maxsplit=1)[-1]
