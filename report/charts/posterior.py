"""The posterior of a bisect: the probability of each commit to be the one with the change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import htpy as h
from markupsafe import Markup

from history.numbers import DASH
from report.charts import svg
from report.charts.scales import LinearScale, RatioScale, usual_ends
from report.markup.formats import change_of, probability, span
from report.markup.parts import charted, numeric, table

WIDTH, HEIGHT = 960, 300
_LEFT, _RIGHT = 56, 14
_LEVELS = (16, 150)
_SHARES = (176, 274)


@dataclass(frozen=True)
class PositionMark:
    """One commit of a bisect, in order."""

    position: int
    commit: str
    subject: str
    probability: float
    ratio: float | None
    """The ratio to good, where it was measured."""

    low: float | None
    high: float | None
    rounds: int
    href: str = ""
    """Upstream's page of the commit."""

    excluded: str = ""
    """Why it could not be measured."""


def posterior_figure(
    marks: Sequence[PositionMark], nobody: float | None, caption: h.Node, rounds: str
) -> h.Node:
    """Return levels above, probabilities below, and the table.

    `nobody` is the probability of no single culprit, if it is shown; `rounds` is what rounds are called.
    """
    return svg.figure(_draw(marks), caption, _numbers(marks, nobody, rounds))


def _draw(marks: Sequence[PositionMark]) -> svg.Picture:
    x = LinearScale(-0.5, max(mark.position for mark in marks) + 0.5, _LEFT, WIDTH - _RIGHT)
    levels = [mark.ratio for mark in marks if mark.ratio is not None]
    levels += usual_ends(
        (mark.low, mark.high) for mark in marks if mark.low is not None and mark.high is not None
    )
    y = RatioScale.around(levels, _LEVELS[1], _LEVELS[0])
    share = LinearScale(0.0, 1.0, _SHARES[1], _SHARES[0])
    parts = [*_axes(y, share)]
    width = max(4.0, min(26.0, x.at(1) - x.at(0) - 2))
    for mark in marks:
        parts += _mark(mark, x.at(mark.position), y, share, width)
    for value, label in x.ticks(12):
        parts.append(svg.text(x.at(value), HEIGHT - 8, label, "tick", "middle"))
    likely = max(marks, key=lambda mark: mark.probability)
    finding = (
        f"Probability of {len(marks)} commits: most likely position {likely.position}, {likely.commit}, with "
        f"{probability(likely.probability)}; ratio to good {change_of(likely.ratio)}"
    )
    return svg.picture(WIDTH, HEIGHT, parts, finding)


def _axes(y: RatioScale, share: LinearScale) -> Iterator[Markup]:
    for ratio, label in y.ticks():
        yield svg.line(_LEFT, y.at(ratio), WIDTH - _RIGHT, y.at(ratio), "one" if ratio == 1 else "grid")
        yield svg.text(_LEFT - 6, y.at(ratio) + 4, label, "tick", "end")
    for value in (0.0, 0.5, 1.0):
        yield svg.line(_LEFT, share.at(value), WIDTH - _RIGHT, share.at(value), "grid")
        yield svg.text(_LEFT - 6, share.at(value) + 4, f"{100 * value:.0f} %", "tick", "end")


def _mark(mark: PositionMark, x: float, y: RatioScale, share: LinearScale, width: float) -> Iterator[Markup]:
    label = f"{mark.position}: {mark.commit} {mark.subject}, {probability(mark.probability)}"
    top = share.at(mark.probability)
    bar = svg.rect(round(x - width / 2, 1), top, width, max(share.at(0) - top, 0.5), "bar", label)
    yield svg.link(mark.href, label, bar) if mark.href else bar
    if mark.low is not None and mark.high is not None:
        yield svg.line(x, y.at(mark.low), x, y.at(mark.high), "error")
    if mark.ratio is not None:
        yield svg.circle(x, y.at(mark.ratio), 4, "point", f"{mark.ratio:.4f}")
    elif mark.excluded:
        at = _LEVELS[1] - 8
        yield svg.path(f"M{x - 3:g} {at}l6 6m0 -6l-6 6", "gap")


def _numbers(marks: Sequence[PositionMark], nobody: float | None, rounds: str) -> h.Node:
    rows: list[h.Node] = [
        h.tr[
            numeric(str(mark.position)),
            h.th(scope="row")[h.a(href=mark.href)[h.code[mark.commit]] if mark.href else h.code[mark.commit]],
            numeric(probability(mark.probability)),
            charted(change_of(mark.ratio), mark.ratio),
            numeric(span(mark.low, mark.high) if mark.low is not None and mark.high is not None else DASH),
            numeric(str(mark.rounds) if mark.rounds else DASH),
            h.td[mark.excluded or mark.subject],
        ]
        for mark in marks
    ]
    if nobody is not None:
        share = numeric(probability(nobody))
        rows.append(h.tr[h.td, h.th(scope="row")["no single culprit"], share, [h.td] * 4])
    heads = ("position", "commit", "probability", "ratio to good", "interval", rounds, "subject")
    return table(heads, rows, caption="Commits from good to bad")
