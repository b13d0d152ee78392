"""`./tidemark nightly`: what is new is measured, judged, told and copied, however often it is called."""

import argparse
import platform
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from build.errors import TidemarkError
from build.home import Home, locate_for_writing
from history.changes.level_shift import Direction
from history.errors import HistoryError
from history.escaping.json_strings import json_text
from history.escaping.markdown import Markdown, escaped
from history.open import existing_history, open_store
from history.rendering.changes import box_note_lines
from history.series.task_states import TaskOutcome, record_skipped
from history.spool.opening import open_recorded, open_to_judge
from history.store.writer import Store
from runners import credentials
from runners.console import add_to_job_summary, progress
from runners.exit_codes import INTERRUPTED
from runners.measuring.machine_lock import BusyError
from runners.nightly.backfill_plan import Backfill
from runners.nightly.heartbeat import (
    Heart,
    night_elsewhere,
    read,
    record_failure,
    record_late_report,
    record_report,
)
from runners.nightly.night import measure, measure_past
from runners.nightly.night_result import NightResult
from runners.nightly.plan import Plan, PlanError, find_box, load_plan, plan_history
from runners.nightly.releases.new_releases import look_for_releases, with_followed
from runners.nightly.report import NightReport, comparisons, report
from runners.nightly.status import ping, publish_status
from runners.nightly.summary import summary
from runners.nightly.telling import tell_of_night
from runners.occupancy.pause import PauseError, require_not_paused
from runners.occupancy.waiting import WAIT_MINUTES, machine_awaited, quiet_machine
from runners.service.installed import plan_in_use
from runners.values import history_of

FINE = (0, 1)
"""The exit codes of a report without trouble."""


class DoneElsewhereError(TidemarkError):
    """Another process carries out the night of this box."""


def main(arguments: argparse.Namespace) -> int:
    """Carry out a night. 1 when a change for the worse is new or came back, 2 for trouble, else 0."""
    plan, past = load_plan(_file(arguments)), backfill_of(arguments)
    if arguments.boxes:
        print(matrix(plan, arguments.box))
        return 0
    home = locate_for_writing()
    box = None if arguments.report else find_box(plan, arguments.box, platform.node())
    measured = 0
    try:
        if box is not None and not arguments.measure and credentials.are_held():
            _require_not_elsewhere(home, past)
            measured, box = credentials.measured_apart(arguments.words), None
            if measured == INTERRUPTED:
                return INTERRUPTED
        if box is None:
            return _report_alone(plan, home) or measured
        return _night(arguments, plan, box, home, past)
    except KeyboardInterrupt:
        raise
    except DoneElsewhereError as error:
        print(f"tidemark: {error}", file=sys.stderr)
        return 0
    except PauseError as error:
        print(error.what)
        add_to_job_summary(escaped(error.what))
        return 0
    except BaseException as error:
        if box is None:
            record_late_report(home.heartbeat, error)
            beat = read(home.heartbeat)
            ping(plan.boxes[beat.box].ping if beat and beat.box in plan.boxes else None, is_well=False)
        else:
            record_failure(home.heartbeat, box, error, datetime.now(UTC))
        raise


def _file(arguments: argparse.Namespace) -> Path:
    return plan_in_use(arguments.plan).absolute()


def backfill_of(arguments: argparse.Namespace) -> Backfill | None:
    """Return what --backfill asks for; None without it. Raises PlanError for options that lack each other."""
    given = {name: getattr(arguments, name) for name in ("branch", "since", "every", "counted")}
    if not arguments.backfill:
        if any(given.values()):
            raise PlanError(
                "--branch, --since, --every and --counted are of a backfill", hint="add --backfill"
            )
        return None
    if arguments.report or not (arguments.branch and arguments.since):
        raise PlanError("a backfill needs --branch and --since, and measures", where="nightly --backfill")
    try:
        return Backfill(**{name: value for name, value in given.items() if value}, share=1.0)
    except ValidationError as error:
        reasons = [
            mistake["msg"].removeprefix("Value error, ") for mistake in error.errors(include_url=False)
        ]
        raise PlanError("; ".join(reasons), where="nightly --backfill") from error


