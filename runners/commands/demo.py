"""`./tidemark demo`: compile and compare two Postgres releases."""

import argparse

from build.errors import TidemarkError
from build.home import Home, locate_for_writing
from build.progress import Silent
from build.version import parse_version
from compare import CompareOptions, compare, exit_code, render_terminal
from history.comparison.verdict import TRAITS
from history.open import open_store
from history.rendering.plain_table import standard_output
from history.store.writer import Store
from report import addresses
from report.writing.site import SiteOptions, write_site
from runners.console import progress
from runners.measuring.request import Request
from runners.measuring.session import run_session
from runners.reporting.bisects import read_bisects
from suites.definition import load_suite

BASE = parse_version("postgres@17.11")
CONTENDER = parse_version("postgres@18.6")
SUITE = "write-heavy"
PROFILE = "smoke"

NEXT = f"""Next:
  ./compare.py {BASE} {CONTENDER} --format markdown     the same table, for an issue or a mail
  ./tidemark run --suite {SUITE} --profile short {BASE} {CONTENDER}     minutes a step: fewer undecided
  ./tidemark run --suite pgbench --profile smoke {BASE} {CONTENDER}     another suite
  ./tidemark --help"""


def main(arguments: argparse.Namespace) -> int:
    """Run the demo; return 0 when everything ran without a regression, 1 with one, 2 when something failed.

    The demo shows whether this installation works. Steps of three seconds leave most verdicts open, for which
    `compare` would return 2; the demo prints a sentence instead (docs/decisions/0005-demo-exit-code.md).
    """
    del arguments

    home = locate_for_writing()
    suite = load_suite(SUITE)
    request = Request(
        versions=(BASE, CONTENDER),
        suite=suite,
        profile_name=PROFILE,
        steps=suite.steps,
        repetitions=suite.profile(PROFILE).repetitions,
    )
    home.path.mkdir(parents=True, exist_ok=True)
    with open_store(home.history) as store:
        with progress() as shown:
            outcome = run_session(request, home, store, shown)
        comparison = compare(store, BASE, (CONTENDER,), CompareOptions(session=outcome.uid))
        page = _page(store, home, outcome.uid)
    render_terminal(comparison, standard_output(plain_width=110))
    open_steps = sum(verdict is None or TRAITS[verdict].is_open for verdict in comparison.verdicts())
    print(f"Base {BASE}, contender {CONTENDER}; the history lies in {home.history}.")
    if open_steps:
        print(
            f"{open_steps} of {len(suite.steps)} steps are undecided: "
            "seconds a step show that everything works, not that a version is clean."
        )
    print(page)
    print(NEXT)
    if not outcome.whole:
        return 2
    return 1 if exit_code(comparison) == 1 else 0


def _page(store: Store, home: Home, uid: str) -> str:
    """Write the report site; return where the session's page is, or why there is none."""
    try:
        write_site(store, SiteOptions(home.site, bisects=read_bisects(store)), Silent())
    except TidemarkError as error:
        return f"The report site could not be written: {error}"
    return f"The session as pages with charts: {home.site / addresses.session(uid)}"
