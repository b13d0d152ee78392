"""The cost fingerprint of a cell: four small bars for what a query costs, and a sign if none explains it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from report.charts import svg
from report.markup.formats import percent
from report.markup.template import Template

_WHOLE = Template('<span class="fingerprint">{}{}</span>')
_WHY = Template('<span class="why" title="{}">?</span>')
_HEIGHT, _BAR, _GAP = 24, 8, 3
_FULL = math.log(1.5)
"""A bar is full from a change by half on."""


@dataclass(frozen=True)
class CostMark:
    """What one cost did."""

    label: str
    ratio: float | None
    tone: str
    """better, worse, open or plain."""


def fingerprint(marks: Sequence[CostMark], unexplained: str) -> Markup:
    """Return the bars, upwards where a query costs more; `unexplained` says why a sign stands beside them."""
    middle = _HEIGHT / 2
    width = (_BAR + _GAP) * len(marks) + _GAP
    parts = [svg.line(0, middle, width, middle, "grid")]
    for number, mark in enumerate(marks):
        x = _GAP + (_BAR + _GAP) * number
        if mark.ratio is None or mark.ratio <= 0:
            parts.append(svg.rect(x, middle - 0.5, _BAR, 1, "cost-bar none"))
            continue
        size = max(0.8, min(1.0, abs(math.log(mark.ratio)) / _FULL) * (middle - 1))
        top = middle - size if mark.ratio > 1 else middle
        parts.append(svg.rect(x, round(top, 1), _BAR, round(size, 1), f"cost-bar {mark.tone}"))
    label = ", ".join(f"{mark.label} {percent(mark.ratio)}" for mark in marks)
    drawn = svg.picture(width, _HEIGHT, parts, f"Costs per query: {label}", "fingerprint")
    return _WHOLE(drawn, _WHY(unexplained) if unexplained else "")
