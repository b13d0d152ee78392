"""Elements of SVG, and the frame of a chart: a picture with its numbers as a table below it.

They are made from templates: a strip has thousands of cells, for which htpy would take minutes.
"""

from collections.abc import Iterable, Sequence

import htpy as h
from markupsafe import Markup

from report.markup.parts import flat
from report.markup.template import Template, joined

LETTER = 6.4
"""The width of a letter of a label, of which site.css has the size."""

_HATCH = Template(
    '<defs><pattern id="{}" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)">'
    '<rect width="6" height="6" class="hatch-ground"/><line x1="0" y1="0" x2="0" y2="6" class="hatch-line"/>'
    "</pattern></defs>"
)

_FIGURE = Template(
    "<figure><figcaption>{}</figcaption>"
    '<div class="{}" tabindex="0" role="group" aria-label="{}">{}</div>{}{}</figure>'
)
_NUMBERS = Template('<details class="numbers"><summary>The same as a table</summary>{}</details>')
_SVG = Template('<svg viewBox="0 0 {} {}" class="{}" role="group" aria-label="{}">{}</svg>')
_NOTED = Template('<g tabindex="-1" role="img" aria-label="{}"><title>{}</title>{}</g>')
_HATCHED = Template('<rect x="{}" y="{}" width="{}" height="{}" class="band" fill="url(#{})"/>')
_NAME = Template('<text x="{}" y="{}" class="{}" text-anchor="{}"><title>{}</title>{}</text>')
_TEXT = Template('<text x="{}" y="{}" class="{}" text-anchor="{}">{}</text>')
_PATH = Template('<path d="{}" class="{}"/>')
_RECT = Template('<rect x="{}" y="{}" width="{}" height="{}" class="{}"/>')
_TITLED = Template('<rect x="{}" y="{}" width="{}" height="{}" class="{}"><title>{}</title></rect>')
_LINKED = Template('<a href="{}" tabindex="-1" aria-label="{}"><title>{}</title>{}</a>')
_CIRCLE = Template('<circle cx="{}" cy="{}" r="{}" class="{}" data-y="{}"/>')


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight line, as the shortest path: pages of many charts consist mostly of lines."""
    end = f"V{y2:g}" if x1 == x2 else f"H{x2:g}" if y1 == y2 else f"L{x2:g} {y2:g}"
    return _PATH(f"M{x1:g} {y1:g}{end}", class_)


def text(x: float, y: float, content: str, class_: str = "", anchor: str = "start") -> Markup:
    """Return a text; `anchor` is start, middle or end."""
    return _TEXT(x, y, class_, anchor, content)


def name(x: float, y: float, content: str, most: int, class_: str, anchor: str = "start") -> Markup:
    """Return a name of which `most` characters are shown, and all of them while the mouse is over it."""
    if len(content) <= most:
        return text(x, y, content, class_, anchor)
    return _NAME(x, y, class_, anchor, content, shortened(content, most))


def shortened(content: str, most: int) -> str:
    """Return a name of at most `most` characters: names of steps and boxes differ at both ends."""
    if len(content) <= most:
        return content
    end = (most - 1) // 2
    return f"{content[: most - 1 - end]}\N{HORIZONTAL ELLIPSIS}{content[-end:]}"


def path(commands: str, class_: str) -> Markup:
    """Return a path."""
    return _PATH(commands, class_)


def rect(x: float, y: float, width: float, height: float, class_: str, title: str = "") -> Markup:
    """Return a rectangle, with a title that is shown while the mouse is over it."""
    size = (x, y, round(max(width, 0.0), 1), round(max(height, 0.0), 1))
    return _TITLED(*size, class_, title) if title else _RECT(*size, class_)


def hatch(pattern: str) -> Markup:
    """Return the pattern of what is blind or undecided; its id must differ between the charts of a page."""
    return _HATCH(pattern)


def hatched(x: float, y: float, width: float, height: float, pattern: str) -> Markup:
    """Return a rectangle filled with the pattern of this id (`hatch`)."""
    return _HATCHED(x, y, round(width, 1), round(height, 1), pattern)


def circle(x: float, y: float, radius: float, class_: str, value: str = "") -> Markup:
    """Return a mark; `value` is its number as the table beside the chart has it."""
    return _CIRCLE(x, y, radius, class_, value)


def link(href: str, label: str, content: Markup) -> Markup:
    """Return a mark that leads to a page; within its chart, the arrow keys reach it."""
    return _LINKED(href, label, label, content)


def noted(label: str, content: Markup) -> Markup:
    """Return a mark with a label that leads nowhere; within its chart, the arrow keys reach it."""
    return _NOTED(label, label, content)


def polyline(points: Sequence[tuple[float, float] | None]) -> str:
    """Return the commands of a path through points, which is broken where there is none."""
    commands, begins = [], True
    for point in points:
        if point is None:
            begins = True
            continue
        commands.append(f"{'M' if begins else 'L'}{point[0]:g} {point[1]:g}")
        begins = False
    return "".join(commands)


class Picture(Markup):
    """The SVG of a chart, with the sentence that says what it shows."""

    finding: str = ""


def picture(width: int, height: int, parts: Iterable[Markup], finding: str, class_: str = "") -> Picture:
    """Return the SVG of a chart; `finding` says in a sentence what it shows, as its label."""
    made = Picture(_SVG(width, height, f"chart {class_}".strip(), finding, joined(parts)))
    made.finding = finding
    return made


def figure(
    drawn: Picture, caption: h.Node, numbers: h.Node, *, wide: bool = True, key: h.Node = None
) -> Markup:
    """Return a chart with its caption and the same numbers as a table that can be opened.

    The frame is the only stop of the Tab key in a chart, and its label is what the chart shows. The next stop
    opens the table. A frame that is `wide` scrolls on a narrow screen.
    """
    return _FIGURE(
        flat(caption),
        "plot wide" if wide else "plot",
        drawn.finding,
        drawn,
        flat(key),
        _NUMBERS(flat(numbers)) if numbers is not None else "",
    )
