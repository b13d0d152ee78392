"""`./tidemark history export|import|merge|backup|migrate|prune`: copying, updating, reducing histories."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

from build.errors import shell_line
from build.home import locate, locate_for_writing
from history.backups.backup import back_up
from history.changes.hindsight import search_series
from history.counts import counted
from history.open import existing_history, open_reader, open_store
from history.rendering.change_points import searched_text
from history.series.inventory import InventoryFilter
from history.series.not_judged import latencies_not_judged, not_judged
from history.series.renamed import renamed
from history.series.series import bases_beside, list_environments
from history.store.schema_status import newest
from history.store.writer import Store
from history.transfer.database_source import Selection, opened
from history.transfer.foreign.values import Given
from history.transfer.format_detection import PARQUET_IS_GONE, open_files, open_histories
from history.transfer.merging import Merged, merge
from history.transfer.ndjson import write_ndjson
from history.transfer.pruning import Room, prune, room, vacuum
from history.transfer.row_source import TransferError
from runners.values import history_of


def export_(arguments: argparse.Namespace) -> int:
    """Write a history to a file; return 0. Raises TransferError for Parquet."""
    target = Path(arguments.target)
    if arguments.format == "parquet":
        raise TransferError(
            "histories are not exported as Parquet any more", where="--format", hint=PARQUET_IS_GONE
        )
    selection = Selection(arguments.suite, arguments.since)
    with opened(existing_history(arguments.history), selection) as source:
        rows = write_ndjson(source, target)
        left_out = source.left_out
    print(f"{rows} rows: {target}")
    _print_left_out(left_out)
    return 0


def import_(arguments: argparse.Namespace) -> int:
    """Import exports and tables of other tools; return 0."""
    given = Given(
        arguments.machine,
        arguments.suite,
        arguments.when,
        arguments.cores,
        arguments.columns,
        arguments.version,
        arguments.step,
        dict(arguments.metric),
        arguments.base,
    )
    with _own_history(arguments) as store:
        incoming = open_files([Path(name) for name in arguments.files], given, store)
        merged = merge(store, incoming.sources)
        incoming.record_bases(store.database)
        where = store.where
        with store.database.reading() as connection:
            changes = _change_points(connection, incoming.measured, arguments.history)
    for note in incoming.notes:
        print(note)
    print(summary(merged))
    for line in changes:
        print(line)
    print(f"history: {where}")
    return 0


def _change_points(
    connection: Connection, measured: Sequence[tuple[str, str]], history: str | None
) -> list[str]:
    """Say what imported series are relative to, how many changes are in them, and how to see those.

    Nothing if none is long enough.
    """
    lines: list[str] = []
    for machine, suite in measured:
        searched = search_series(connection, InventoryFilter(box=machine, suite=suite))
        if any(series.is_long_enough for series in searched):
            lines += _base_lines(connection, machine, suite)
            lines.append(f"{machine}, {suite}: {searched_text(searched)}")
            if any(series.changes for series in searched):
                words = ["./tidemark", "history", "change-points", "--machine", machine, "--suite", suite]
                words += ["--history", history] if history else []
                lines.append(f"    {shell_line(*words)}")
    return lines


def _base_lines(connection: Connection, machine: str, suite: str) -> Iterator[str]:
    """Yield what the tables of a machine and suite are judged against, or why not, and renamed steps."""
    unjudged = not_judged(connection)
    its_environments = [
        environment
        for environment in list_environments(connection)
        if (environment.box, environment.suite) == (machine, suite)
    ]
    for environment in its_environments:
        bases = sorted(set(bases_beside(connection, environment).values()))
        if bases:
            against = " and ".join(bases)
            yield f"{machine}, {suite}, {environment.configuration}: judged against {against}"
        yield from (str(found) for found in unjudged if found.environment == environment)
    yield from map(str, renamed(connection, its_environments))
    yield from latencies_not_judged(connection, its_environments)


def merge_(arguments: argparse.Namespace) -> int:
    """Import what other histories have; return 0."""
    with open_histories(arguments.histories) as incoming, _own_history(arguments) as store:
        print(summary(merge(store, incoming.sources)))
        print(f"history: {store.where}")
    return 0


def backup_(arguments: argparse.Namespace) -> int:
    """Copy a history; return 0."""
    path = Path(arguments.file)
    left_out = back_up(existing_history(arguments.history), path)
    print(f"{_size(path.stat().st_size)}: {path}")
    _print_left_out(left_out)
    return 0


def migrate_(arguments: argparse.Namespace) -> int:
    """Bring a history of an older Tidemark up to date; return 0."""
    with open_store(existing_history(arguments.history)) as store:
        print(f"schema {newest()}: {store.where}")
    return 0


def prune_(arguments: argparse.Namespace) -> int:
    """Delete the rounds of old sessions; return 0."""
    history = existing_history(arguments.history)
    with open_reader(history) if arguments.dry_run else open_store(history) as store:
        found = room(store, arguments.before)
        print(_prune_text(found, f"{arguments.before:%Y-%m-%d}"))
        if not isinstance(store, Store):
            print("nothing was deleted: --dry-run")
            return 0
        prune(store, arguments.before)
        left = vacuum(store.database)
        print(left or f"done: {store.where}")
    return 0


@contextmanager
def _own_history(arguments: argparse.Namespace) -> Iterator[Store]:
    home = locate() if arguments.history else locate_for_writing()
    with open_store(history_of(arguments.history, home)) as store:
        yield store


def summary(merged: Merged) -> str:
    """Render the number of rows by table, and what was left out."""
    lines = [f"{'table':<18} {'added':>9} {'already there':>14}"]
    lines += [
        f"{table:<18} {count.added:>9} {count.there:>14}"
        for table, count in merged.counts.items()
        if count.added or (count.there and table != "metrics")  # every history has its own
    ]
    if merged.derived:
        lines.append(f"nights derived from {counted(merged.derived, 'session')}")
    lines += [f"left out: {reason}" for reason in merged.left_out]
    return "\n".join(lines)


def _prune_text(found: Room, before: str) -> str:
    rows = ", ".join(f"{number} {table.replace('_', ' ')}" for table, number in found.rows.items())
    sessions = counted(found.sessions, "session")
    return (
        f"rounds of {sessions} before {before}: {rows}; about {_size(found.bytes)}\n"
        "their nights, points, gaps and changes are kept"
    )


def _print_left_out(texts: tuple[str, ...]) -> None:
    for text in texts:
        print(f"left out: {text}")


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
