"""What an output has to be, whatever texts are in it: by format, on the text as it was written."""

import csv
import io
import json
import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from history.escaping.characters import visible
from tests.outputs.hostile_history import INJECTED
from tests.report.parsed import parsed_text
from tests.report.test_hostile import ALLOWED

COLOURS = re.compile(r"\x1b\[(?:0|1|2|33|1;31|1;32)m")
"""What a Screen writes on a terminal."""

NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?")

OWN_HTML = re.compile(r"</?details>|</?summary>|<!-- tidemark [^<>]*-->")

LINKED = re.compile(
    r"(?<![A-Za-z0-9_])@\w|@[\w-]+\.[a-z]|#\d|\bGH-\d|://|\bwww\.",
)
"""What GitHub makes links and mentions of, in text that is neither code nor a link already."""


def require_plain(text: str, *, coloured: bool = False) -> None:
    """For a terminal, a pipe or a log."""
    shown = COLOURS.sub("", text) if coloured else text
    assert_nothing_hidden(shown)
    for line in shown.splitlines():
        assert line.removesuffix(INJECTED) not in ("", "::add-mask::", "# ", "- ", "  to do: ") or not line


def require_json(text: str) -> None:
    """JSON that any reader takes."""
    assert_nothing_hidden(text)
    json.loads(text).__repr__().encode()


def require_csv(text: str) -> None:
    """CSV of lines of the same length, in which no cell is calculated."""
    assert_nothing_hidden(text)
    rows = list(csv.reader(io.StringIO(text)))
    assert text.count("\n") == len(rows)
    assert len({len(row) for row in rows}) == 1
    for cell in (cell for row in rows for cell in row):
        assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r") or NUMBER.fullmatch(cell), cell


def require_page(text: str) -> None:
    """HTML of our own elements alone."""
    assert_nothing_hidden(text)
    page = parsed_text(text)
    assert {tag for tag, _ in page.tags} <= ALLOWED | {"style"}
    for _, given in page.tags:
        assert not [name for name in given if name.startswith("on")]
        assert not given.get("href", "").lower().startswith(("javascript:", "data:"))


def require_markdown(text: str) -> None:
    """Markdown without HTML, images, mentions and links of others, and with no heading but ours."""
    assert_nothing_hidden(text)
    for token in tokens(text):
        if token.type in ("html_block", "html_inline"):
            assert "<" not in OWN_HTML.sub("", token.content), token.content
        assert token.type != "image"
        if token.type == "link_open":
            assert str(token.attrs["href"]).startswith(("https://github.com/", "https://perf.example/"))
        if token.type == "text":
            assert not LINKED.search(token.content), token.content
        if token.type == "heading_open":
            assert token.tag in ("h2", "h3")
            assert not token.map or INJECTED not in text.splitlines()[token.map[0]][:20]


def assert_nothing_hidden(text: str) -> None:
    """No control character, and none that is not shown or turns text around, but for Markdown's joiner."""
    assert visible(text, keeps_joiner=True) == text
    text.encode()


def tokens(text: str) -> Iterator[Token]:
    """Return all tokens of a Markdown; text within a link or code is not among the texts."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for block in parser.parse(text):
        yield block
        depth = 0
        for token in block.children or ():
            depth += token.nesting if token.type.startswith("link_") else 0
            if not (token.type == "text" and depth):
                yield token
