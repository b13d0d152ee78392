#!/bin/sh
""":"  # A shell runs only the lines up to `exec`, which follow links to the launcher, which selects a Python.
case $0 in */*) self=$0 ;; *) self=./$0 ;; esac
while [ -L "$self" ]; do
    link=$(readlink -- "$self")
    case $link in /*) self=$link ;; *) self=${self%/*}/$link ;; esac
done
exec "${self%/*}/tidemark" compare "$@"

Compare versions in the history and judge each step: `./compare.py BASE CONTENDER...`.

Exit codes are those of diff(1): 0 no regression, 1 a regression, 2 an error, or missing, failed, too few or
inconclusive rounds.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from build.errors import TidemarkError
from build.sources.repository import GIT_HELP
from build.version import Version, parse_revision
from history.arguments import Parser
from history.comparison.options import CONFIDENCE, EXACT_THRESHOLD, THRESHOLD, CompareOptions, Instructions
from history.comparison.result import Comparison
from history.escaping.characters import one_line
from history.rendering.plain_table import standard_output
from history.timestamps import moment
from suites.metrics import METRICS, PRIMARY

if TYPE_CHECKING:
    from history.store.reader import Reader

RENDERERS = {
    "summary": ("summary", "render_summary"),
    "json": ("json_text", "render_json"),
    "csv": ("csv_text", "render_csv"),
}
"""Format -> module of history.rendering, which is imported only for this format, and its function."""

HTML = "html"

FORMATS = ("terminal", "markdown", *RENDERERS, HTML)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare the versions named by the arguments, print the comparison, and return the exit code."""
    arguments = parse(argv)
    # Imported late: the launcher parses arguments before Tidemark's packages are installed.
    from build.home import locate
    from build.sources.source import as_recorded
    from history.comparison.compare import compare, exit_code
    from history.open import existing_history, open_reader

    try:
        home, named = locate(), (arguments.base, *arguments.contenders)
        base, *contenders = (as_recorded(version, home, arguments.git) for version in named)
        with open_reader(existing_history(arguments.history)) as history:
            comparison = compare(history, base, contenders, _options(arguments), arguments.branch)
            last = _last_line(history, comparison, arguments) if arguments.format == "terminal" else ""
    except TidemarkError as error:
        print(f"tidemark compare: {error}", file=sys.stderr)
        return 2
    _print(comparison, arguments)
    if last:
        print(one_line(last))  # not broken to the width of the terminal, so that it can be copied
    return exit_code(comparison)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; end with exit code 0 after `--help`, and 2 for what is refused."""
    top = parser()
    arguments = top.parse_args(argv)
    if not arguments.contenders and not arguments.branch:
        top.error("name a CONTENDER, or its branch with --branch")
    return arguments


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    top = Parser(
        prog="tidemark compare",
        description="Compare versions of the latest session that holds both, or over the nights --since a "
        "date, and judge each step.",
        epilog="exit codes: 0 no judged metric may be worse; 1 a regression, or a finding that is worse, "
        "such as a cost, more errors, or a server that failed where the base's did not; 2 trouble, missing "
        "data, or a judged metric that may be worse",
    )
    add = top.add_argument
    branch = (
        "the version of this branch that was measured last with BASE, such as postgres@18; may be repeated"
    )
    shown = (
        "terminal (default), markdown, summary (for an issue or a job summary), json, csv, html (one page)"
    )
    since = "over all nights from then on, one pair for each: 2026-11-01, or 30d for the last 30 days"
    exact = "the threshold of counted instructions (default: %(default)g)"
    instructions = (
        "when more instructions give exit code 1: where throughput is undecided (default), always, or never"
    )
    add("base", metavar="BASE", type=_version, help="engine@ref, such as postgres@17.11; or a branch")
    add("contenders", metavar="CONTENDER", type=_version, nargs="*", help="engine@ref to judge against BASE")
    add("--branch", action="append", type=_version, default=[], metavar="BRANCH", help=branch)
    add("--since", type=moment, metavar="DATE", help=since)
    add("--machine", metavar="BOX", help="only sessions of the machine with this host name")
    add("--suite", help="only sessions of this suite")
    add("--profile", help="only sessions of this profile")
    add("--session", metavar="UID", help="this session, not the latest that finished")
    add("--step", action="append", default=[], help="only this step; may be repeated")
    add(
        "--metric",
        default=PRIMARY,
        choices=METRICS,
        metavar="METRIC",
        help=f"what to judge (default: {PRIMARY})",
    )
    add("--threshold", type=_percent, default=THRESHOLD, metavar="PERCENT", help="default: %(default)g")
    add("--exact-threshold", type=_percent, default=EXACT_THRESHOLD, metavar="PERCENT", help=exact)
    add("--instructions", choices=list(Instructions), default=Instructions.UNDECIDED, help=instructions)
    add("--confidence", type=_percent, default=CONFIDENCE, metavar="PERCENT", help="default: %(default)g")
    add("--costs", action="store_true", help="a second table: every cost of each step, and what it did")
    add(
        "--kinds",
        action="store_true",
        help="a table of each kind of transactions, script or statement",
    )
    add("--plans", action="store_true", help="the whole plans of the steps whose plan changed")
    add("--format", choices=FORMATS, default="terminal", help=shown)
    add("--git", metavar="SOURCE", help=GIT_HELP)
    add("--history", metavar="PATH", help="default: history.db in Tidemark's output folder")
    return top


def _version(text: str) -> Version:
    try:
        if "/" in text and "=" in text:
            from build.installs import (
                recorded_version,
            )  # loaded only for the path of an install prefix

            return recorded_version(text)
        return parse_revision(text)
    except TidemarkError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _percent(text: str) -> float:
    value = float(text)
    if not 0 < value < 100:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100")
    return value


def _options(arguments: argparse.Namespace) -> CompareOptions:
    return CompareOptions(
        suite=arguments.suite,
        profile=arguments.profile,
        machine=arguments.machine,
        since=arguments.since,
        session=arguments.session,
        steps=tuple(arguments.step),
        metric=arguments.metric,
        threshold_percent=arguments.threshold,
        confidence_percent=arguments.confidence,
        exact_threshold_percent=arguments.exact_threshold,
        instructions=arguments.instructions,
    )


def _last_line(history: "Reader", comparison: Comparison, arguments: argparse.Namespace) -> str:
    """Return how the first contender that is open stands, and the command that comes next."""
    from history.rendering.next_step.closing import closing  # loaded only for this format
    from history.series.round_seconds import session_seconds

    told = [found for found in comparison.contenders if found.steps and not found.session.is_imported]
    if not told:
        return ""
    shown = next((found for found in told if any(step.is_open for step in found.steps)), told[0])
    with history.database.reading() as connection:
        took = session_seconds(connection, shown.session.id, shown.session.options)
    given = {"--history": arguments.history, "--git": arguments.git}
    options = [word for option, value in given.items() if value for word in (option, value)]
    seconds = took.counted if shown.session.only_counted else took.timed
    return closing(shown, seconds, options, has_costs=arguments.costs)


def _print(comparison: Comparison, arguments: argparse.Namespace) -> None:
    chosen = arguments.format
    tables = {"costs": arguments.costs, "kinds": arguments.kinds, "plans": arguments.plans}
    if chosen == "terminal":
        from history.rendering.terminal import render_terminal  # imported only for this format

        render_terminal(comparison, standard_output(), **tables)
    elif chosen == "markdown":
        from history.rendering.markdown import render_markdown  # imported only for this format

        sys.stdout.write(render_markdown(comparison, **tables))
    elif chosen == HTML:
        from report.writing.alone import comparison_alone  # imported only for this format

        sys.stdout.write(comparison_alone(comparison))
    else:  # JSON and CSV always contain all costs.
        module, function = RENDERERS[chosen]
        sys.stdout.write(getattr(import_module(f"history.rendering.{module}"), function)(comparison))


if __name__ == "__main__":
    sys.exit(main())
