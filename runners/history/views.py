"""`./tidemark history show` and `history series`: what the history holds, and one series night by night."""

import argparse
import sys

from rich.console import Console

from history.open import existing_history, open_store
from history.rendering.inventory import (
    inventory_json,
    render_inventory,
    render_series,
    series_csv,
    series_json,
)
from history.rendering.plain_table import PLAIN_WIDTH
from history.series.inventory import InventoryFilter, list_branches, list_series, list_unfinished
from history.series.timeline import read_timeline


def show_(arguments: argparse.Namespace) -> int:
    """Print what the history holds; return 0, or 2 when no branch matches."""
    wanted = _wanted(arguments)
    with open_store(existing_history(arguments.history)) as store, store.database.reading() as connection:
        branches = list_branches(connection, wanted)
        failed = list_unfinished(connection, wanted)
        named = arguments.step is not None or arguments.metric is not None
        held = list_series(connection, wanted) if named else ()
    if arguments.format == "json":
        sys.stdout.write(inventory_json(branches, failed, held))
    else:
        render_inventory(branches, failed, held, _console())
    if not branches:
        print("tidemark history: no night matches; use fewer options", file=sys.stderr)
    return 0 if branches else 2


def series_(arguments: argparse.Namespace) -> int:
    """Print one series night by night; return 0. Raises SeriesError when no series matches, or several do."""
    with open_store(existing_history(arguments.history)) as store, store.database.reading() as connection:
        timeline = read_timeline(connection, _wanted(arguments), arguments.base, arguments.since)
    if arguments.format == "terminal":
        render_series(timeline, _console())
    else:
        sys.stdout.write({"json": series_json, "csv": series_csv}[arguments.format](timeline))
    return 0


def _wanted(arguments: argparse.Namespace) -> InventoryFilter:
    return InventoryFilter(
        box=arguments.machine,
        suite=arguments.suite,
        branch=arguments.branch,
        step=arguments.step,
        metric=arguments.metric,
        configuration=arguments.configuration,
    )


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