def _night(arguments: argparse.Namespace, plan: Plan, box: str, home: Home, past: Backfill | None) -> int:
    """Measure on a box as soon as its machine is free, and report, unless that is left to another command.

    Raises PauseError while the box is paused, and DoneElsewhereError when another process does the same.
    """

    def still_wanted() -> None:
        require_not_paused(home, datetime.now(UTC))
        _require_not_elsewhere(home, past)

    def begin() -> Heart:
        file, is_backfill = str(_file(arguments)), past is not None
        return Heart(home.heartbeat, box, shown, is_backfill=is_backfill, plan=file)

    history = history_of(str(plan_history(plan, home)), home)
    try:
        still_wanted()
    except PauseError as error:
        _record_skipped(history, box, TaskOutcome.PAUSED, error.what)
        raise
    plan, news = look_for_releases(plan, home)
    seconds = 60 * min(WAIT_MINUTES, plan.boxes[box].budget_minutes)
    found, compared = None, []
    with progress() as shown:
        # The heartbeat of a backfill stays that of the box while its night waits for the end.
        heart = begin() if night_elsewhere(home.heartbeat, datetime.now(UTC)) is None else None
        try:
            with (
                machine_awaited(home, seconds, heart or shown, still_wanted) as waited,
                open_recorded(history, home, shown.note, backups=home.backups) as store,
            ):
                heart = heart or begin()
                night = _measure(plan, box, home, store, heart, past, waited)
                heart.end(night.outcome)
                night.releases = news
                found = None if arguments.measure else _report(plan, home, store)
                (found or night).problems.extend(
                    tell_of_night(plan, home, store, None if past else night, found)
                )
                compared = list(comparisons(night, store))
        except BusyError as error:
            _record_skipped(history, box, TaskOutcome.BUSY, error.what)
            night = NightResult(box, problems=[f"nothing was measured: {error.what}"])
            if heart is not None:
                heart.end(error.what, failed=True)
        except (KeyboardInterrupt, PauseError) as error:
            if heart is not None:
                heart.end_early("interrupted" if isinstance(error, KeyboardInterrupt) else error.what)
            raise
    _publish(summary(night, found, compared, datetime.now(UTC)), home)
    code = _code(night, found)
    if not arguments.measure and past is None:
        _say_status(plan, box, home, code)
    return code


def _require_not_elsewhere(home: Home, past: Backfill | None) -> None:
    other = night_elsewhere(home.heartbeat, datetime.now(UTC))
    if other is not None and past is None and not other.is_backfill:
        raise DoneElsewhereError(f"process {other.process_id} carries out this night: {other.what}")


def _record_skipped(history: Path | str, box: str, outcome: TaskOutcome, reason: str) -> None:
    """Record in the history, if it is there, that a box could not have its night."""
    with (
        suppress(HistoryError),
        open_store(existing_history(str(history))) as store,
        store.database.writing() as connection,
    ):
        record_skipped(connection, box, outcome, reason, store.now())


def _report_alone(plan: Plan, home: Home) -> int:
    """Report as soon as nothing measures on the machine. Raises BusyError when that takes too long."""
    history = history_of(str(plan_history(plan, home)), home)
    with (
        progress() as shown,
        quiet_machine(home, shown),
        open_to_judge(history, home) as store,
    ):
        found = _report(plan, home, store)
        found.problems += tell_of_night(plan, home, store, None, found)
    _publish(summary(None, found, [], datetime.now(UTC)), home)
    code, beat = _code(None, found), read(home.heartbeat)
    if beat is not None and beat.box in plan.boxes:  # else this is no box of the plan
        _say_status(with_followed(plan, home), beat.box, home, code)
    return code


def _say_status(plan: Plan, box: str, home: Home, code: int) -> None:
    """Write the metrics and ping after a report that ended with an exit code."""
    problem = publish_status(plan, box, home, datetime.now(UTC), is_whole=code in FINE)
    if problem:
        print(f"tidemark: {problem}", file=sys.stderr)


def _report(plan: Plan, home: Home, store: Store) -> NightReport:
    found = report(plan, home, store)
    own = [note for note in found.notes if note.environment.box == platform.node()]
    record_report(home.heartbeat, list(box_note_lines(own)))
    return found


def matrix(plan: Plan, box: str | None) -> str:
    """The boxes as a workflow's matrix takes them; all when `box` is empty. Raises PlanError."""
    names = [find_box(plan, box, "")] if box else list(plan.boxes)
    return json_text([{"name": name, "label": plan.boxes[name].label} for name in names])


def _measure(
    plan: Plan,
    box: str,
    home: Home,
    store: Store,
    heart: Heart,
    past: Backfill | None,
    waited: float,
) -> NightResult:
    """Measure a night, or only past commits."""
    hostname = platform.node()
    if past is None:
        return measure(plan, box, hostname, home, store, heart, waited_seconds=waited)
    return measure_past(plan, box, hostname, home, store, heart, past, waited_seconds=waited)


def _publish(text: Markdown, home: Home) -> None:
    """On the terminal, in the output folder, and in the summary of a GitHub job."""
    home.summaries.mkdir(parents=True, exist_ok=True)
    path = home.summaries / f"{datetime.now(UTC):%Y-%m-%d}.md"
    with path.open("a", encoding="utf-8") as kept:
        kept.write(text + "\n")
    add_to_job_summary(text)
    print(text)


def _code(night: NightResult | None, found: NightReport | None) -> int:
    bad = (Direction.WORSE, Direction.MIXED)
    if found is not None and any(news.change.direction in bad for news in (*found.new, *found.reopened)):
        return 1
    failed = night is not None and night.has_failed
    return 2 if failed or (found is not None and found.problems) else 0
