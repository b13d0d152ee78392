"""The report of a bisect: text for a terminal, Markdown for an issue or a mailing list."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from history.counts import counted, plural_of
from history.escaping.characters import unbroken
from history.escaping.markdown import Markdown, code_block, columns, indented, joined, md, row
from history.rendering.profiles import shortened
from runners.bisect.domain.question import BisectPoint
from runners.bisect.report.costs import cost_rows
from runners.bisect.report.functions import function_rows
from runners.bisect.report.state import BisectState, MeasuredPosition
from runners.bisect.report.wording import (
    headline,
    merge_hint,
    reproduce,
    smaller_step_hint,
    steps_of,
    undone_hint,
    whole_hint,
)

if TYPE_CHECKING:
    from history.comparison.profile_diff import Differential

MAX_ROWS = 12
"""The most rows of the table of probabilities."""

MIN_SHARE = 0.005
"""The least posterior probability of a row."""

BAR = 20
"""The length in characters of the bar of a probability of 1."""

MAX_COLLAPSED = 20
"""The most commits that are listed as unable to change a server."""

FUNCTIONS = 8
"""The most functions of a profile."""

IN_AN_ITEM = " " * 6
"""What sets off a block of code below an item of a list; with less it is a paragraph of the item."""

Table = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
"""The heads and the rows of a table."""


def text(state: BisectState) -> str:
    """Render the report for a terminal; a subject or a name is one line, whatever it holds."""
    lines = [_head(state), headline(state), ""]
    for point in state.blamed():
        lines += [*_about(state, point), *_indented("\n".join(point.message.splitlines()[1:])), ""]
    lines += [line for hint in _hints(state) for line in (hint, "")]
    for title, table in _tables(state):
        lines += [f"{title}:", *_aligned(table), ""]
    for title, items in _lists(state):
        lines += [f"{title}:", *(f"  {line}" for item in items for line in item.splitlines()), ""]
    lines += ["to reproduce:", *(f"  {command}" for command in reproduce(state))]
    return "\n".join(map(unbroken, lines)) + "\n"


def markdown(state: BisectState) -> Markdown:
    """Render the report as Markdown that is readable as plain text too."""
    lines: list[str] = [md("### {}", headline(state)), "", _head(state), ""]
    for point in state.blamed():
        lines += [
            *(md("- {}", line) for line in _about(state, point)),
            "",
            indented(point.message, IN_AN_ITEM),
            "",
        ]
    for hint in _hints(state):
        lines += [hint, ""]
    for title, (heads, rows) in _tables(state):
        lines += [md("**{}**", title), "", columns(heads, _LEFT), *map(row, rows), ""]
    for title, items in _lists(state):
        lines += [md("**{}**", title), ""]
        for item in items:
            first, _, rest = item.partition("\n")
            lines += [md("- {}", first), *(["", indented(rest, IN_AN_ITEM), ""] if rest else [])]
        lines += [""]
    lines += [md("**To reproduce**"), "", code_block(reproduce(state)), ""]
    return joined(lines)


def result(state: BisectState) -> Markdown:
    """Render verdict and culprit as Markdown for the body of the issue of a change."""
    lines: list[str] = [md("**Bisected** ({}): {}.", state.log.bisect.uid, headline(state)), ""]
    for point in state.blamed():
        lines += [*(md("- {}", line) for line in _about(state, point)), ""]
    for hint in (undone_hint(state), smaller_step_hint(state), whole_hint(state)):
        lines += [hint, ""] if hint else []
    if steps := _steps(state):
        heads, rows = steps
        lines += [columns(heads, _LEFT), *map(row, rows), ""]
    return joined(lines)


# --- parts


def _hints(state: BisectState) -> Iterator[str]:
    """Yield what else is to be said of the answer."""
    hints = merge_hint(state), undone_hint(state), smaller_step_hint(state), whole_hint(state)
    yield from filter(None, hints)


def _head(state: BisectState) -> str:
    bisect, question = state.log.bisect, state.log.question
    source = f", from {question.git}" if question.git else ""
    return (
        f"bisect {bisect.uid} of {bisect.began_at:%Y-%m-%d}: {question.summary}{source}, on "
        f"{bisect.machine.hostname}; {_rounds(state)}, confidence {100 * question.confidence:.0f} %"
    )


def _rounds(state: BisectState) -> str:
    guided = f", guided by {state.passes} counted passes" if state.passes else ""
    return f"{counted(state.rounds, state.round_name)}{guided}"


def _about(state: BisectState, point: BisectPoint) -> Iterator[str]:
    name = f"{point.commit} {point.subject}" if point.commit else point.version
    yield name
    if point.author:
        yield f"author {point.author}, {point.date}"
    if merge := state.log.span.merged_by.get(point.commit):
        yield f"merged by {merge}"


def _tables(state: BisectState) -> Iterator[tuple[str, Table]]:
    if steps := _steps(state):
        yield "What makes up the difference (changes multiply)", steps
    if state.counts:
        if not state.names_several:
            yield "Where the change is", _posterior(state)
        yield "Measured positions, as ratios to good", _points(state)
    if state.passes:
        yield "Instructions per query, as ratios to good", _counted(state)
    for place, costs in state.costs.items():
        yield f"Costs that moved with {_named(state, place)}", (COST_HEADS, [*cost_rows(costs)])
    for place, both in state.differentials.items():
        what = "Instructions" if both.base.is_exact else "CPU time"
        yield f"{what} per query, {_named(state, place)} against its parent", _functions(both)


COST_HEADS = ("cost", "unit", "before", "after", "ratio", "interval")

_LEFT = ("commit", "", "subject", "function", "cost", "unit")


def _named(state: BisectState, place: int) -> str:
    several = len(state.differentials) > 1 or len(state.costs) > 1
    return state.point(place).short if several else "culprit"


def _steps(state: BisectState) -> Table | None:
    rows = [(name, change, _short(subject)) for name, subject, change in steps_of(state)]
    return (("commit", "change", "subject"), rows) if rows else None


def _posterior(state: BisectState) -> Table:
    rows: list[tuple[str, ...]] = []
    for place, share in state.likeliest(MAX_ROWS, MIN_SHARE):
        point = state.point(place)
        rows.append((str(place), point.short, f"{100 * share:.1f} %", _bar(share), _short(point.subject)))
    alone = state.posterior[0]
    rows.append(("", "no single culprit", f"{100 * alone:.1f} %", _bar(alone), ""))
    return ("position", "commit", "probability", "", "subject"), rows


def _points(state: BisectState) -> Table:
    good = state.point(0)
    rows = [("0", good.short, "1", "", "", _short(good.subject)), *map(_measured, state.measured())]
    return ("position", "commit", "ratio", "interval", plural_of(state.round_name), "subject"), rows


def _measured(position: MeasuredPosition) -> tuple[str, ...]:
    interval = f"{position.low:.3f}–{position.high:.3f}"
    point, ratio = position.point, f"{position.ratio:.3f}"
    return str(position.position), point.short, ratio, interval, str(position.rounds), _short(point.subject)


def _counted(state: BisectState) -> Table:
    rows = [
        (
            str(seen.position),
            seen.point.short,
            f"{seen.ratio:.4f}",
            str(seen.rounds),
            _short(seen.point.subject),
        )
        for seen in state.counted()
    ]
    return ("position", "commit", "ratio", "passes", "subject"), rows


def _functions(both: "Differential") -> Table:
    digits, unit = ("0f", "") if both.base.is_exact else ("2f", " µs")
    rows = [
        (shortened(name), f"{before:.{digits}}", f"{after:.{digits}}", f"{change:+.{digits}}")
        for name, before, after, change in function_rows(both, FUNCTIONS)
    ]
    return ("function", f"before{unit}", f"after{unit}", "change"), rows


def _lists(state: BisectState) -> Iterator[tuple[str, list[str]]]:
    excluded = [f"{point.short} {point.subject}: {reason}" for point, reason in state.excluded()]
    if excluded:
        yield "Not measurable", excluded
    collapsed = state.log.span.collapsed
    if collapsed:
        items = [
            f"{commit['commit'][:12]} {_short(commit['subject'])}: {commit['reason']}" for commit in collapsed
        ]
        more = len(items) - MAX_COLLAPSED
        items = items[:MAX_COLLAPSED] + ([f"and {more} more"] if more > 0 else [])
        yield f"Cannot change a server ({len(collapsed)})", items
    if state.log.span.bad:
        last = state.point(state.log.span.length).short
        yield "Note", [f"bad is {state.log.span.bad[:12]}, which does not differ from {last}"]


# --- formatting


def _bar(share: float) -> str:
    return "█" * round(BAR * share)


def _short(line: str, most: int = 60) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _aligned(table: Table) -> Iterator[str]:
    heads, rows = table
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    for texts in (heads, *rows):
        cells = [
            cell.ljust(width) if head in _LEFT else cell.rjust(width)
            for head, cell, width in zip(heads, texts, widths, strict=True)
        ]
        yield f"  {'  '.join(cells)}".rstrip()


def _indented(lines: str) -> Iterator[str]:
    yield from (f"    {line}".rstrip() for line in lines.splitlines())
