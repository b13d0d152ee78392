"""`./tidemark nightly`: what is new is measured, judged, told and copied, however often it is called."""

import argparse
import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from build.home import Home, locate_for_writing
from build.progress import Progress
from history.changes.level_shift import Direction
from history.rendering.changes import box_note_lines
from history.spool.opening import open_delivered, open_recorded
from history.store.writer import Store
from runners.console import add_to_job_summary, progress
from runners.measuring.machine_lock import BusyError, measuring_alone
from runners.nightly.backfill_plan import Backfill
from runners.nightly.heartbeat import Heart, record_failure, record_notes
from runners.nightly.night import NightResult, measure, measure_past
from runners.nightly.plan import Plan, PlanError, find_box, load_plan, plan_history
from runners.nightly.report import NightReport, comparisons, report
from runners.nightly.summary import summary
from runners.values import history_of


def main(arguments: argparse.Namespace) -> int:
    """Carry out a night. 1 when a regression is new or came back, 2 when something went wrong, else 0."""
    plan, past = load_plan(Path(arguments.plan)), backfill_of(arguments)
    if arguments.boxes:
        print(matrix(plan, arguments.box))
        return 0
    home = locate_for_writing()
    box = None if arguments.report else find_box(plan, arguments.box, platform.node())
    try:
        return _carry_out(arguments, plan, box, home, past)
    except (KeyboardInterrupt, BusyError):
        raise
    except BaseException as error:
        if box is not None:
            record_failure(home.heartbeat, box, error, datetime.now(UTC))
        raise


def backfill_of(arguments: argparse.Namespace) -> Backfill | None:
    """Return what --backfill asks for; None without it. Raises PlanError for options that lack each other."""
    given = {name: getattr(arguments, name) for name in ("branch", "since", "every")}
    if not arguments.backfill:
        if any(given.values()):
            raise PlanError("--branch, --since and --every are of a backfill", hint="add --backfill")
        return None
    if arguments.report or not (arguments.branch and arguments.since):
        raise PlanError("a backfill needs --branch and --since, and measures", where="nightly --backfill")
    try:
        return Backfill(**{name: value for name, value in given.items() if value}, share=1.0)
    except ValidationError as error:
        reasons = [each["msg"].removeprefix("Value error, ") for each in error.errors(include_url=False)]
        raise PlanError("; ".join(reasons), where="nightly --backfill") from error


def _carry_out(
    arguments: argparse.Namespace, plan: Plan, box: str | None, home: Home, past: Backfill | None
) -> int:
    """Measure on a box, if one is named, and report, unless that is left to another command."""
    history = history_of(str(plan_history(plan, home)), home)
    with progress() as shown, _opened(arguments, plan, history, home, shown) as store:
        try:
            night = None if box is None else _measure(plan, box, home, store, shown, past)
        except BusyError as error:
            # Not a failure: the night that holds the lock does the work.
            print(f"tidemark: {error}", file=sys.stderr)
            return 0
        found = None if arguments.measure else report(plan, home, store)
        if found is not None:
            own = [note for note in found.notes if note.environment.box == platform.node()]
            record_notes(home.heartbeat, list(box_note_lines(own)))
        compared = [] if night is None else list(comparisons(night, store))
    _publish(summary(night, found, compared, datetime.now(UTC)), home)
    return _code(night, found)


def _opened(
    arguments: argparse.Namespace, plan: Plan, history: Path | str, home: Home, shown: Progress
) -> Store:
    """Open the history: to report it has to be there, to measure it does not."""
    if arguments.report:
        return open_delivered(history, home)
    return open_recorded(history, home, shown.note, backups=home.backups)


def matrix(plan: Plan, box: str | None) -> str:
    """The boxes as a workflow's matrix takes them; all when `box` is empty. Raises PlanError."""
    names = [find_box(plan, box, "")] if box else list(plan.boxes)
    return json.dumps([{"name": name, "label": plan.boxes[name].label} for name in names])


def _measure(
    plan: Plan, box: str, home: Home, store: Store, shown: Progress, past: Backfill | None
) -> NightResult:
    """Measure a night, or only past commits, under the machine's lock, with a heartbeat. Raises BusyError.

    An error is left to the caller to record. A person who interrupts the night knows that it ended.
    """
    with measuring_alone(home):
        heart = Heart(home.heartbeat, box, shown)
        try:
            if past is None:
                night = measure(plan, box, platform.node(), home, store, heart)
            else:
                night = measure_past(plan, box, platform.node(), home, store, heart, past)
        except KeyboardInterrupt:
            heart.end("interrupted")
            raise
        heart.end(night.outcome)
    return night


def _publish(text: str, home: Home) -> None:
    """On the terminal, in the output folder, and in the summary of a GitHub job."""
    home.summaries.mkdir(parents=True, exist_ok=True)
    path = home.summaries / f"{datetime.now(UTC):%Y-%m-%d}.md"
    with path.open("a", encoding="utf-8") as kept:
        kept.write(text + "\n")
    add_to_job_summary(text)
    print(text)


def _code(night: NightResult | None, found: NightReport | None) -> int:
    bad = (Direction.REGRESSION, Direction.MIXED)
    if found is not None and any(news.change.direction in bad for news in (*found.new, *found.reopened)):
        return 1
    failed = night is not None and (
        bool(night.problems) or any(not outcome.whole for _, outcome in night.carried_out)
    )
    return 2 if failed or (found is not None and found.problems) else 0
