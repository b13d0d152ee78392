"""The looks of a night in a strip: what is known of it, each with a sign that needs no colour."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

import htpy as h
from markupsafe import Markup

from history.comparison.verdict import Verdict
from report.markup.formats import share
from report.markup.parts import SIGNS, shade_of
from report.markup.template import Template, joined
from suites.metrics import Better


class Look(Enum):
    """What a night says of a step. The value is the sign that a table shows."""

    WORSE = SIGNS[Verdict.REGRESSION]
    BETTER = SIGNS[Verdict.IMPROVEMENT]
    MOVED = "\N{WHITE DIAMOND}"
    """A change in a metric without a better direction."""

    UNCHANGED = SIGNS[Verdict.UNCHANGED]
    UNDECIDED = SIGNS[Verdict.INCONCLUSIVE]
    """The interval of the session, or the noise of the step, allows a change."""

    UNKNOWN = "\N{WHITE CIRCLE}"
    """The night has neither rounds nor a calibration: nobody knows what the step can see."""

    FAILED = "\N{HEAVY MULTIPLICATION X}"
    MISSING = "\N{EN DASH}"

    @property
    def is_blind(self) -> bool:
        """Whether the night has a value of which nobody can say whether it is a change."""
        return self in (Look.UNDECIDED, Look.UNKNOWN)


@dataclass(frozen=True)
class Sight:
    """What is known of a step in a night, beside its ratio."""

    better: Better
    threshold: float
    """The fraction beyond which a change counts."""

    visible: float | None
    """The smallest change that the step is likely to see, as a fraction; None without a calibration."""

    is_open: bool | None = None
    """Whether the verdict of its session is open; None for a session without rounds."""

    interval: tuple[float, float] | None = None
    """The interval of its session."""


def look_of(ratio: float | None, reason: str, sight: Sight) -> Look:
    """Return the look of a night: by the verdict of its session, without rounds by the calibration.

    `reason` is why there is no ratio; empty when nothing was to be measured.
    """
    if ratio is None:
        return Look.FAILED if reason else Look.MISSING
    if sight.is_open is None and sight.visible is None:
        return Look.UNKNOWN
    if _is_undecided(ratio, sight):
        return Look.UNDECIDED
    low, high = sight.interval or (ratio, ratio)
    if low <= 1 <= high or abs(ratio - 1) <= sight.threshold:
        return Look.UNCHANGED
    if sight.better is Better.NEITHER:
        return Look.MOVED
    return Look.BETTER if sight.better.gain(ratio - 1) > 0 else Look.WORSE


def _is_undecided(ratio: float, sight: Sight) -> bool:
    if sight.is_open is not None:
        return sight.is_open
    visible = sight.visible or 0.0
    return visible > sight.threshold and abs(ratio - 1) < visible


def meaning(look: Look, threshold: float | None = None) -> str:
    """Return what a look means, in the words of verdicts."""
    limit = "the threshold" if threshold is None else share(threshold)
    return {
        Look.WORSE: f"worse by more than {limit}",
        Look.BETTER: f"better by more than {limit}",
        Look.MOVED: f"changed by more than {limit}",
        Look.UNCHANGED: "unchanged",
        Look.UNDECIDED: f"undecided: a change beyond {limit} cannot be ruled out",
        Look.UNKNOWN: "unknown: not calibrated, so nobody knows what the step can see",
        Look.FAILED: "failed: the night began, and has no value",
        Look.MISSING: "missing: no night, or the step was not in it",
    }[look]


_CELL = Template('<rect x="{}" class="cell {}"><title>{}</title></rect>')
_SIGN = Template('<path d="{}" vector-effect="non-scaling-stroke" class="look {}"/>')
_SAMPLE = Template('<svg viewBox="0 0 22 16" class="look-sample" aria-hidden="true">{}</svg>')
_SCALED = Template('<g transform="scale(22 1)">{}</g>')

_STROKES = {
    Look.WORSE: (("filled", "M{} 6h.36l-.18 5z", 0.28),),
    Look.BETTER: (("filled", "M{} 11h.36l-.18 -5z", 0.28),),
    Look.MOVED: (("line", "M{} 8l.18 -4l.18 4l-.18 4z", 0.28),),
    Look.UNCHANGED: (("quiet", "M{} 6.5h.26m-.26 3h.26", 0.33),),
    Look.UNDECIDED: (("hatching", "M{} 8l.46-8m-.46 16l.92-16m-.46 16l.46-8", 0.0),),
    Look.UNKNOWN: (("ring", "M{} 8h0", 0.46), ("hole", "M{} 8h0", 0.46)),
    Look.FAILED: (("cross", "M{} 4l.4 8m0-8l-.4 8", 0.26),),
    Look.MISSING: (("quiet", "M{} 8h.26", 0.33),),
}
"""The signs in cells that are a unit wide and 16 high: class, commands, and where each begins in its cell."""


def drawn_cell(number: int, look: Look, ratio: float | None, better: Better, title: str) -> Markup:
    """Return the ground of the cell of a night, of which `number` is the place in its row."""
    return _CELL(number, _ground(look, ratio, better), title)


def signs(looks: Iterable[Look]) -> Iterator[Markup]:
    """Yield the signs of a row of cells, each kind as one path: a strip has thousands of cells."""
    row = list(looks)
    for look, strokes in _STROKES.items():
        places = [number for number, found in enumerate(row) if found is look]
        for class_, commands, at in strokes if places else ():
            yield _SIGN("".join(commands.format(f"{place + at:.4g}") for place in places), class_)


def legend_of(looks: Counter[Look], threshold: float, better: Better) -> h.Node:
    """Return what the looks in a strip mean, with how many cells have each."""
    shown = [look for look in Look if looks[look]]
    return h.ul(".legend.looks", aria_label="Signs of the strip")[
        (h.li[_sample(look, better), f"{looks[look]} {meaning(look, threshold)}"] for look in shown)
    ]


def _sample(look: Look, better: Better) -> Markup:
    ratio = {Look.WORSE: 0.9, Look.BETTER: 1.1}.get(look, 1.0)
    if better is Better.LOWER:
        ratio = 2 - ratio
    cell = _CELL(0, _ground(look, ratio, better), meaning(look))
    return _SAMPLE(_SCALED(joined([cell, *signs([look])])))


def _ground(look: Look, ratio: float | None, better: Better) -> str:
    if ratio is None or look in (Look.UNDECIDED, Look.FAILED, Look.MISSING):
        return look.name.lower()
    if look is Look.UNCHANGED:
        return "same"
    return shade_of(ratio, better)
