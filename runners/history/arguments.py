"""The arguments of `./tidemark history`."""

import argparse
from datetime import date
from typing import TYPE_CHECKING

from build.errors import did_you_mean
from history.store.records import ChangeStatus
from history.timestamps import moment
from runners.values import count, names
from runners.values import date as any_date
from suites.metrics import METRICS, PRIMARIES

if TYPE_CHECKING:
    Subcommands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_subcommands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands to the parser of `history`."""
    parser.epilog = (
        "docs/history.md has the formats; exit codes: 0 done; 1 judge: a change for the worse is new or "
        "came back; 2 trouble, with nothing partly written"
    )
    subcommands = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    _views(subcommands)
    _transfers(subcommands)
    _changes(subcommands)


def _views(subcommands: "Subcommands") -> None:
    show = subcommands.add_parser(
        "show", help="list boxes, suites and branches with their nights, and failures"
    )
    series = subcommands.add_parser("series", help="show one step of one branch, night by night")
    points = subcommands.add_parser("change-points", help="find changes of level in whole series")
    metric_help = f"the metric (default: the first of {', '.join(PRIMARIES)} that the step has)"
    base = "branch to compare with, instead of the latest night's base"
    for view, step, metric, formats in (
        (
            show,
            "only branches with this step; lists its series",
            "only branches with this metric",
            ["terminal", "json"],
        ),
        (series, "the step", metric_help, ["terminal", "json", "csv"]),
        (points, "only this step", "only this metric", ["terminal", "json"]),
    ):
        view.add_argument("--step", required=view is series, metavar="STEP", help=step)
        view.add_argument("--metric", choices=METRICS, metavar="METRIC", help=metric)
        view.add_argument("--machine", metavar="BOX", help="only this host name")
        view.add_argument("--suite", help="only this suite")
        view.add_argument("--branch", metavar="BRANCH", help="only this branch, such as postgres@18")
        view.add_argument(
            "--configuration", metavar="NAME", help="only this configuration, as history show names it"
        )
        view.add_argument("--format", choices=formats, default="terminal")
    for view in (series, points):
        view.add_argument("--base", metavar="BRANCH", help=base)
        view.add_argument(
            "--since", type=moment, metavar="DATE", help="only nights since then: 2026-11-01, or 30d"
        )
    _read(show, series, points)


def _transfers(subcommands: "Subcommands") -> None:
    out = subcommands.add_parser("export", help="write finished sessions to a file, as NDJSON")
    out.add_argument("target", metavar="FILE", help="new file; a name with .gz is compressed")
    out.add_argument("--format", choices=["ndjson", "parquet"], default="ndjson", help=argparse.SUPPRESS)
    out.add_argument("--suite", help="only sessions of this suite")
    out.add_argument(
        "--since", type=any_date, metavar="DATE", help="only sessions that began at this time or later"
    )
    take = subcommands.add_parser("import", help="import exports, and results of other tools")
    _import_arguments(take)
    merge = subcommands.add_parser("merge", help="import what other histories have and this one lacks")
    merge.add_argument("histories", nargs="+", metavar="HISTORY", help="a path, a URL, or an export")
    deliver = subcommands.add_parser("deliver", help="send what waits on this box to histories on servers")
    deliver.add_argument(
        "--history", metavar="URL", help="only what waits for this one; needed if its URL has a password"
    )
    backup = subcommands.add_parser("backup", help="copy the whole history, even while sessions run")
    backup.add_argument("file", metavar="FILE", help="new file, or an earlier backup, which is replaced")
    migrate = subcommands.add_parser(
        "migrate", help="bring a history of an older Tidemark up to date, as recording into it does"
    )
    restore = subcommands.add_parser(
        "restore", help="replace the history by a backup; the present one is kept under another name"
    )
    restore.add_argument("file", metavar="FILE", help="a backup, or another history in a SQLite file")
    discard = "replace the history although it has what the backup lacks, or cannot be read"
    restore.add_argument("--discard", action="store_true", help=discard)
    prune = subcommands.add_parser(
        "prune", help="delete the rounds of old sessions; nights and changes are kept"
    )
    before = "delete rounds of sessions that began earlier"
    prune.add_argument("--before", type=any_date, required=True, metavar="DATE", help=before)
    prune.add_argument("--dry-run", action="store_true", help="only print what would be deleted")
    _read(out, take, merge, backup, restore, migrate, prune)


def _import_arguments(take: argparse.ArgumentParser) -> None:
    what = (
        "NDJSON, CSV, or what sysbench and pgbench write; may be compressed by gzip; docs/conversions.md has "
        "commands that make a CSV of what others write"
    )
    take.add_argument("files", nargs="+", metavar="FILE", help=what)
    table = take.add_argument_group("for results that do not name them")
    table.add_argument("--machine", metavar="NAME", help="machine that was measured on")
    table.add_argument("--suite", metavar="NAME", help="suite that was run (default: the name of the tool)")
    table.add_argument("--when", type=any_date, metavar="DATE", help="when it was measured, such as 2025-11")
    version = "version that was measured, or one for each file in their order, separated by commas"
    table.add_argument("--version", metavar="VERSION", help=version)
    table.add_argument("--step", metavar="NAME", help="name of the step that was run")
    metric = (
        "metric of a column of Otava's CSV, and its unit if that is another one, such as "
        "p99=latency_p99_ms:s; can be repeated"
    )
    table.add_argument(
        "--metric", action="append", type=named_metric, default=[], metavar="NAME=METRIC", help=metric
    )
    cores = "cores of the machine, for CPU costs that are shares"
    table.add_argument("--cores", type=count, metavar="N", help=cores)
    columns = "versions of the columns of a table without a head, in their order, such as pg177,pg181"
    table.add_argument("--columns", type=names, default=(), metavar="NAMES", help=columns)
    base = "branch or version that the others are compared with, such as postgres@17; recorded with the table"
    table.add_argument("--base", metavar="BRANCH", help=base)


def named_metric(text: str) -> tuple[str, tuple[str, str]]:
    """Parse `NAME=METRIC` or `NAME=METRIC:UNIT` as the name, and the metric and unit."""
    name, equals, rest = text.rpartition("=")
    metric, _, unit = rest.partition(":")
    if not equals or not name:
        raise argparse.ArgumentTypeError("write NAME=METRIC, such as p99=latency_p99_ms:s")
    if metric not in METRICS:
        meant = (
            did_you_mean(metric, METRICS) or "suites/metrics.py lists them, such as qps, tps, operation_ms"
        )
        raise argparse.ArgumentTypeError(f"unknown metric '{metric[:40]}': {meant}")
    return name, (metric, unit)


def _changes(subcommands: "Subcommands") -> None:
    judge = subcommands.add_parser("judge", help="detect changes in all series, and report new ones")
    changes = subcommands.add_parser("changes", help="list the detected changes")
    status = "open (default), closed, acknowledged or explained; can be repeated"
    changes.add_argument("--status", action="append", default=[], choices=list(ChangeStatus), help=status)
    changes.add_argument("--branch", help="only changes of this branch, such as postgres@REL_18_STABLE")
    changes.add_argument("--suite", help="only changes of this suite")
    for command in (judge, changes):
        command.add_argument("--format", choices=["terminal", "json"], default="terminal")
    acknowledge = subcommands.add_parser(
        "acknowledge", help="say that a change is known, so that it is not told again"
    )
    acknowledge.add_argument(
        "fingerprint", metavar="CHANGE", help="fingerprint, as `history changes` lists it"
    )
    acknowledge.add_argument(
        "--reason", required=True, help="why; earlier reasons are kept, and the issue shows it"
    )
    until = "the last day for which it holds, in UTC, such as 2026-12-31; without one it holds for good"
    end = acknowledge.add_mutually_exclusive_group()
    end.add_argument("--until", type=last_day, metavar="DATE", help=until)
    end.add_argument("--undo", action="store_true", help="withdraw it: the change is open again")
    acknowledge.add_argument("--by", metavar="NAME", help="who decides it (default: the user's name)")
    _read(judge, changes, acknowledge)


def last_day(text: str) -> date:
    """Parse a day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a day: write 2026-12-31") from None


def _read(*parsers: argparse.ArgumentParser) -> None:
    for parser in parsers:
        parser.add_argument(
            "--history", metavar="PATH", help="path or URL of the history, instead of Tidemark's own"
        )
