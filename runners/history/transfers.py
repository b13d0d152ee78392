"""`./tidemark history export|import|merge|backup|prune`: the history goes out, comes in, together, apart."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from build.home import locate
from history.open import existing_history, open_store
from history.store.writer import Store
from history.transfer.backup import back_up
from history.transfer.database_source import Selection, opened
from history.transfer.foreign.values import Given
from history.transfer.format_detection import coming_files, coming_histories
from history.transfer.merging import Merged, merge
from history.transfer.ndjson import write_ndjson
from history.transfer.parquet import write_parquet
from history.transfer.pruning import Room, prune, room, vacuum
from runners.commands.run import history_of


def export_(arguments: argparse.Namespace) -> int:
    """Write a history into a file or a folder."""
    target = Path(arguments.target)
    write = write_parquet if arguments.format == "parquet" else write_ndjson
    selection = Selection(arguments.suite, arguments.since)
    with opened(existing_history(arguments.history), selection) as source:
        rows = write(source, target)
        left_out = source.left_out
    print(f"{rows} rows: {target}")
    _say_left_out(left_out)
    return 0


def import_(arguments: argparse.Namespace) -> int:
    """Take in exports and tables of others."""
    given = Given(arguments.machine, arguments.suite, arguments.when, arguments.cores)
    with _ours(arguments) as store:
        coming = coming_files([Path(each) for each in arguments.files], given, store)
        merged = merge(store, coming.sources)
        where = store.where
    for note in coming.notes:
        print(note)
    print(summary(merged))
    print(f"history: {where}")
    return 0


def merge_(arguments: argparse.Namespace) -> int:
    """Take in what other histories have."""
    with coming_histories(arguments.histories) as coming, _ours(arguments) as store:
        print(summary(merge(store, coming.sources)))
        print(f"history: {store.where}")
    return 0


def backup_(arguments: argparse.Namespace) -> int:
    """Copy a history."""
    path = Path(arguments.file)
    left_out = back_up(existing_history(arguments.history), path)
    print(f"{_size(path.stat().st_size)}: {path}")
    _say_left_out(left_out)
    return 0


def prune_(arguments: argparse.Namespace) -> int:
    """Delete the rounds of old sessions."""
    with open_store(existing_history(arguments.history)) as store:
        found = room(store, arguments.before)
        print(_told(found, f"{arguments.before:%Y-%m-%d}"))
        if arguments.dry_run:
            print("nothing was deleted: --dry-run")
            return 0
        prune(store, arguments.before)
        left = vacuum(store.database)
        print(left or f"done: {store.where}")
    return 0


@contextmanager
def _ours(arguments: argparse.Namespace) -> Iterator[Store]:
    with open_store(history_of(arguments.history, locate())) as store:
        yield store


def summary(merged: Merged) -> str:
    """Rows by table, and what was not taken, for people."""
    lines = [f"{'table':<18} {'added':>9} {'already there':>14}"]
    lines += [
        f"{table:<18} {count.added:>9} {count.there:>14}"
        for table, count in merged.counts.items()
        if count.added or (count.there and table != "metrics")  # each Tidemark has all of its own
    ]
    if merged.derived:
        lines.append(f"nights derived: of {_sessions(merged.derived)}")
    lines += [f"left out: {each}" for each in merged.left_out]
    return "\n".join(lines)


def _told(found: Room, before: str) -> str:
    rows = ", ".join(f"{number} {table}" for table, number in found.rows.items())
    return (
        f"rounds of {_sessions(found.sessions)} before {before}: {rows}; about {_size(found.bytes)}\n"
        "their nights, points, gaps and changes stay"
    )


def _sessions(count: int) -> str:
    return "1 session" if count == 1 else f"{count} sessions"


def _say_left_out(texts: tuple[str, ...]) -> None:
    for each in texts:
        print(f"left out: {each}")


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
