"""Pages of results: the rows of their tables, and ratios as they write them."""

import re
from collections.abc import Iterator

from build.home import ROOT
from history.comparison.verdict import Judged

RESULTS = ROOT / "docs/results"


def tables(page: str, first: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the tables of a page whose head begins with a word, by the names of columns."""
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    for head, body in re.findall(rf"^\| ({first} \|.*)\|\n\|[-| ]+\n((?:\|.*\n)+)", text, re.MULTILINE):
        names = [name.strip() for name in head.split("|")]
        for line in body.splitlines():
            yield dict(zip(names, (cell.strip() for cell in line.strip("|").split("|")), strict=True))


def ratio_text(judged: Judged) -> str:
    assert judged.interval is not None
    estimate, low, high = (judged.interval.estimate, judged.interval.low, judged.interval.high)
    return f"{estimate:.2f} ({low:.2f} to {high:.2f})"
