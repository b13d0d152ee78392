"""The debt quadrant: throughput against the reset that follows it, a mark for each step.

A version that defers vacuum or purge looks faster while it runs, and pays afterwards: the corner at the upper
right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import htpy as h
from markupsafe import Markup

from report.charts import svg
from report.charts.scales import RatioScale
from report.markup.formats import percent
from report.markup.parts import table

WIDTH, HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 18, 18, 42
_CROWDED = 9.0


@dataclass(frozen=True)
class DebtMark:
    """One step: how much faster it ran, and how much longer the reset after it took."""

    step: str
    throughput: float
    reset: float
    is_decided: bool
    """Whether the verdict on its throughput is decided."""

    href: str


def quadrant_figure(marks: Sequence[DebtMark], caption: h.Node) -> h.Node:
    """Return the chart with its table. There must be a mark."""
    return svg.figure(_draw(marks), caption, _numbers(marks), wide=False)


def _draw(marks: Sequence[DebtMark]) -> Markup:
    x = RatioScale.around([mark.reset for mark in marks], _LEFT, WIDTH - _RIGHT)
    y = RatioScale.around([mark.throughput for mark in marks], HEIGHT - _BOTTOM, _TOP)
    parts = [
        svg.rect(x.at(1), _TOP, x.edge - x.at(1), y.at(1) - _TOP, "debt"),
        svg.text(x.edge - 8, _TOP + 16, "faster, but pays later", "corner", "end"),
        svg.text(_LEFT + 8, _TOP + 16, "faster, and cleans up sooner", "corner"),
        svg.text(x.edge - 8, HEIGHT - _BOTTOM - 8, "slower, and pays more", "corner", "end"),
        svg.text(_LEFT + 8, HEIGHT - _BOTTOM - 8, "slower, with less left over", "corner"),
    ]
    for ratio, label in x.ticks():
        parts.append(svg.line(x.at(ratio), _TOP, x.at(ratio), HEIGHT - _BOTTOM, "one" if ratio == 1 else "grid"))
        parts.append(svg.text(x.at(ratio), HEIGHT - _BOTTOM + 16, label, "tick", "middle"))
    for ratio, label in y.ticks():
        parts.append(svg.line(_LEFT, y.at(ratio), WIDTH - _RIGHT, y.at(ratio), "one" if ratio == 1 else "grid"))
        parts.append(svg.text(_LEFT - 6, y.at(ratio) + 4, label, "tick", "end"))
    parts.append(svg.text(WIDTH - _RIGHT, HEIGHT - 6, "seconds of the reset →", "tick", "end"))
    parts.append(svg.text(_LEFT, 11, "↑ queries/s", "tick"))
    parts += _marks(marks, x, y)
    return svg.picture(WIDTH, HEIGHT, parts, f"Throughput against reset, {len(marks)} steps", "quadrant")


def _marks(marks: Sequence[DebtMark], x: RatioScale, y: RatioScale) -> list[Markup]:
    parts: list[Markup] = []
    taken: list[tuple[float, float]] = []
    for mark in sorted(marks, key=lambda one: y.at(one.throughput)):
        at = (x.at(mark.reset), y.at(mark.throughput))
        label = f"{mark.step}: queries/s {percent(mark.throughput)}, reset {percent(mark.reset)}"
        kind = "point" if mark.is_decided else "point hollow"
        parts.append(svg.link(mark.href, label, svg.circle(*at, 4.5, kind, f"{mark.throughput:.4f}")))
        # Labels that would lie on one another are moved down.
        height = at[1] + 4
        while any(abs(height - other[1]) < _CROWDED and abs(at[0] - other[0]) < 110 for other in taken):
            height += _CROWDED
        taken.append((at[0], height))
        left = at[0] > WIDTH - 140
        parts.append(svg.text(at[0] + (-8 if left else 8), height, mark.step[:20], "mark", "end" if left else "start"))
    return parts


def _numbers(marks: Sequence[DebtMark]) -> h.Node:
    rows = (
        h.tr[
            h.th(scope="row")[h.a(href=mark.href)[mark.step]],
            h.td(".n", data_y=f"{mark.throughput:.4f}")[percent(mark.throughput)],
            h.td(".n")[percent(mark.reset)],
            h.td["decided" if mark.is_decided else "undecided"],
        ]
        for mark in marks
    )
    return table(("step", "queries/s", "reset, s", "verdict"), rows, caption="Throughput and reset by step")
