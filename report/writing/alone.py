"""Pages to mail: one file with its style sheet inside, without scripts, that needs no network."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import htpy as h

from history.comparison.result import Comparison
from history.timestamps import now
from report.markup.frame import Page, dated, standalone
from report.markup.parts import bullets, legend, section, table
from report.pages.comparison import comparison_page, comparison_sections, last_moment

STYLE = Path(__file__).parent.parent / "static/site.css"


def alone(page: Page) -> str:
    """Return a page with its style sheet inside and the time when it was written."""
    return dated(standalone(page, STYLE.read_text(encoding="utf-8")), now())


def comparison_alone(comparison: Comparison) -> str:
    """Return a comparison as a page to mail."""
    return alone(comparison_page(comparison))


def tried_alone(
    title: str,
    headline: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    below: Mapping[str, Sequence[str]],
    comparisons: Sequence[tuple[str, Comparison]],
) -> str:
    """Return the answer of a try as a page to mail, with both comparisons below it.

    `heads` and `rows` are those of its table; the lines `below` it and the `comparisons` have a heading each.
    """
    cells = (h.tr[h.th(scope="row")[step], (h.td[cell] for cell in others)] for step, *others in rows)
    body = [
        section("The answer", table(heads, cells, caption="What changed, step by step"), lead=headline),
        *(section(heading, bullets(lines)) for heading, lines in below.items() if lines),
        *(part for heading, comparison in comparisons for part in comparison_sections(comparison, heading)),
        legend(),
    ]
    until = max(
        (last for _, comparison in comparisons if (last := last_moment(comparison)) is not None), default=None
    )
    return alone(Page("try.html", title, body, until))
