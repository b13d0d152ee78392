"""Flame graphs as files of SVG that stand alone: callers above what they call, widths per query."""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from history.comparison.profile_diff import Differential, total
from history.escaping.characters import one_line, visible
from report.charts.svg import LETTER
from report.markup.template import Template, joined, own_file
from suites.profiling.stacks import StepProfile

WIDTH = 1600
ROW = 18
LEAST = 0.5
"""The width of a frame, in pixels, below which it is left out with what it calls."""

MANY_COLOURS = 5
"""The number of shades, of a function by its name and of a change by its size."""

STRENGTHS = (0.0005, 0.002, 0.01, 0.03, 0.1)
"""The shares of all CPU time per query from which a change has the next shade."""

_TOP = 58
_SCRIPT = Path(__file__).parents[1] / "static/flame_graph.js"

_PICTURE = Template(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" preserveAspectRatio="xMidYMin" role="img" '
    'aria-labelledby="title desc">'
    '<title id="title">{}</title><desc id="desc">{}</desc><style>{}</style>'
    '<rect width="100%" height="100%" class="paper"/><text x="12" y="24" class="headline">{}</text>'
    '<text x="12" y="44">{}</text>{}<script><![CDATA[\n{}]]></script></svg>\n'
)
_FRAME = Template(
    '<g data-name="{}"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}" class="{}"/>'
    '<text x="{}" y="{}">{}</text></g>'
)
_STYLE = Template(
    "svg { background: #fff; } .paper { fill: #fff; } g { cursor: pointer; } g rect { stroke: #fff; "
    'stroke-width: .5; } text { font: 11px ui-monospace, "DejaVu Sans Mono", monospace; fill: #111; } '
    ".headline { font-size: 15px; font-weight: 600; } "
    ".same { fill: #eee; } .f0 { fill: #f6d55c; } .f1 { fill: #f4b860; } .f2 { fill: #f2a65a; } "
    ".f3 { fill: #ee8d4f; } .f4 { fill: #f0c27b; } .kernel { fill: #c9b7dd; } .role { fill: #ccd6e0; } "
    ".worse1 { fill: #fde3dc; } .worse2 { fill: #fbc4b6; } .worse3 { fill: #f69f8a; } "
    ".worse4 { fill: #ee755c; } .worse5 { fill: #e04a32; } .better1 { fill: #deebf7; } "
    ".better2 { fill: #c0d8ee; } .better3 { fill: #97bfe2; } .better4 { fill: #6aa3d3; } "
    ".better5 { fill: #3d82bf; }"
)


@dataclass
class _Frame:
    name: str
    depth: int
    before: float = 0.0
    """The cost per query in the base, 0 where there is none."""
    after: float = 0.0
    own_change: float = 0.0
    """How much more it costs itself, without what it calls."""
    callees: "dict[str, _Frame]" = field(default_factory=dict)


def flame_graph(profile: StepProfile, title: str) -> str:
    """Return the flame graph of one version as a file of SVG."""
    cost = f"{total(profile):.2f} µs of CPU per query, {profile.samples} samples by {profile.event}"
    if profile.is_exact:
        cost = f"{total(profile):.0f} instructions per query, exact"
    return _picture(_tree({}, _per_query(profile)), title, cost, profile.is_exact, is_difference=False)


def difference_graph(both: Differential, title: str) -> str:
    """Return the contender's flame graph, red where a function itself costs more than in the base, else blue.

    Functions that only the base has are missing.
    """
    old, new = both.base_total, both.contender_total
    cost = f"{old:.2f} to {new:.2f} µs of CPU per query ({new - old:+.2f})"
    if both.base.is_exact:
        cost = f"{old:.0f} to {new:.0f} instructions per query, exact ({new - old:+.0f})"
    said = f"{cost}; red is more in a function itself, blue is less"
    tree = _tree(_per_query(both.base), _per_query(both.contender))
    return _picture(
        tree,
        title,
        said,
        both.base.is_exact,
        is_difference=True,
    )


def _per_query(profile: StepProfile) -> Mapping[str, float]:
    scale = profile.microseconds_per_sample
    return {stack: count * scale for stack, count in profile.stacks.items()}


def _tree(before: Mapping[str, float], after: Mapping[str, float]) -> _Frame:
    root = _Frame("all", 0)
    for costs, is_after in ((before, False), (after, True)):
        for stack, cost in sorted(costs.items()):
            at = root
            for name in ("", *stack.split(";")):
                if name:
                    at = at.callees.setdefault(name, _Frame(name, at.depth + 1))
                if is_after:
                    at.after += cost
                else:
                    at.before += cost
            at.own_change += cost if is_after else -cost
    return root


def _placed(root: _Frame) -> Iterator[tuple[_Frame, float, float]]:
    """Yield the frames that are wide enough, with left end and width, callers first."""
    scale = WIDTH / (root.after or 1.0)
    waiting = [(root, 0.0)]
    while waiting:
        frame, left = waiting.pop()
        width = frame.after * scale
        if width < LEAST:
            continue
        yield frame, left, width
        for callee in frame.callees.values():
            waiting.append((callee, left))
            left += callee.after * scale


def _picture(root: _Frame, title: str, cost: str, is_exact: bool, *, is_difference: bool) -> str:
    frames, deepest = [], 0
    for frame, left, width in _placed(root):
        deepest = max(deepest, frame.depth)
        class_ = _change(frame, root) if is_difference else _shade(frame)
        frames.append(_drawn(frame, left, width, class_, _label(frame, root, is_exact, is_difference)))
    height = _TOP + (deepest + 1) * ROW + 6
    headline, said = one_line(title), f"{cost}. Click on a frame to widen it."
    words = (headline, said, _STYLE(), headline, said)
    return visible(_PICTURE(WIDTH, height, *words, joined(frames), own_file(_SCRIPT)))


def _drawn(frame: _Frame, left: float, width: float, class_: str, label: str) -> Markup:
    name, letters = one_line(frame.name), int((width - 6) / LETTER)
    shown = name if len(name) <= letters else f"{name[: letters - 1]}…" if letters > 2 else ""
    y = _TOP + frame.depth * ROW
    box = (round(left, 2), y, round(width, 2), ROW - 1)
    return _FRAME(name, label, *box, class_, round(left + 3, 2), y + 12, shown)


def _label(frame: _Frame, root: _Frame, is_exact: bool, is_difference: bool) -> str:
    digits, unit = (0, "instructions") if is_exact else (2, "µs")
    cost = f"{one_line(frame.name)}: {frame.after:.{digits}f} {unit} per query"
    share = f"{100 * (frame.after / (root.after or 1.0)):.1f} %"
    if not is_difference:
        return f"{cost}, {share}"
    whole = f"base {frame.before:.{digits}f} ({frame.after - frame.before:+.{digits}f})"
    return f"{cost}, {share}; {whole}; {frame.own_change:+.{digits}f} in itself"


def _shade(frame: _Frame) -> str:
    if frame.depth < 2:
        return "role"
    if frame.name.endswith("_[k]"):
        return "kernel"
    return f"f{zlib.crc32(frame.name.encode(errors='replace')) % MANY_COLOURS}"


def _change(frame: _Frame, root: _Frame) -> str:
    strength = sum(abs(frame.own_change) >= least * max(root.after, root.before) for least in STRENGTHS)
    return f"{'worse' if frame.own_change > 0 else 'better'}{strength}" if strength else "same"
