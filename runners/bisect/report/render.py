"""The report of a bisect: text for a terminal, Markdown for an issue or a mailing list."""

from collections.abc import Iterable, Iterator, Sequence

from history.rendering.escaping import JOINER, escaped
from history.rendering.profiles import shortened
from runners.bisect.domain.question import BisectPoint
from runners.bisect.report.state import BisectState, Measured
from runners.bisect.report.wording import beside, headline, reproduce, within

MOST_ROWS = 12
"""Of the posterior."""

LEAST_SHARE = 0.005
"""Of the posterior, of a row."""

BAR = 20
"""Characters of a probability of 1."""

MOST_COLLAPSED = 20
"""That are listed by name."""

FUNCTIONS = 8

KEPT = f"\n{JOINER}"
"""Not printable, and wanted: what keeps texts from being markup is."""

Table = tuple[tuple[str, ...], Sequence[tuple[str, ...]]]
"""Heads and rows."""


def text(account: BisectState) -> str:
    """For a terminal: commits' texts as they are, without characters that move the cursor."""
    lines = [_head(account), headline(account), ""]
    for each in account.blamed():
        lines += [*_about(each), *_quoted("\n".join(each.message.splitlines()[1:])), ""]
    lines += [line for each in (within(account), beside(account)) if each for line in (each, "")]
    for title, table in _tables(account):
        lines += [f"{title}:", *_aligned(table), ""]
    for title, items in _lists(account):
        lines += [f"{title}:", *(f"  {line}" for item in items for line in item.splitlines()), ""]
    lines += ["again by hand:", *(f"  {each}" for each in reproduce(account))]
    return _printable("\n".join(lines)) + "\n"


def markdown(account: BisectState) -> str:
    """As GitHub renders it, and a mailing list can read."""
    lines = [f"### {escaped(headline(account))}", "", escaped(_head(account)), ""]
    for each in account.blamed():
        lines += [*(f"- {escaped(line)}" for line in _about(each)), "", *_quoted(each.message), ""]
    lines += [line for each in (within(account), beside(account)) if each for line in (escaped(each), "")]
    for title, (heads, rows) in _tables(account):
        lines += [
            f"**{title}**",
            "",
            _row(heads),
            _row([":--" if head in _LEFT else "--:" for head in heads]),
        ]
        lines += [*(_row(map(escaped, row)) for row in rows), ""]
    for title, items in _lists(account):
        lines += [f"**{title}**", ""]
        for item in items:
            first, *rest = item.splitlines()
            lines += [f"- {escaped(first)}", *(["", *_quoted("\n".join(rest), "      "), ""] if rest else [])]
        lines += [""]
    lines += ["**Again by hand**", "", "```sh", *reproduce(account), "```"]
    return _printable("\n".join(lines)) + "\n"


def result(account: BisectState) -> str:
    """Markdown for the body of a change's issue: the answer and whose commit it is."""
    lines = [f"**Bisected** ({escaped(account.log.bisect.uid)}): {escaped(headline(account))}.", ""]
    for each in account.blamed():
        lines += [*(f"- {escaped(line)}" for line in _about(each)), ""]
    lines += [escaped(beside(account)), ""] if beside(account) else []
    return _printable("\n".join(lines))


# --- parts


def _head(account: BisectState) -> str:
    bisect, question = account.log.bisect, account.log.question
    source = f", from {question.git}" if question.git else ""
    return (
        f"bisect {bisect.uid} of {bisect.began_at:%Y-%m-%d}: {question.told}{source}, on "
        f"{bisect.machine.hostname}; {account.rounds} rounds, confidence {question.confidence:.0%}"
    )


def _about(point: BisectPoint) -> Iterator[str]:
    name = f"{point.commit} {point.subject}" if point.commit else point.version
    yield name
    if point.author:
        yield f"author {point.author}, {point.date}"


def _tables(account: BisectState) -> Iterator[tuple[str, Table]]:
    if account.counts:
        yield "Where the change is", _posterior(account)
        yield "What was measured, as a ratio to good", _points(account)
    if account.differential is not None:
        yield "CPU time per query, culprit and what comes before it", _functions(account)


_LEFT = ("commit", "", "subject", "function")


def _posterior(account: BisectState) -> Table:
    rows: list[tuple[str, ...]] = []
    for place, share in account.likeliest(MOST_ROWS, LEAST_SHARE):
        point = account.point(place)
        rows.append((str(place), point.short, f"{share:.1%}", _bar(share), _short(point.subject)))
    alone = account.posterior[0]
    rows.append(("", "no single culprit", f"{alone:.1%}", _bar(alone), ""))
    return ("position", "commit", "probability", "", "subject"), rows


def _points(account: BisectState) -> Table:
    good = account.point(0)
    rows = [("0", good.short, "1", "", "", _short(good.subject)), *map(_measured, account.measured())]
    return ("position", "commit", "ratio", "interval", "rounds", "subject"), rows


def _measured(each: Measured) -> tuple[str, ...]:
    interval = f"{each.low:.3f}–{each.high:.3f}"
    subject = _short(each.point.subject)
    return str(each.position), each.point.short, f"{each.ratio:.3f}", interval, str(each.rounds), subject


def _functions(account: BisectState) -> Table:
    both = account.differential
    assert both is not None
    change = f"{both.contender_total - both.base_total:+.2f}"
    rows = [("whole server", f"{both.base_total:.2f}", f"{both.contender_total:.2f}", change)]
    for each in both.functions[:FUNCTIONS]:
        cells = (f"{each.base.own:.2f}", f"{each.contender.own:.2f}", f"{each.own_change:+.2f}")
        rows.append((shortened(each.name), *cells))
    return ("function", "before µs", "after µs", "change"), rows


def _lists(account: BisectState) -> Iterator[tuple[str, list[str]]]:
    excluded = [f"{point.short} {point.subject}: {reason}" for point, reason in account.excluded()]
    if excluded:
        yield "Not measured", excluded
    collapsed = account.log.span.collapsed
    if collapsed:
        items = [f"{each['commit'][:12]} {_short(each['subject'])}: {each['reason']}" for each in collapsed]
        more = len(items) - MOST_COLLAPSED
        items = items[:MOST_COLLAPSED] + ([f"and {more} more"] if more > 0 else [])
        yield f"Cannot matter ({len(collapsed)})", items
    if account.log.span.bad:
        last = account.point(account.log.span.length).short
        yield "Note", [f"bad is {account.log.span.bad[:12]}, which does not differ from {last}"]


# --- form


def _bar(share: float) -> str:
    return "█" * round(BAR * share)


def _short(line: str, most: int = 60) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _aligned(table: Table) -> Iterator[str]:
    heads, rows = table
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = [
            cell.ljust(width) if head in _LEFT else cell.rjust(width)
            for head, cell, width in zip(heads, row, widths, strict=True)
        ]
        yield f"  {'  '.join(cells)}".rstrip()


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _quoted(lines: str, indent: str = "    ") -> Iterator[str]:
    """As it is: indented, so that nothing in it is markup."""
    yield from (f"{indent}{line}".rstrip() for line in lines.splitlines())


def _printable(lines: str) -> str:
    """Without control characters, which commits may hold and terminals obey."""
    return "".join(each if each.isprintable() or each in KEPT else " " for each in lines)
