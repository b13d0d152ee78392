"""The help: the glossary, and what colours, signs and marks mean."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import htpy as h

from history.metric_words import words_of
from report import addresses
from report.charts import svg
from report.charts.looks import Look, meaning
from report.markup.formats import metric_name
from report.markup.frame import Page
from report.markup.parts import bullets, cell, legend, row, section, table
from suites.metrics import METRICS

_SUBJECT = re.compile(r"^## (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^- \*\*(.+?)\*\*: (.+?)(?=^- |\Z)", re.MULTILINE | re.DOTALL)
_TIE = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Subject:
    """A part of the glossary."""

    name: str
    terms: tuple[tuple[str, str], ...]
    """Terms with their meanings."""


def subjects_of(glossary: str) -> tuple[Subject, ...]:
    """Return the subjects of docs/glossary.md with their terms."""
    _, *parts = _SUBJECT.split(_TIE.sub("", glossary))
    return tuple(
        Subject(name, tuple((term, " ".join(meaning.split())) for term, meaning in _ENTRY.findall(text)))
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    )


def help_page(subjects: Sequence[Subject]) -> Page:
    """Return the help."""
    body: list[h.Node] = [
        section(
            "Colours and signs",
            legend(),
            h.ul[(h.li[line] for line in SIGNS)],
            id_="colours",
            lead="Blue is better and orange is worse, whichever way the number went; the sign says "
            "the same without colour.",
        ),
        section(
            "The strip of a branch",
            bullets(f"{look.value} {meaning(look)}" for look in Look),
            id_="strip",
            lead="A session with rounds says by its verdict whether a night is undecided; without rounds the "
            "calibration of the box says which changes a step can see.",
        ),
        section("Marks in charts", h.table(".marks")[h.tbody[_marks()]], id_="marks"),
        h.nav(aria_label="Subjects")[
            h.ul(".inline")[
                (h.li[h.a(href=f"#{addresses.anchor(subject.name)}")[subject.name]] for subject in subjects)
            ]
        ],
        section("Metrics", _metrics(), id_="metrics", lead="Those with a column have it beside verdicts."),
        [_subject(subject) for subject in subjects],
    ]
    return Page(addresses.HELP, "Terms, colours and signs", body, None)


SIGNS = (
    "▾ regression, ▴ improvement, = unchanged within the threshold, ? inconclusive. An inconclusive step is "
    "never shown as clean.",
    "✖ in red: nothing could be measured. – beside a box: it did not report in the last night.",
    "+ and − beside a cost: it is more or less by the rules of a verdict.",
    "? after a verdict: costs explain less than half of the change of throughput; the rest is waiting.",
    "“sees” is the smallest change that a step is likely to flag, from a calibration of the box.",
)


def _marks() -> Iterator[h.Node]:
    for drawn, what in (
        (svg.circle(20, 10, 4, "point"), "a night, or a round, whose change can be seen"),
        (
            svg.circle(20, 10, 4, "point hollow"),
            "a night that shows nothing: undecided, with dropped rounds, or too small a change to be seen",
        ),
        (svg.path("M16 6l8 8m0 -8l-8 8", "gap"), "a night without a value; its reason is in the table"),
        (
            svg.hatch("hatch-help") + svg.hatched(2, 3, 36, 14, "hatch-help"),
            "changes of this size cannot be seen; all of the chart when it was never measured",
        ),
        (svg.line(20, 2, 20, 18, "error"), "the interval of one session or of one commit"),
        (
            svg.rect(8, 2, 24, 16, "range worse confirmed"),
            "the nights between which a change lies; a solid frame once it was confirmed side by side",
        ),
        (svg.line(4, 10, 36, 10, "level"), "the level before or after a change"),
        (svg.path("M20 16l-5 -9h10z", "event"), "machine, base, suite or tools changed before this night"),
        (svg.rect(6, 2, 28, 16, "dropped"), "a round that was disturbed and measured again"),
    ):
        picture = svg.picture(40, 20, [drawn], what, "mark-sample")
        yield h.tr[h.td[picture], h.td[what]]


def _metrics() -> h.Node:
    """Return what every metric is."""
    rows = (
        row(metric_name(name), cell(words_of(name).column), cell(metric.unit), cell(metric.description))
        for name, metric in METRICS.items()
    )
    return table(("metric", "column", "unit", "what it is"), rows, caption="All metrics")


def _subject(subject: Subject) -> h.Node:
    entries = (
        h.div(id=addresses.anchor(term))[h.dt[term], h.dd[_inline(meaning)]]
        for term, meaning in subject.terms
    )
    return section(subject.name, h.dl(".glossary")[entries], id_=addresses.anchor(subject.name))


def _inline(text: str) -> h.Node:
    """Return a text with `code`, *words* and links of Markdown; of a link only the text stays."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
    parts: list[h.Node] = []
    for number, part in enumerate(re.split(r"`([^`]+)`", text)):
        parts.append(h.code[part] if number % 2 else part.replace("*", ""))
    return parts
