"""Parts of pages: tables, cells of ratios, definition lists, commands, notes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import htpy as h
from markupsafe import Markup

from history.comparison.verdict import TRAITS, MetricChange, Tone, Verdict, verdict_of
from history.stats.estimators import Interval
from report.markup.formats import DASH, bounds, percent, ratio_text
from suites.metrics import METRICS, Better

STEPS_OF_COLOUR = (0.01, 0.03, 0.06, 0.12, 0.20)
"""The least changes of the five shades. Changes beyond the last look the same: colour ends at 20 %."""

SIGNS = {
    Verdict.REGRESSION: "\N{BLACK DOWN-POINTING SMALL TRIANGLE}",
    Verdict.IMPROVEMENT: "\N{BLACK UP-POINTING SMALL TRIANGLE}",
    Verdict.UNCHANGED: "=",
    Verdict.INCONCLUSIVE: "?",
}
"""The sign that stands beside a colour, so that nobody needs the colour."""

_TONES = {Tone.GOOD: "better", Tone.BAD: "worse", Tone.QUIET: "same", Tone.OPEN: "open", Tone.PLAIN: "plain"}


@dataclass(frozen=True)
class Heat:
    """A ratio with what is known of it, as a cell of a table or of a strip shows it."""

    ratio: float | None
    verdict: Verdict | None
    """None where nothing was judged."""

    better: Better
    interval: Interval | None = None
    reason: str = ""
    """Why there is no ratio or no verdict."""

    @property
    def shade(self) -> str:
        """The class of its colour: better-1 to worse-5, same, open or none."""
        if self.ratio is None:
            return "none"
        if self.verdict is Verdict.INCONCLUSIVE:
            return "open"
        if self.verdict is Verdict.UNCHANGED:
            return "same"
        return shade_of(self.ratio, self.better)

    @property
    def sign(self) -> str:
        """The sign of the verdict; of a ratio that was not judged, none."""
        return SIGNS[self.verdict] if self.verdict is not None else ""

    def __str__(self) -> str:
        if self.ratio is None:
            return self.reason or "no value"
        interval = f", interval {bounds(self.interval)}" if self.interval else ""
        return f"{percent(self.ratio)}{interval}, {self.verdict or self.reason or 'not judged'}"


def shade_of(ratio: float, better: Better) -> str:
    """Return the class of the colour of a ratio that was decided, by its size and whether it is good."""
    change = ratio - 1
    strength = sum(abs(change) >= least for least in STEPS_OF_COLOUR)
    if not strength or better is Better.NEITHER:
        return "same"
    return f"{'better' if (change > 0) is (better is Better.HIGHER) else 'worse'}-{strength}"


_NUMBER = Markup('<td class="n">{}</td>')


def numeric(text: str) -> Markup:
    """Return a cell with a number. Pages have thousands of them, for which an element each takes too long."""
    return _NUMBER.format(text)


def flat(*parts: h.Node) -> Markup:
    """Return elements as markup that is rendered already.

    htpy passes each piece of an element through all elements around it; in a table of thousands of cells that
    takes most of the time.
    """
    return Markup("".join(str(h.fragment[part]) for part in parts))


def tone_of(verdict: Verdict | None) -> str:
    """Return the class of a verdict's colour."""
    return _TONES[TRAITS[verdict].tone] if verdict is not None else "plain"


def verdict_badge(verdict: Verdict | None, reason: str = "") -> h.Node:
    """Return a verdict with its sign, or the reason why there is none."""
    if verdict is None:
        return h.span(".badge.plain")[reason or DASH]
    return h.span(class_=f"badge {tone_of(verdict)}")[
        h.span(aria_hidden="true")[f"{SIGNS[verdict]} "], str(verdict)
    ]


