"""Kinds of regression that are planted, one each, and that the default commands have to tell.

`$TIDEMARK_BENCH_PARTS` selects kinds of kinds.toml by their names, `equal` and `clean`. A kind is
tried as its user would, in a home of its own with the builds of this one: the exit code, and what is said in
JSON and in what people read, must name the resource. What was told is kept, with the commit of Tidemark, so
that an interrupted run goes on; `again` measures it anew, and `busy` accepts rounds that other work on the
machine disturbs, instead of measuring them up to three times. `equal` records sessions of equal builds until
there are 40, and `clean` says how many of them, and of longer ones joined from them, have a false finding.
"""

from collections.abc import Callable, Iterable, Mapping

from benchmarks.kinds.attempts import kind_figures
from benchmarks.kinds.catalogue import kinds
from benchmarks.kinds.equal_sessions import equal_figures
from benchmarks.kinds.joined_sessions import clean_figures
from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from build.home import locate

OTHERS: Mapping[str, Callable[..., Iterable[Figure]]] = {
    "equal": equal_figures,
    "clean": lambda home, busy: clean_figures(home),
}
"""Part without a kind -> function that yields its figures with their targets."""

AGAIN, BUSY = "again", "busy"


def main() -> int:
    """Print the figures with their targets; return 0 if all are met, else 1."""
    known = {kind.name: kind for kind in kinds()}
    words = chosen_parts("kinds", (*known, *OTHERS), modifiers=(AGAIN, BUSY))
    home = locate()
    figures: list[Figure] = []
    for word in words:
        if word in known:
            figures += kind_figures(known[word], home, again=AGAIN in words, busy=BUSY in words)
        elif word in OTHERS:
            figures += OTHERS[word](home, busy=BUSY in words)
    code = report(figures)
    missed = [figure.name for figure in figures if not figure.met]
    print(f"missed: {'; '.join(missed) or 'none'}")
    return code
