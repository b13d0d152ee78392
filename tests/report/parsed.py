"""Pages as tests read them: links, ids, texts and numbers, by Python's own parser of HTML."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

VOID = {"meta", "link", "input", "br", "img", "hr"}


@dataclass
class ParsedPage:
    """What a page holds."""

    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    text: str = ""
    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    """The cells of every row of every table."""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = ParsedPage()
        self.cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.page.tags.append((tag, given))
        if "id" in given:
            self.page.ids.add(given["id"])
        self.page.links += [given[name] for name in ("href", "src") if name in given]
        if tag in ("tr", "td", "th"):
            self._end_cell()
        if tag == "tr":
            self.page.rows.append([])
        if tag in ("td", "th"):
            self.cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "thead", "tbody", "tfoot", "table"):
            self._end_cell()

    def _end_cell(self) -> None:
        """End a cell, perhaps one whose end tag is implied by what follows."""
        if self.cell is not None:
            self.page.rows[-1].append("".join(self.cell).strip())
            self.cell = None

    def handle_data(self, data: str) -> None:
        self.page.text += data
        if self.cell is not None:
            self.cell.append(data)


def parsed(path: Path) -> ParsedPage:
    """Return what a page holds."""
    return parsed_text(path.read_text(encoding="utf-8"))


def parsed_text(text: str) -> ParsedPage:
    """Return what a page holds, from its HTML."""
    reader = _Reader()
    reader.feed(text)
    return reader.page


def pages_of(site: Path) -> list[Path]:
    """Return all pages of a site."""
    return sorted(site.rglob("*.html"))


def dead_links(site: Path) -> Iterator[str]:
    """Yield the links of a site that lead nowhere: no such file, or no such id in it."""
    known = {path: parsed(path) for path in pages_of(site)}
    for path, page in known.items():
        for link in page.links:
            if link.startswith(("https:", "data:")):
                continue
            name, anchor = urldefrag(link)
            target = (path.parent / unquote(name)).resolve() if name else path
            if not target.is_file():
                yield f"{path.relative_to(site)}: {link} is no file"
            elif (
                anchor
                and ("=" not in anchor or anchor.startswith("metric="))
                and target in known
                and unquote(anchor) not in known[target].ids
            ):
                yield f"{path.relative_to(site)}: {link} is no id"
