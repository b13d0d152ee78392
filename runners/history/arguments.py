"""The arguments of `./tidemark history`."""

import argparse
from typing import TYPE_CHECKING

from history.changes.repository import ChangeStatus
from history.timestamps import moment
from runners.values import count, date
from suites.metrics import METRICS, PRIMARY

if TYPE_CHECKING:
    Words = argparse._SubParsersAction[argparse.ArgumentParser]


def add_words(it: argparse.ArgumentParser) -> None:
    """All words, each with its arguments and the function of this package that carries it out."""
    it.epilog = (
        "docs/history.md has the formats; exit codes: 0 done; 1 judge: a regression is new or came back;"
    )
    it.epilog += " 2 trouble, and nothing half-written"
    words = it.add_subparsers(dest="what", required=True, metavar="WHAT")
    _views(words)
    _transfers(words)
    _changes(words)


def _views(words: "Words") -> None:
    show = words.add_parser("show", help="boxes, suites and branches with their nights, and what failed")
    series = words.add_parser("series", help="one step of one branch, night by night")
    one = f"the metric (default: {PRIMARY})"
    base = "the branch to be relative to, instead of the latest night's base"
    for each, step, metric, default, formats in (
        (show, "only branches with this step; lists its series", "likewise", None, ["terminal", "json"]),
        (series, "the step", one, PRIMARY, ["terminal", "json", "csv"]),
    ):
        each.add_argument("--step", required=each is series, metavar="STEP", help=step)
        each.add_argument("--metric", default=default, choices=METRICS, metavar="METRIC", help=metric)
        each.add_argument("--machine", metavar="BOX", help="only this host name")
        each.add_argument("--suite", help="only this suite")
        each.add_argument("--branch", metavar="BRANCH", help="only this branch, such as postgres@18")
        each.add_argument("--configuration", metavar="NAME", help="only this one, as history show names it")
        each.add_argument("--format", choices=formats, default="terminal")
    series.add_argument("--base", metavar="BRANCH", help=base)
    series.add_argument("--since", type=moment, metavar="DATE", help="from then on: 2026-11-01, or 30d")
    _read(show, series)


def _transfers(words: "Words") -> None:
    out = words.add_parser(
        "export", help="write sessions that ended into a file, or a folder of Parquet files"
    )
    out.add_argument("target", metavar="FILE|FOLDER", help="new; a name in .gz is compressed")
    out.add_argument("--format", choices=["ndjson", "parquet"], default="ndjson", help="default: ndjson")
    out.add_argument("--suite", help="only sessions of this suite")
    out.add_argument("--since", type=date, metavar="DATE", help="only sessions that began then or later")
    take = words.add_parser("import", help="take in exports, and other people's tables")
    what = "NDJSON, a Parquet folder, CSV, mytools' tables"
    take.add_argument("files", nargs="+", metavar="FILE", help=what)
    table = take.add_argument_group("of tables that do not say it")
    table.add_argument("--machine", metavar="NAME", help="where it was measured")
    table.add_argument("--suite", metavar="NAME", help="what was run")
    table.add_argument("--when", type=date, metavar="DATE", help="such as 2025-11")
    cores = "of the machine, for CPU costs that are shares"
    table.add_argument("--cores", type=count, metavar="N", help=cores)
    merge = words.add_parser("merge", help="take in what other histories have and this one has not")
    merge.add_argument("histories", nargs="+", metavar="HISTORY", help="a path, a URL, or an export")
    backup = words.add_parser("backup", help="copy the whole history, also while sessions run")
    backup.add_argument("file", metavar="FILE", help="new, or an earlier backup, which is replaced")
    prune = words.add_parser("prune", help="delete the rounds of old sessions; nights and changes stay")
    before = "of sessions that began earlier"
    prune.add_argument("--before", type=date, required=True, metavar="DATE", help=before)
    prune.add_argument("--dry-run", action="store_true", help="only say what would be freed")
    _read(out, take, merge, backup, prune)


def _changes(words: "Words") -> None:
    judge = words.add_parser("judge", help="look for change points in all series, and say what is new")
    changes = words.add_parser("changes", help="the changes that were found")
    status = "open (default), closed, acknowledged or explained; can be repeated"
    changes.add_argument("--status", action="append", default=[], choices=list(ChangeStatus), help=status)
    changes.add_argument("--branch", help="only of this branch, such as postgres@REL_18_STABLE")
    changes.add_argument("--suite", help="only of this suite")
    for each in (judge, changes):
        each.add_argument("--format", choices=["terminal", "json"], default="terminal")
    acknowledge = words.add_parser("acknowledge", help="hear no more of a change")
    acknowledge.add_argument("fingerprint", metavar="CHANGE", help="as `history changes` names it")
    acknowledge.add_argument("--reason", required=True, help="why; kept with the change")
    _read(judge, changes, acknowledge)


def _read(*parsers: argparse.ArgumentParser) -> None:
    for each in parsers:
        each.add_argument("--history", metavar="PATH", help="path or URL, instead of Tidemark's own")
