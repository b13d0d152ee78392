"""`./tidemark history judge|changes|acknowledge`: changes of level over nights."""

import argparse
import json
import sys

from history.changes import repository
from history.changes.detector import Report, judge
from history.changes.level_shift import Direction
from history.changes.repository import Change, ChangeStatus
from history.open import existing_history, open_store
from history.rendering.changes import LocatedChange, changes_json, render_changes
from history.store.database import Database
from history.timestamps import now


def judge_(arguments: argparse.Namespace) -> int:
    """Look for changes in all series; 1 when a regression is new or came back, else 0."""
    with open_store(existing_history(arguments.history)) as store:
        report = judge(store.database)
        news = [*report.new, *report.reopened, *report.closed]
        _print(_found(store.database, news), arguments.format)
    if arguments.format == "terminal":
        print(_summary(report))
    bad = (Direction.REGRESSION, Direction.MIXED)
    return int(any(each.direction in bad for each in (*report.new, *report.reopened)))


def changes_(arguments: argparse.Namespace) -> int:
    """Show what was found: open changes, or those of the statuses asked for."""
    statuses = [ChangeStatus(each) for each in arguments.status] or [ChangeStatus.OPEN]
    with open_store(existing_history(arguments.history)) as store:
        with store.database.reading() as connection:
            found = repository.load(
                connection, branch=arguments.branch, suite=arguments.suite, statuses=statuses
            )
        _print(_found(store.database, found), arguments.format)
    if not found and arguments.format == "terminal":
        print(f"no {' or '.join(statuses)} change")
    return 0


def acknowledge_(arguments: argparse.Namespace) -> int:
    """Silence a change for good."""
    with (
        open_store(existing_history(arguments.history)) as store,
        store.database.writing() as connection,
    ):
        repository.acknowledge(connection, arguments.fingerprint, arguments.reason, now())
    return 0


def _found(database: Database, them: "list[Change] | tuple[Change, ...]") -> list[LocatedChange]:
    with database.reading() as connection:
        return [
            LocatedChange(
                each,
                (
                    repository.commit_of(connection, each.last_before),
                    repository.commit_of(connection, each.first_after),
                ),
            )
            for each in them
        ]


def _print(found: list[LocatedChange], format_: str) -> None:
    if format_ == "json":
        json.dump(changes_json(found), sys.stdout, indent=1)
        print()
    elif found:
        print(render_changes(found))


def _summary(report: Report) -> str:
    return (
        f"{report.series} series: {len(report.new)} new, {len(report.reopened)} back, "
        f"{len(report.closed)} gone; {len(report.open)} open"
    )
