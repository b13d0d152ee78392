"""Parts of pages: tables, cells of ratios, definition lists, commands, notes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import htpy as h
from markupsafe import Markup, escape

from history.comparison.verdict import TRADE, TRAITS, Judged, MetricChange, Tone, Verdict, verdict_of
from history.numbers import DASH, two_decimals
from history.stats.estimators import Interval
from report.markup.formats import bounds, change_of
from report.markup.template import Template, joined
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
        return f"{change_of(self.ratio)}{interval}, {self.verdict or self.reason or 'not judged'}"


def heat_of(judged: Judged) -> Heat:
    """Return a judged metric as a coloured cell shows it."""
    return Heat(judged.value, judged.verdict, judged.better, judged.interval, judged.reason)


def shade_of(ratio: float, better: Better) -> str:
    """Return the class of the colour of a ratio that was decided, by its size and whether it is good.

    It is that of the ratio as it is printed: equal texts have equal colours.
    """
    change = round(float(two_decimals(ratio)) - 1, 2)
    strength = sum(abs(change) >= least for least in STEPS_OF_COLOUR)
    if not strength or better is Better.NEITHER:
        return "same"
    return f"{'better' if better.gain(change) > 0 else 'worse'}-{strength}"


# Ends of rows and cells are implied by what follows them, and a tenth of a page of tables.
_ROW = Template('<tr{}><th scope="row">{}{}')
_MOVED = Template(' data-moved="{}"')
_CELL = Template("<td>{}")
_CLASSED = Template('<td class="{}">{}')
_CHARTED = Template('<td class="n" data-y="{}">{}')
_TITLE = Template(' title="{}"')
_HEAD = Template('<th scope="col">{}')
_CLASS = Template(' class="{}"')
_FOOT = Template("<tfoot>{}</tfoot>")
_TABLE = Template(
    '<div class="scroll" tabindex="0" role="group" aria-label="{}"><table{}><caption>{}</caption>'
    "<thead><tr>{}</tr></thead><tbody>{}</tbody>{}</table></div>"
)
_FACTS = Template('<dl class="facts">{}</dl>')
_SECTION = Template("<section{}><h2>{}</h2>{}{}</section>")
_ID = Template(' id="{}"')
_LEAD = Template('<p class="lead">{}</p>')
_FACT = Template("<div><dt>{}</dt><dd>{}</dd></div>")
_HEAT = Template('<td class="heat {}"{}>{}')
_LINK = Template('<a href="{}" title="{}">{}</a>')
_TITLED = Template('<span title="{}">{}</span>')
_SIGN = Template('<span class="sign" aria-hidden="true">{}</span>')
_SORTED_BY = Template(' data-v="{}"')
_COST = Template('<td class="cost {}"{}>{}{}')
_BADGE = Template('<span class="badge {}">{}{}</span>')
_HIDDEN = Template('<span aria-hidden="true">{} </span>')


def flat(*parts: h.Node) -> Markup:
    """Return elements as markup that is rendered already.

    htpy passes each piece of an element through all elements around it; in a table of thousands of cells that
    takes most of the time. For the same reason what stands in cells is made from templates.
    """
    return joined([_flat(part) for part in parts])


def _flat(part: h.Node) -> Markup:
    if type(part) is Markup:
        return part
    # Most of what is no markup yet is text, which needs nothing of htpy.
    return escape(part) if type(part) is str else escape(h.fragment[part])


def row(head: h.Node, *cells: Markup, moved: bool | None = None) -> Markup:
    """Return a row of a table that begins with its heading; a long table first shows those that moved."""
    return _ROW("" if moved is None else _MOVED("yes" if moved else "no"), flat(head), joined(cells))


def has_moved(judged: Judged) -> bool:
    """Return whether a long table shows a value from the start: it moved, or nothing says that it did not."""
    if judged.verdict is None and judged.value is not None:
        return abs(judged.value - 1) >= judged.threshold
    return judged.verdict is not Verdict.UNCHANGED


def cell(content: h.Node = "", class_: str = "") -> Markup:
    """Return a cell of a table."""
    return _CLASSED(class_, flat(content)) if class_ else _CELL(flat(content))


def numeric(text: str) -> Markup:
    """Return a cell with a number."""
    return _CLASSED("n", text)


def charted(text: str, value: float | None) -> Markup:
    """Return a cell with a number that is also a mark of the chart above; tests compare the two."""
    return _CHARTED(f"{value:.4f}", text) if value is not None else numeric(text)


def numbers(texts: Iterable[str]) -> Markup:
    """Return cells of a table whose class is `numbers`, in which all cells but the first are such."""
    return joined(_CELL(text) for text in texts)


def tone_of(verdict: Verdict | None) -> str:
    """Return the class of a verdict's colour."""
    return _TONES[TRAITS[verdict].tone] if verdict is not None else "plain"


