"""`./tidemark demo`: compile and compare two Postgres releases, and find a slow-down that is planted."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home, locate_for_writing
from build.progress import Silent
from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison, StepComparison
from history.comparison.verdict import TRAITS, Verdict
from history.open import open_store
from history.rendering.plain_table import standard_output
from history.rendering.profiles import share_of_change
from history.rendering.terminal import render_verdicts
from history.store.writer import Store
from report import addresses
from report.writing.site import SiteOptions, write_site
from runners.console import progress
from runners.measuring.request import PASSES, Exact, Request
from runners.measuring.session import SessionOutcome, run_session
from runners.reporting.bisects import read_bisects
from suites.additions.variant import Variant
from suites.counting.tool import find_callgrind
from suites.definition import load_suite
from suites.metrics import INSTRUCTIONS
from suites.processes import ProcessError

BASE = parse_version("postgres@17.11")
CONTENDER = parse_version("postgres@18.6")
PLANTED = replace(CONTENDER, variant="planted")
PATCH = Path(__file__).with_name("planted.patch")
"""Makes every index scan execute a loop that nobody needs."""

SUITE = "write-heavy"
PROFILE = "smoke"
STEPS = ("update-index", "delete", "insert")
"""Enough for the planted slow-down to be in some of them and not in others, in a quarter of an hour."""

ROUNDS = 4
"""With three, the intervals are twice as wide."""

GROSS = 0.5
"""The half width of an interval from which on it is not worth a figure."""

NEXT = f"""Next:
  ./compare.py {BASE} {CONTENDER} --session {{uid}}     the first table with its notes
  ./tidemark profile diff {CONTENDER} {PLANTED} --step update-index --exact     functions, flame graphs
  ./tidemark run --suite {SUITE} --profile short {BASE} {CONTENDER}     minutes a step: fewer undecided
  ./tidemark --help"""


def main(arguments: argparse.Namespace) -> int:
    """Run the demo; return 0 when everything ran without a regression, 1 with one, 2 when something failed.

    The demo shows whether this installation works. Steps of three seconds leave most verdicts on throughput
    open, for which `compare` would return 2; the demo says instead what they could have shown. Neither the
    planted slow-down nor instructions decide the exit code (docs/decisions/0005-demo-exit-code.md).
    """
    del arguments

    home = locate_for_writing()
    home.path.mkdir(parents=True, exist_ok=True)
    with open_store(home.history) as store:
        timed = _measure(home, store, _timed())
        comparison = compare(store, BASE, (CONTENDER,), CompareOptions(session=timed.uid))
        exact = _counted(home, store)
        page = session_page(store, home, (exact[-1] if exact else comparison).contenders[0].session.uid)
    for table in (comparison, *exact):
        render_verdicts(table, table.contenders[0], standard_output(plain_width=110))
    print(f"Base {BASE}, contender {CONTENDER}; the history lies in {home.history}.")
    print("\n".join(summary(comparison, exact)))
    print(NEXT.format(uid=timed.uid))
    print(page)
    if not timed.whole:
        return 2
    return 1 if exit_code(comparison) == 1 else 0


def session_page(store: Store, home: Home, uid: str) -> str:
    """Write the report site; return the line that says where the session's page is, or why there is none."""
    try:
        write_site(store, SiteOptions(home.site, bisects=read_bisects(store)), Silent())
    except TidemarkError as error:
        return f"The report site could not be written: {error}"
    return f"The session as pages with charts: {home.site / addresses.session(uid)}"


def _timed() -> Request:
    """The rounds of the two releases.

    Disturbed ones are kept, with a warning: on a busy machine it takes too long to measure them again.
    """
    suite = load_suite(SUITE)
    steps = suite.select(STEPS)
    return Request((BASE, CONTENDER), suite, PROFILE, steps, ROUNDS, keep_disturbed=True)


