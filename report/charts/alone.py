"""A chart of nights as a file of its own, to stand in a wiki or an issue: colours, title and text inside."""

from history.escaping.characters import one_line, visible
from report.charts.nights import HEIGHT, WIDTH, NightChart, draw
from report.markup.template import Template

SMALL = (460, 150)
"""Width and height of a chart of a series."""

MAX_LETTERS = 100
"""The most letters of the headline, of which smaller pictures have half."""

_TOP = 34

_PICTURE = Template(
    '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" viewBox="0 0 {} {}" role="img" '
    'aria-labelledby="title desc"><title id="title">{}</title><desc id="desc">{}</desc><style>{}</style>'
    '<rect x=".5" y=".5" width="{}" height="{}" rx="8" class="paper"/>'
    '<text x="14" y="23" class="headline">{}</text>'
    '<svg y="{}" width="{}" height="{}">{}</svg></svg>\n'
)
_STYLE = (
    ".paper { fill: var(--sheet); stroke: var(--rule); } "
    '.headline { font: 600 14px system-ui, "DejaVu Sans", sans-serif; fill: var(--ink); }'
)


def picture_of(chart: NightChart, headline: str, sentence: str, style: str, *, small: bool = False) -> str:
    """Return a chart as a file of SVG, whose colours follow the reader's scheme on a ground of its own.

    `style` has the rules of charts and the colours of `site.css`. The chart must have a night.
    """
    width, height = SMALL if small else (WIDTH, HEIGHT)
    whole = height + _TOP
    shown = one_line(headline, MAX_LETTERS // 2 if small else MAX_LETTERS)
    return visible(
        _PICTURE(
            *(width, whole, width, whole),
            *(one_line(headline), one_line(sentence), f"{style}{_STYLE}"),
            *(width - 1, whole - 1, shown),
            *(_TOP, width, height, draw(chart, small=small)),
        )
    )


def style_of_charts(sheet: str) -> str:
    """Return the colours of `site.css` and its rules for charts of nights, which stand between two marks."""
    colours = sheet[sheet.index(":root {") : sheet.index("* { box-sizing")]
    return colours + sheet[sheet.index("/* charts of nights */") : sheet.index("/* other charts */")]