def heat_cell(heat: Heat, href: str | None = None, note: str = "") -> h.Node:
    """Return a cell of a table with a ratio, its sign and its colour, perhaps as a link."""
    title = f"{heat}{'; ' + note if note else ''}"
    text = ratio_text(heat.ratio) if heat.ratio is not None else DASH
    inner: h.Node = [h.span(".sign", aria_hidden="true")[heat.sign], text]
    inner = h.a(href=href, title=title)[inner] if href else h.span(title=title)[inner]
    return h.td(class_=f"heat {heat.shade}", data_v=f"{heat.ratio:.6g}" if heat.ratio is not None else None)[
        inner
    ]


def cost_cell(metric: str, value: float | None, change: MetricChange, title: str) -> h.Node:
    """Return the cell of a metric beside a verdict: its ratio, and by how it changed a colour and a sign."""
    better = METRICS[metric].better if metric in METRICS else Better.NEITHER
    decided = change in (MetricChange.MORE, MetricChange.LESS)
    verdict = verdict_of(change, better) if decided and better is not Better.NEITHER else None
    sign = {MetricChange.MORE: "+", MetricChange.LESS: "\N{MINUS SIGN}"}.get(change, "")
    return h.td(class_=f"cost {tone_of(verdict)}", title=title)[ratio_text(value), h.span(".sign")[sign]]


def table(
    heads: Sequence[h.Node],
    rows: Iterable[h.Node],
    *,
    caption: str,
    class_: str = "",
    foot: Iterable[h.Node] = (),
    sortable: bool = False,
) -> h.Node:
    """Return a table that scrolls sideways in its own frame, and can be reached by keyboard for that."""
    footer = list(foot)
    return flat(
        h.div(".scroll", tabindex="0", role="group", aria_label=caption)[
            h.table(class_=f"{class_}{' sortable' if sortable else ''}".strip() or None)[
                h.caption[caption],
                h.thead[h.tr[(h.th(scope="col")[head] for head in heads)]],
                h.tbody[flat(*rows)],
                h.tfoot[footer] if footer else None,
            ]
        ]
    )


def facts(pairs: Iterable[tuple[str, h.Node]]) -> h.Node:
    """Return names with their values, without those that have none."""
    shown = [(name, value) for name, value in pairs if value not in (None, "", ())]
    return h.dl(".facts")[(h.div[h.dt[name], h.dd[value]] for name, value in shown)]


def stat(number: h.Node, label: h.Node, tone: str = "", href: str | None = None) -> h.Node:
    """Return a large number with what it counts."""
    inner = [h.span(".number")[number], h.span(".label")[label]]
    return h.li(class_=f"stat {tone}".strip())[h.a(href=href)[inner] if href else h.span(".plain")[inner]]


def commands(lines: Sequence[str], label: str = "To reproduce") -> h.Node:
    """Return shell commands to copy."""
    return [h.h3[label], h.pre(tabindex="0", role="group", aria_label=label)[h.code["\n".join(lines)]]]


def note(*content: h.Node, kind: str = "") -> h.Node:
    """Return a sentence apart from the rest: nothing is known, something is left out."""
    return h.p(class_=f"note {kind}".strip())[list(content)]


def bullets(lines: Iterable[h.Node]) -> h.Node:
    """Return a list, or nothing without items."""
    items = list(lines)
    return h.ul(".plain-list")[(h.li[item] for item in items)] if items else None


def section(heading: str, *content: h.Node, id_: str = "", lead: h.Node = None) -> h.Node:
    """Return a part of a page with a heading of its own."""
    return flat(h.section(id=id_ or None)[h.h2[heading], h.p(".lead")[lead] if lead else None, list(content)])


def legend() -> h.Node:
    """Return what colours and signs mean, below every table that is coloured."""
    entries = (
        ("worse-5", "▾ worse"),
        ("worse-2", "▾ a little worse"),
        ("same", "= within the threshold"),
        ("better-2", "▴ a little better"),
        ("better-5", "▴ better"),
        ("open", "? undecided: hatched"),
        ("none", "– no value"),
    )
    return h.ul(".legend", aria_label="Colours")[
        (h.li[h.span(class_=f"swatch {shade}", aria_hidden="true"), text] for shade, text in entries),
        h.li(".quiet")["Colour says better or worse, never up or down; its strength ends at 20 %."],
    ]
