"""`./tidemark history judge|changes|acknowledge`: changes of level over nights."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from getpass import getuser

from build.home import locate
from history.backups.backup import require_whole
from history.changes import repository
from history.changes.acknowledgements import acknowledge, withdraw
from history.changes.boxes.notes import BoxNote, read_box_notes
from history.changes.detector import DetectionReport, judge
from history.changes.level_shift import Direction
from history.changes.report import ChangeReport, report_changes
from history.escaping.json_strings import json_text
from history.open import existing_history, open_store
from history.rendering.changes import box_note_lines, changes_json, render_changes
from history.rendering.plain_table import standard_output
from history.series.not_judged import NotJudged, latencies_not_judged, not_judged
from history.series.renamed import renamed
from history.spool.opening import open_delivered, open_to_judge
from history.store.records import ChangeStatus
from history.timestamps import now
from runners.alerting.outbox import tell_decision
from runners.exit_codes import TROUBLE


def judge_(arguments: argparse.Namespace) -> int:
    """Look for changes in all series; 1 when a change for the worse is new or came back, else 0.

    2 when there is no series to judge, or a branch that goes on has lost its base. Raises HistoryError for a
    history of which no backup could be made.
    """
    with open_to_judge(existing_history(arguments.history), locate()) as store:
        require_whole(store.database)
        report = judge(store.database)
        with store.database.reading() as connection:
            news = report_changes(
                connection, (*report.new, *report.reopened, *report.closed, *report.explained)
            )
            unjudged = not_judged(connection)
            successors = renamed(connection) if arguments.format == "terminal" else ()
            latencies = [*latencies_not_judged(connection)]
    _print(news, arguments.format)
    if arguments.format == "terminal":
        _print_notes(report.notes)
        standard_output().lines(map(str, successors))
        print(_summary(report))
    for line in (*_not_judged_lines(unjudged, report.series), *latencies):
        print(f"tidemark history: {line}", file=sys.stderr)
    bad = (Direction.WORSE, Direction.MIXED)
    if any(change.direction in bad for change in (*report.new, *report.reopened)):
        return 1
    has_lost_base = any(found.nights and not found.has_ended for found in unjudged)
    return TROUBLE if has_lost_base or not report.series else 0


def _not_judged_lines(unjudged: Sequence[NotJudged], series: int) -> Iterator[str]:
    """Yield which branches are not judged, and why; of bases that are alone, only if nothing is judged."""
    if not unjudged and not series:
        yield "nothing to judge: the history has no night of a branch beside a base"
    yield from (str(found) for found in unjudged if found.base is None or found.nights or not series)


def changes_(arguments: argparse.Namespace) -> int:
    """Show what was found: open changes, or those of the statuses asked for."""
    statuses = [ChangeStatus(status) for status in arguments.status] or [ChangeStatus.OPEN]
    with (
        open_delivered(existing_history(arguments.history), locate()) as store,
        store.database.reading() as connection,
    ):
        changes = repository.load(
            connection, branch=arguments.branch, suite=arguments.suite, statuses=statuses
        )
        reports = report_changes(connection, changes)
        notes = read_box_notes(connection) if arguments.format == "terminal" else ()
    _print(reports, arguments.format)
    _print_notes(notes)
    if not reports and arguments.format == "terminal":
        print(f"no {' or '.join(statuses)} change")
    return 0


def acknowledge_(arguments: argparse.Namespace) -> int:
    """Acknowledge a change, or withdraw that; say what it is now, and whether its issue will say so."""
    change, reason, who, when = arguments.fingerprint, arguments.reason, arguments.by or _user(), now()
    with (
        open_store(existing_history(arguments.history)) as store,
        store.database.writing() as connection,
    ):
        if arguments.undo:
            withdraw(connection, change, reason, when, who=who)
        else:
            acknowledge(connection, change, reason, when, who=who, until=arguments.until)
        is_due = tell_decision(connection, change, when)
        (now_,) = repository.load(connection, fingerprint=change)
    standard_output().lines([f"change {change} is {now_.status}: {now_.acknowledgements[-1]}"])
    if is_due:
        print("its issue gets this with the next delivery")
    return 0


def _user() -> str:
    """The name of the person at the terminal."""
    try:
        return os.environ.get("SUDO_USER") or getuser()
    except (KeyError, OSError):  # this user has no name
        return str(os.getuid())


def _print(reports: Sequence[ChangeReport], format_: str) -> None:
    if format_ == "json":
        print(json_text(changes_json(reports), indent=1))
    elif reports:
        standard_output().lines(render_changes(reports))


def _print_notes(notes: Sequence[BoxNote]) -> None:
    standard_output().lines(box_note_lines(notes))


def _summary(report: DetectionReport) -> str:
    explained = f", {len(report.explained)} explained" if report.explained else ""
    return (
        f"{report.series} series: {len(report.new)} new, {len(report.reopened)} back, "
        f"{len(report.closed)} gone{explained}; {len(report.open)} open"
    )