def verdict_badge(verdict: Verdict | None, word: str) -> Markup:
    """Return a verdict with its sign and the word for it, or the reason why there is none."""
    if verdict is None:
        return _BADGE("plain", "", word or DASH)
    return _BADGE(tone_of(verdict), _HIDDEN(SIGNS[verdict]), word)


def trade_badge() -> Markup:
    """Return the badge of a step that is faster, and worse in something else."""
    return _BADGE("worse", _HIDDEN(SIGNS[Verdict.REGRESSION]), TRADE)


def heat_cell(heat: Heat, href: str | None = None, note: str = "") -> Markup:
    """Return a cell of a table with a ratio, its sign and its colour, perhaps as a link."""
    title = f"{heat}{'; ' + note if note else ''}"
    text = two_decimals(heat.ratio) if heat.ratio is not None else DASH
    inner = _SIGN(heat.sign) + text
    value = _SORTED_BY(f"{heat.ratio:.6g}") if heat.ratio is not None else ""
    return _HEAT(heat.shade, value, _LINK(href, title, inner) if href else _TITLED(title, inner))


def bare_heat_cell(heat: Heat) -> Markup:
    """Return a cell with a ratio, its sign and its colour, in a row that says the rest."""
    return _HEAT(heat.shade, "", heat.sign + two_decimals(heat.ratio))


def cost_cell(metric: str, value: float | None, change: MetricChange, title: str = "") -> Markup:
    """Return the cell of a metric beside a verdict: its ratio, and by how it changed a colour and a sign."""
    better = METRICS[metric].better if metric in METRICS else Better.NEITHER
    decided = change in (MetricChange.MORE, MetricChange.LESS)
    verdict = verdict_of(change, better) if decided and better is not Better.NEITHER else None
    sign = {MetricChange.MORE: "+", MetricChange.LESS: "\N{MINUS SIGN}"}.get(change, "")
    return _COST(
        tone_of(verdict), _TITLE(title) if title else "", two_decimals(value), _SIGN(sign) if sign else ""
    )


def table(
    heads: Sequence[h.Node],
    rows: Iterable[h.Node],
    *,
    caption: str,
    class_: str = "",
    foot: Iterable[h.Node] = (),
    sortable: bool = False,
) -> Markup:
    """Return a table that scrolls sideways in its own frame, and can be reached by keyboard for that."""
    name = f"{class_}{' sortable' if sortable else ''}".strip()
    footer = flat(*foot)
    return _TABLE(
        caption,
        _CLASS(name) if name else "",
        caption,
        joined(_HEAD(flat(head)) for head in heads),
        flat(*rows),
        _FOOT(footer) if footer else "",
    )


def facts(pairs: Iterable[tuple[str, h.Node]]) -> Markup:
    """Return names with their values, without those that have none."""
    shown = [(name, value) for name, value in pairs if value not in (None, "", ())]
    return _FACTS(joined(_FACT(name, flat(value)) for name, value in shown))


def stat(number: h.Node, label: h.Node, tone: str = "", href: str | None = None) -> h.Node:
    """Return a large number with what it counts."""
    inner = [h.span(".number")[number], h.span(".label")[label]]
    return h.li(class_=f"stat {tone}".strip())[h.a(href=href)[inner] if href else h.span(".plain")[inner]]


def commands(lines: Sequence[str], label: str = "To reproduce") -> h.Node:
    """Return shell commands, beside which a script puts a button that copies them."""
    return h.div(".commands")[
        h.h3[label], h.pre(tabindex="0", role="group", aria_label=label)[h.code["\n".join(lines)]]
    ]


def note(*content: h.Node, kind: str = "") -> h.Node:
    """Return a sentence apart from the rest: nothing is known, something is left out."""
    return h.p(class_=f"note {kind}".strip())[list(content)]


def filters(subject: str, names: Sequence[str]) -> h.Node:
    """Return the place of the filters of the table with the class `filtered`; a script fills it.

    The table's rows have an attribute `data-NAME` for each name, and the date `data-day`. Several values of
    a row are on lines of their own, as `filtered_by` writes them.
    """
    return h.div(".filters", data_filters=" ".join(names), data_subject=subject, hidden=True)


def filtered_by(**values: str | Iterable[str]) -> dict[str, str]:
    """Return the attributes of a row that filters read."""
    return {
        f"data-{name}": value if isinstance(value, str) else "\n".join(sorted(set(value)))
        for name, value in values.items()
    }


def bullets(lines: Iterable[h.Node]) -> h.Node:
    """Return a list, or nothing without items."""
    items = list(lines)
    return h.ul(".plain-list")[(h.li[item] for item in items)] if items else None


def section(heading: str, *content: h.Node, id_: str = "", lead: h.Node = None) -> Markup:
    """Return a part of a page with a heading of its own."""
    return _SECTION(_ID(id_) if id_ else "", heading, _LEAD(flat(lead)) if lead else "", flat(*content))


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
