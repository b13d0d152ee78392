"""All pages write dates, numbers, percents and plurals alike, and explain their abbreviations."""

import re
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from history import numbers
from history.counts import plural_of
from history.metric_words import WORDS
from report.markup.formats import amount, change_of, change_text, mean_name, metric_name, share, signed, span
from report.markup.parts import shade_of
from suites.metrics import METRICS, Better
from tests.report.parsed import pages_of, parsed

QUOTED = {"script", "style", "code", "pre", "kbd"}
"""Elements with text that is to be typed or was written by others."""

NOUNS = ("step", "night", "box", "version", "session", "change", "commit", "run", "pass", "branch", "round")

DEVIATIONS = {
    "a hyphen for a minus sign": r"(?<![\w.,:/#%-])-\d+(?:\.\d+)?(?= ?%| [a-zµ])",
    "no space before the percent sign": r"\d%(?!\w)",
    "a number without its sign as a change": r"(?<!\S)[+-]\d+(?:\.\d+)?%",
    # "1 of 1 steps" is what the terminal says too.
    "a plural of one": rf"(?<![\w.,/−-])(?<!of )1 (?:{'|'.join(map(plural_of, NOUNS))})\b",
    "a singular of several": rf"(?<![\w.,/−-])(?:[2-9]|[1-9]\d+) (?:{'|'.join(NOUNS)})\b(?![-'’])",
    "a day of another form": r"\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b\d{1,2}\.\d{1,2}\.20\d\d\b",
    "a time as machines write it": r"\d{4}-\d\d-\d\dT\d\d:\d\d",
    "a time without its zone": r"\d{4}-\d\d-\d\d \d\d:\d\d(?! UTC|:|\d)",
    "an ASCII arrow or ellipsis": r"(?<=\w )->(?= \w)",
}
"""What no page may have, by what is wrong with it."""


class _Texts(HTMLParser):
    """Collects the texts of a page, block by block, and the texts of its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("b", "span", "a", "abbr", "small", "code"):
            self.parts.append("\n")
        if tag in QUOTED:
            self.open.append(tag)
        self.parts += [f"\n{text}\n" for name, text in attrs if name in ("title", "aria-label") and text]

    def handle_endtag(self, tag: str) -> None:
        if tag in QUOTED:
            self.open.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self.open:
            self.parts.append(data)


def texts(page: Path) -> str:
    """Return what a person reads on a page."""
    reader = _Texts()
    reader.feed(page.read_text(encoding="utf-8"))
    return "".join(reader.parts)


def deviations(text: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong in a text, with the words around it."""
    for what, pattern in DEVIATIONS.items():
        for found in re.finditer(pattern, text):
            yield what, " ".join(text[max(0, found.start() - 30) : found.end() + 20].split())


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("by -1.2 % since", "a hyphen for a minus sign"),
        ("now 2.3% of it", "no space before the percent sign"),
        ("it has 1 steps", "a plural of one"),
        ("it has 12 night here", "a singular of several"),
        ("on 2026-03-01T02:00Z", "a time as machines write it"),
        ("at 2026-03-01 02:00 it", "a time without its zone"),
    ],
)
def test_what_deviates_is_found(text: str, what: str) -> None:
    assert what in [kind for kind, _ in deviations(text)]


def test_all_pages_have_one_format(site: Path) -> None:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for page in pages_of(site):
        for what, words in deviations(texts(page)):
            found[what].add(f"{page.relative_to(site)}: {words}")
    assert {what: sorted(words)[:8] for what, words in found.items()} == {}


def test_abbreviations_in_tables_are_explained_where_they_stand(site: Path) -> None:
    """What heads columns has a title; of a table with all metrics a link below leads to what they are."""
    short = {words.column for words in WORDS.values() if words.column} | {"qps", "tps", "sees"}
    bare = set()
    for page in pages_of(site):
        text = page.read_text(encoding="utf-8")
        if page.name == "help.html" or "help.html#metrics" in text:
            continue
        for cell in re.findall(r"<t[hd][^>]*>(.*?)(?=<t[hdr]|</)", text, re.DOTALL):
            if re.sub(r"<[^>]+>", "", cell).strip() in short and " title=" not in cell:
                bare.add(f"{page.relative_to(site)}: {cell}")
    assert sorted(bare) == []
    described = {row[0] for row in parsed(site / "help.html").rows}
    assert {metric_name(name) for name in METRICS} <= described


def test_a_mean_says_which_it_is() -> None:
    assert mean_name(1) == "geometric mean of 1 step"
    assert mean_name(2, "updates") == "updates: geometric mean of 2 steps"


def test_differences_have_the_minus_sign() -> None:
    assert signed(-0.1234) == "−0.123"
    assert signed(2.0) == "+2"
    assert signed(-23040447.9) == "−23\N{NARROW NO-BREAK SPACE}040\N{NARROW NO-BREAK SPACE}448"


def test_equal_texts_have_equal_shades() -> None:
    assert {shade_of(ratio, Better.HIGHER) for ratio in (1.0551, 1.0599, 1.0649)} == {"better-3"}
    assert {shade_of(ratio, Better.HIGHER) for ratio in (0.7951, 0.8, 0.8049)} == {"worse-5"}
    assert shade_of(1.004, Better.HIGHER) == "same"


def test_a_page_writes_numbers_as_the_terminal_does_with_signs_of_its_own() -> None:
    assert change_text(20.0, 15.0, 25.0) == numbers.change_text(20.0, 15.0, 25.0) == "20 times (15 to 25)"
    assert (change_of(20.0), span(15.0, 25.0)) == ("20 times", "15 to 25 times")
    assert (change_of(0.877), span(0.8, 0.9)) == ("−12.3 %", "−20.0 to −10.0 %")
    assert (share(0.123), share(0.022), numbers.share(0.123)) == ("12 %", "2.2 %", "12 %")
    assert (amount(0.0004), amount(0.00001), amount(-12346.0)) == ("0.0004", "<0.0001", "-12\u202f346")
    assert numbers.amount(0.0004) == "0.0004"
    assert (numbers.amount(0.00001), numbers.amount(12346.0)) == ("<0.0001", "12346")
