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
from report.markup.parts import charted, numeric, table

WIDTH, HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 18, 18, 42
_MAX_LETTERS = 20
_LINE = 13
"""The height of a line of a label."""


@dataclass(frozen=True)
class DebtMark:
    """One step: how much faster it ran, and how much longer the reset after it took."""

    step: str
    throughput: float
    reset: float
    is_decided: bool
    """Whether the verdict on its throughput is decided."""

    href: str


def quadrant_figure(marks: Sequence[DebtMark], unit: str, caption: h.Node) -> h.Node:
    """Return the chart with its table; `unit` is that of throughput. There must be a mark."""
    return svg.figure(_draw(marks, unit), caption, _numbers(marks, unit), wide=False)


def _draw(marks: Sequence[DebtMark], unit: str) -> svg.Picture:
    x = RatioScale.around([mark.reset for mark in marks], _LEFT, WIDTH - _RIGHT)
    y = RatioScale.around([mark.throughput for mark in marks], HEIGHT - _BOTTOM, _TOP)
    parts = [
        svg.rect(x.at(1), _TOP, x.edge - x.at(1), y.at(1) - _TOP, "debt"),
        *(svg.text(left, top + 11, text, "corner") for text, left, top in _corners(x)),
    ]
    for ratio, label in x.ticks():
        parts.append(
            svg.line(x.at(ratio), _TOP, x.at(ratio), HEIGHT - _BOTTOM, "one" if ratio == 1 else "grid")
        )
        parts.append(svg.text(x.at(ratio), HEIGHT - _BOTTOM + 16, label, "tick", "middle"))
    for ratio, label in y.ticks():
        parts.append(
            svg.line(_LEFT, y.at(ratio), WIDTH - _RIGHT, y.at(ratio), "one" if ratio == 1 else "grid")
        )
        parts.append(svg.text(_LEFT - 6, y.at(ratio) + 4, label, "tick", "end"))
    parts.append(svg.text(WIDTH - _RIGHT, HEIGHT - 6, "seconds of the reset →", "tick", "end"))
    parts.append(svg.text(_LEFT, 11, f"↑ {unit}", "tick"))
    parts += _marks(marks, unit, x, y)
    later = [mark.step for mark in marks if mark.throughput > 1 and mark.reset > 1]
    finding = f"Throughput against reset: {len(later)} of {len(marks)} steps are faster and reset longer"
    named = f"{finding}: {', '.join(later)}" if later else finding
    return svg.picture(WIDTH, HEIGHT, parts, named, "quadrant")


def _corners(x: RatioScale) -> list[tuple[str, float, float]]:
    """Return what each quadrant means, with left edge and top of the text; nothing where it has no room."""
    top, bottom, left, unchanged = _TOP + 5, HEIGHT - _BOTTOM - 19, _LEFT + 8.0, x.at(1)
    texts = (
        ("faster, and cleans up sooner", "faster, but pays later"),
        ("slower, with less left over", "slower, and pays more"),
    )
    placed: list[tuple[str, float, float]] = []
    for (first, second), at in zip(texts, (top, bottom), strict=True):
        if left + svg.LETTER * len(first) < unchanged:
            placed.append((first, left, at))
        begin = x.edge - 8 - svg.LETTER * len(second)
        if begin > unchanged:
            placed.append((second, begin, at))
    return placed


def _marks(marks: Sequence[DebtMark], unit: str, x: RatioScale, y: RatioScale) -> list[Markup]:
    parts: list[Markup] = []
    taken = [(x.at(mark.reset) - 6, y.at(mark.throughput) - 6, 12.0) for mark in marks]
    taken += [(left, top, svg.LETTER * len(text)) for text, left, top in _corners(x)]
    for mark in sorted(marks, key=lambda mark: (y.at(mark.throughput), mark.step)):
        at = (x.at(mark.reset), y.at(mark.throughput))
        name = svg.shortened(mark.step, _MAX_LETTERS)
        left, baseline = _room(at, svg.LETTER * len(name), taken)
        if abs(baseline - 4 - at[1]) > _LINE:
            parts.append(svg.line(*at, left, baseline - 4, "leader"))
        parts.append(svg.text(left, baseline, name, "mark"))
        label = f"{mark.step}: {unit} {percent(mark.throughput)}, reset {percent(mark.reset)}"
        kind = "point" if mark.is_decided else "point hollow"
        point = svg.circle(*at, 4.5, kind, f"{mark.throughput:.4f}")
        parts.append(svg.link(mark.href, label, point) if mark.href else point)
    return parts


def _room(
    at: tuple[float, float], width: float, taken: list[tuple[float, float, float]]
) -> tuple[float, float]:
    """Return left edge and baseline of a label near a mark that lies on no other label; they are added."""
    for shift in range(40):
        for down in (shift, -shift):
            for left in (at[0] + 9, at[0] - 9 - width):
                top = at[1] - 7 + down * 7
                inside = (
                    left > _LEFT and left + width < WIDTH - _RIGHT and _TOP < top < HEIGHT - _BOTTOM - _LINE
                )
                free = all(
                    abs(top - other[1]) >= _LINE or left > other[0] + other[2] or left + width < other[0]
                    for other in taken
                )
                if inside and free:
                    taken.append((left, top, width))
                    return round(left, 1), round(top + 11, 1)
    return at[0] + 9, at[1] + 4


def _numbers(marks: Sequence[DebtMark], unit: str) -> h.Node:
    rows = (
        h.tr[
            h.th(scope="row")[h.a(href=mark.href)[mark.step] if mark.href else mark.step],
            charted(percent(mark.throughput), mark.throughput),
            numeric(percent(mark.reset)),
            h.td["decided" if mark.is_decided else "undecided"],
        ]
        for mark in marks
    )
    return table(("step", unit, "reset, s", "verdict"), rows, caption="Throughput and reset by step")
