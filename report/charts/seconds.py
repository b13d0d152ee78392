"""The same seconds: throughput of base and contender second by second, round by round."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import htpy as h
from markupsafe import Markup

from history.counts import counted
from history.numbers import DASH
from report.charts import svg
from report.charts.meanwhile import LANES_HEIGHT, drawn_in, in_second, lane_names, legend, marks
from report.charts.scales import LinearScale
from report.markup.formats import amount
from report.markup.parts import cell, numeric, row, table
from suites.accounting.activity import Activity

WIDTH, HEIGHT = 960, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 8, 26, 22
_AXIS = HEIGHT - _BOTTOM
"""Where throughput is zero."""
_LABEL = 54
"""The width of the name of a round."""

_DROPPED = 46
"""The width of a dropped round, of which only the means are known."""


@dataclass(frozen=True)
class RoundSeconds:
    """One round of a step."""

    number: int
    base: Sequence[float]
    """Queries per second, of each second; empty when the run has none."""

    contender: Sequence[float]
    dropped: Sequence[tuple[str, Mapping[str, float]]] = ()
    """Attempts at this round that were disturbed and measured again: the reason, and the means by version."""

    base_activities: Sequence[Activity] = ()
    """What the base did beside queries."""

    contender_activities: Sequence[Activity] = ()

    noun: str = "round"
    """What it is called: in long mode it is a block."""

    @property
    def activities(self) -> tuple[Sequence[Activity], Sequence[Activity]]:
        """What both did beside queries."""
        return self.base_activities, self.contender_activities


def seconds_figure(rounds: Sequence[RoundSeconds], base: str, contender: str, caption: h.Node) -> h.Node:
    """Return the chart with its table. There must be a second."""
    key = h.p(".key")[
        h.span(".swatch.base", aria_hidden="true"),
        f"{base} ",
        h.span(".swatch.contender", aria_hidden="true"),
        f"{contender}. Both worked in alternating slices of the same minutes. ",
        f"Grey: a {rounds[0].noun} that was disturbed and measured again, with its means."
        if any(pair.dropped for pair in rounds)
        else None,
    ]
    keys = [key, legend(_drawn(rounds))]
    return svg.figure(_draw(rounds, base, contender), caption, _numbers(rounds, base, contender), key=keys)


def _drawn(rounds: Sequence[RoundSeconds]) -> tuple[str, ...]:
    return drawn_in([found for pair in rounds for found in pair.activities])


def _draw(rounds: Sequence[RoundSeconds], base: str, contender: str) -> svg.Picture:
    values = [value for pair in rounds for value in (*pair.base, *pair.contender)]
    means = [value for pair in rounds for _, measured in pair.dropped for value in measured.values()]
    y = LinearScale(0.0, max([*values, *means]) * 1.05, _AXIS, _TOP)
    attempts = sum(len(pair.dropped) for pair in rounds)
    seconds = sum(max(len(pair.base), len(pair.contender)) for pair in rounds)
    gap = min(10.0, 0.1 * WIDTH / len(rounds))
    room = WIDTH - _LEFT - _RIGHT - gap * len(rounds) - _DROPPED * attempts
    lanes = LANES_HEIGHT if _drawn(rounds) else 0.0
    parts = [*_grid(y), *_rounds(rounds, base, contender, y, room / max(1, seconds), gap)]
    if lanes:
        parts += lane_names(_AXIS, _LEFT - 10)
    return svg.picture(WIDTH, HEIGHT + round(lanes), parts, _finding(rounds, base, contender))


def _finding(rounds: Sequence[RoundSeconds], base: str, contender: str) -> str:
    """Return the means of both versions over all rounds."""
    means = []
    for name, seconds in (
        (base, [pair.base for pair in rounds]),
        (contender, [pair.contender for pair in rounds]),
    ):
        values = [value for round_seconds in seconds for value in round_seconds]
        means.append(f"{name} {amount(sum(values) / len(values)) if values else DASH}")
    drawn = _drawn(rounds)
    marked = f"; marked: {', '.join(drawn)}" if drawn else ""
    return (
        f"Queries per second in {counted(len(rounds), rounds[0].noun)}: {', '.join(means)} on average{marked}"
    )


def _grid(y: LinearScale) -> Iterator[Markup]:
    for value, label in y.ticks():
        yield svg.line(_LEFT, y.at(value), WIDTH - _RIGHT, y.at(value), "grid")
        yield svg.text(_LEFT - 6, y.at(value) + 4, label, "tick", "end")
    yield svg.text(_LEFT - 6, 12, "queries/s", "tick", "end")


def _rounds(
    rounds: Sequence[RoundSeconds], base: str, contender: str, y: LinearScale, second: float, gap: float
) -> Iterator[Markup]:
    x = free = float(_LEFT)
    lanes = LANES_HEIGHT if _drawn(rounds) else 0.0
    for pair in rounds:
        for reason, measured in pair.dropped:
            yield svg.rect(round(x, 1), _TOP, _DROPPED - 6, _AXIS - _TOP, "dropped", f"dropped: {reason}")
            for name, class_ in ((base, "base"), (contender, "contender")):
                if name in measured:
                    at = y.at(measured[name])
                    yield svg.line(round(x, 1), at, round(x + _DROPPED - 6, 1), at, f"mean {class_}")
            yield svg.text(round(x + 1, 1), _TOP - 6, "dropped", "tick")
            x += _DROPPED
        length = max(len(pair.base), len(pair.contender)) * second
        if x >= free:
            yield svg.text(round(x, 1), HEIGHT + lanes - 7, f"{pair.noun} {pair.number}", "tick")
            free = x + _LABEL
        yield svg.line(round(x - gap / 2, 1), _TOP, round(x - gap / 2, 1), _AXIS, "axis")
        for values, class_ in ((pair.base, "base"), (pair.contender, "contender")):
            yield svg.path(svg.polyline(_places(values, x, second, y)), f"seconds {class_}")
        for lane, (name, found) in enumerate(zip((base, contender), pair.activities, strict=True)):
            yield from marks(found, name, lane, x, second, _AXIS)
        x += length + gap


def _places(values: Sequence[float], x: float, second: float, y: LinearScale) -> list[tuple[float, float]]:
    """Return the points of a run's line: the middles of its seconds, or both ends of an only one."""
    if len(values) == 1:
        return [(round(x, 1), y.at(values[0])), (round(x + second, 1), y.at(values[0]))]
    return [(round(x + second * (at + 0.5), 1), y.at(value)) for at, value in enumerate(values)]


def _numbers(rounds: Sequence[RoundSeconds], base: str, contender: str) -> h.Node:
    is_known = any(found for pair in rounds for found in pair.activities)
    rows = (
        row(
            str(pair.number),
            numeric(str(second + 1)),
            *(
                numeric(amount(values[second]) if second < len(values) else DASH)
                for values in (pair.base, pair.contender)
            ),
            *(cell(in_second(found, second + 1)) for found in pair.activities if is_known),
        )
        for pair in rounds
        for second in range(max(len(pair.base), len(pair.contender)))
    )
    meanwhile = (f"{base}, meanwhile", f"{contender}, meanwhile") if is_known else ()
    noun = rounds[0].noun
    heads = (noun, "second", f"{base}, queries/s", f"{contender}, queries/s", *meanwhile)
    return table(heads, rows, caption=f"Queries per second, by {noun} and second")
