"""Pages to mail: one file with its style sheet inside, without scripts, that needs no network."""

from pathlib import Path

from history.comparison.result import Comparison
from history.timestamps import now
from report.markup.frame import Page, dated, standalone
from report.pages.comparison import comparison_page

STYLE = Path(__file__).parent.parent / "static/site.css"


def alone(page: Page) -> str:
    """Return a page with its style sheet inside and the time when it was written."""
    return dated(standalone(page, STYLE.read_text(encoding="utf-8")), now())


def comparison_alone(comparison: Comparison) -> str:
    """Return a comparison as a page to mail."""
    return alone(comparison_page(comparison))