def _counted(home: Home, store: Store) -> tuple[Comparison, ...]:
    """Count the releases and the planted slow-down; return the comparisons of what could be counted."""
    try:
        find_callgrind()
    except ProcessError as error:
        print(f"no exact counts: {error}")
        return ()
    request = replace(
        _timed(),
        versions=(BASE, CONTENDER, PLANTED),
        repetitions=PASSES,
        exact=Exact.ONLY,
        variants={PLANTED.variant: Variant(patches=(PATCH,))},
    )
    outcome = _measure(home, store, request)
    options = CompareOptions(session=outcome.uid, metric=INSTRUCTIONS)
    pairs = ((BASE, CONTENDER), (CONTENDER, PLANTED))
    missing = outcome.not_built.keys()
    return tuple(compare(store, old, (new,), options) for old, new in pairs if not missing & {old, new})


def _measure(home: Home, store: Store, request: Request) -> SessionOutcome:
    with progress() as shown:
        return run_session(request, home, store, shown)


# --- the summary


def summary(timed: Comparison, exact: Sequence[Comparison]) -> Iterator[str]:
    """Yield the lines of the summary: what throughput, what instructions, what the planted slow-down says.

    `exact` are the comparisons of the releases and of the planted slow-down, as far as there are any.
    """
    steps = timed.contenders[0].steps
    decided = [step for step in steps if not step.is_open]
    widest = max((_seen(step) for step in steps), default=0.0)
    visible = (
        f"in so short a time the least precise one shows changes beyond {100 * widest:.0f} %"
        if widest < GROSS
        else "the machine was too busy for so short a time"
    )
    yield "In short:"
    yield (
        f"- Throughput: {_counts(decided)}{len(steps) - len(decided)} of {len(steps)} steps are open: "
        f"{visible}."
    )
    if not exact:
        yield "- Instructions were not counted: install valgrind, and run the demo again."
        return
    for comparison in exact:
        planted = comparison.contenders[0].contender == PLANTED
        yield f"- {'Planted slow-down' if planted else 'Instructions'}: {_exactly(comparison)}."
        if planted:
            yield from _guilty(comparison)
    yield "- Instructions are no time: docs/instructions.md says when to believe which."


def _seen(step: StepComparison) -> float:
    """The half width of a step's interval, as a fraction."""
    interval = step.judged.interval
    return 0.0 if interval is None else (interval.high - interval.low) / 2


def _counts(steps: Sequence[StepComparison]) -> str:
    """The decided verdicts in words, with a comma behind each; empty without any."""
    parts = []
    for verdict, traits in TRAITS.items():
        count = sum(step.judged.verdict is verdict for step in steps)
        if count:
            parts.append(f"{count} {verdict if count == 1 else traits.plural}, ")
    return "".join(parts)


def _exactly(comparison: Comparison) -> str:
    """What counted instructions say, with the steps that have more and those that have not."""
    (contender,) = comparison.contenders
    more = [step for step in contender.steps if step.judged.verdict is Verdict.REGRESSION]
    others = [step.step for step in contender.steps if step not in more]
    named = ", ".join(f"{step.step} {100 * ((step.judged.value or 1) - 1):+.1f} %" for step in more)
    rest = f"; not in {', '.join(others)}" if more and len(others) <= len(more) and others else ""
    return (
        f"{contender.contender} executes more than {contender.base} in {len(more)} of {len(contender.steps)} "
        f"steps{': ' if named else ''}{named}{rest}"
    )


def _guilty(comparison: Comparison) -> Iterator[str]:
    """The function that gained most in the step that changed most."""
    (contender,) = comparison.contenders
    gained = [step for step in contender.steps if step.gained_instructions]
    if gained:
        worst = max(gained, key=lambda step: step.judged.value or 0.0)
        function = worst.gained_instructions[0]
        yield (
            f"- Guilty function: {function.name}, {function.own_change:+.0f} instructions per query in "
            f"{worst.step}{share_of_change(function)}."
        )
