"""`./tidemark history show|series|change-points`: what the history holds, and series over all nights."""

import argparse
import sys
from dataclasses import replace

from sqlalchemy import Connection

from build.home import locate
from history.changes.hindsight import changes_of, search_series
from history.escaping.json_strings import json_text
from history.open import existing_history
from history.rendering.change_points import change_points_json, render_change_points
from history.rendering.inventory import (
    inventory_json,
    render_inventory,
    render_series,
    series_csv,
    series_json,
)
from history.rendering.plain_table import standard_output
from history.series.inventory import (
    InventoryFilter,
    list_branches,
    list_series,
    list_unfinished,
)
from history.series.series import find_series
from history.series.timeline import read_timeline
from history.spool.opening import open_delivered
from suites.metrics import PRIMARIES, PRIMARY


def show_(arguments: argparse.Namespace) -> int:
    """Print what the history holds; return 0, or 2 when no branch matches."""
    wanted = _wanted(arguments)
    with (
        open_delivered(existing_history(arguments.history), locate()) as store,
        store.database.reading() as connection,
    ):
        branches = list_branches(connection, wanted)
        failed = list_unfinished(connection, wanted)
        named = arguments.step is not None or arguments.metric is not None
        held = list_series(connection, wanted) if named else ()
    if arguments.format == "json":
        sys.stdout.write(inventory_json(branches, failed, held))
    else:
        render_inventory(branches, failed, held, standard_output())
    if not branches:
        print("tidemark history: no night matches; use fewer options", file=sys.stderr)
    return 0 if branches else 2


def series_(arguments: argparse.Namespace) -> int:
    """Print one series night by night; return 0. Raises SeriesError when no series matches, or several do."""
    with (
        open_delivered(existing_history(arguments.history), locate()) as store,
        store.database.reading() as connection,
    ):
        wanted = _with_metric(connection, _wanted(arguments))
        timeline = read_timeline(connection, wanted, arguments.base, arguments.since)
    if arguments.format == "csv":
        sys.stdout.write(series_csv(timeline))
        return 0
    changes = changes_of(timeline)
    if arguments.format == "json":
        sys.stdout.write(series_json(timeline, changes))
    else:
        render_series(timeline, changes, standard_output())
    return 0


def change_points_(arguments: argparse.Namespace) -> int:
    """Print the changes in finished series; return 0, or 2 when no series matches."""
    with (
        open_delivered(existing_history(arguments.history), locate(), most_bytes=None) as store,
        store.database.reading() as connection,
    ):
        searched = search_series(connection, _wanted(arguments), arguments.base, arguments.since)
    if arguments.format == "json":
        print(json_text(change_points_json(searched), indent=1))
    elif searched:
        standard_output().lines(render_change_points(searched))
    if not searched:
        print("tidemark history: no series matches; ./tidemark history show lists all", file=sys.stderr)
    return 0 if searched else 2


def _with_metric(connection: Connection, wanted: InventoryFilter) -> InventoryFilter:
    """Return what is wanted with the metric that is shown when none is named."""
    if wanted.metric is not None:
        return wanted
    metrics = {key.metric for key in find_series(connection, **vars(wanted))}
    return replace(wanted, metric=next((name for name in PRIMARIES if name in metrics), PRIMARY))


def _wanted(arguments: argparse.Namespace) -> InventoryFilter:
    return InventoryFilter(
        box=arguments.machine,
        suite=arguments.suite,
        branch=arguments.branch,
        step=arguments.step,
        metric=arguments.metric,
        configuration=arguments.configuration,
    )
