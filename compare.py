#!/bin/sh
""":"  # A shell runs the next line and never comes further: the launcher knows the right Python.
exec "$(dirname -- "$0")/tidemark" compare "$@"

Compare versions in the history and judge each step: `./compare.py BASE CONTENDER...`.

Exit codes follow diff(1): 0 nothing regressed, 1 a regression, 2 trouble, which is also what missing, failed,
too few and inconclusive repetitions are.
"""

import argparse
import sys
from collections.abc import Sequence

from build.errors import TidemarkError
from build.version import Version, parse_version
from history.comparison import (
    CONFIDENCE,
    THRESHOLD,
    CompareOptions,
    Comparison,
    compare,
    exit_code,
)
from history.database import existing_history
from history.judging import Verdict
from history.rendering.csv_text import render_csv
from history.rendering.json_text import render_json
from history.rendering.markdown import render_markdown
from history.rendering.terminal import PLAIN_WIDTH, render_terminal
from history.store import open_store
from suites.measurement import METRICS

__all__ = [
    "CONFIDENCE",
    "THRESHOLD",
    "CompareOptions",
    "Comparison",
    "Verdict",
    "compare",
    "exit_code",
    "main",
    "render_csv",
    "render_json",
    "render_markdown",
    "render_terminal",
]


def main(argv: Sequence[str] | None = None) -> int:
    """Compare what the arguments name, print it, and return the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        with open_store(existing_history(arguments.history)) as store:
            comparison = compare(store, arguments.base, arguments.contenders, _options(arguments))
    except TidemarkError as error:
        print(f"tidemark compare: {error}", file=sys.stderr)
        return 2
    _print(comparison, arguments.format, arguments.costs)
    return exit_code(comparison)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tidemark compare",
        description="Compare versions of the latest session that holds both, and judge each step.",
        epilog="exit codes: 0 nothing regressed; 1 a regression; 2 trouble, or missing or inconclusive data",
    )
    add = parser.add_argument
    add("base", metavar="BASE", type=_version, help="engine@ref, such as postgres@17.11")
    add("contenders", metavar="CONTENDER", type=_version, nargs="+", help="engine@ref to judge against BASE")
    add("--suite", help="only sessions of this suite")
    add("--profile", help="only sessions of this profile")
    add("--session", metavar="UID", help="this session instead of the latest")
    add("--step", action="append", default=[], help="only this step; may be repeated")
    add("--metric", default="qps", choices=METRICS, metavar="METRIC", help="what to judge (default: qps)")
    add("--threshold", type=_percent, default=THRESHOLD, metavar="PERCENT", help="default: %(default)g")
    add("--confidence", type=_percent, default=CONFIDENCE, metavar="PERCENT", help="default: %(default)g")
    add("--costs", action="store_true", help="a second table: every cost of each step, and what it did")
    add("--format", choices=("terminal", "markdown", "json", "csv"), default="terminal")
    add("--history", metavar="PATH", help="default: history.db in Tidemark's output folder")
    return parser


def _version(text: str) -> Version:
    try:
        return parse_version(text)
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
        session=arguments.session,
        steps=tuple(arguments.step),
        metric=arguments.metric,
        threshold_percent=arguments.threshold,
        confidence_percent=arguments.confidence,
    )


def _print(comparison: Comparison, chosen: str, costs: bool) -> None:
    if chosen == "markdown":
        sys.stdout.write(render_markdown(comparison, costs=costs))
        return
    if chosen != "terminal":  # JSON and CSV hold all costs anyway
        sys.stdout.write({"json": render_json, "csv": render_csv}[chosen](comparison))
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    render_terminal(comparison, console, costs=costs)


if __name__ == "__main__":
    sys.exit(main())
