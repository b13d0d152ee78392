"""`./tidemark bisect`: find the commit that changed a metric; its subcommands status, replay and report."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from build.addresses import redacted, without_secrets
from build.errors import TidemarkError, shell_line
from build.home import Home, locate_for_writing
from build.progress import in_words
from build.version import Engine
from history.errors import HistoryError
from history.escaping.json_strings import json_text
from history.open import existing_history, open_reader, open_store
from history.rendering.next_step.closing import command, located, minutes_for, with_budget, with_option
from history.rendering.plain_table import standard_output
from history.store import bisects
from history.store.bisects import Bisect
from history.store.reader import Reader
from history.store.writer import Store
from history.timestamps import now
from runners.alerting.outbox import update_issue
from runners.bisect.report.remaining import seconds_left
from runners.bisect.report.render import markdown, text
from runners.bisect.report.replay import read_file, replay
from runners.bisect.report.state import BisectState, export, load_state
from runners.bisect.report.wording import headline
from runners.bisect.requests import parse_request, require_ends
from runners.bisect.run.bisect import BisectRun, real_dependencies
from runners.bisect.run.event_log import read_log
from runners.console import add_to_job_summary, progress
from runners.exit_codes import TROUBLE
from runners.nightly.inputs import Inputs, box_for
from runners.nightly.plan import Box, load_plan, plan_history
from runners.occupancy.busy import note_if_busy
from runners.occupancy.pause import require_not_paused
from runners.occupancy.waiting import machine_awaited
from runners.service.installed import plan_in_use
from runners.values import history_of

ANSWERS = ("culprit", "range", "none", "two-steps", "several-steps", "slope", "varying")
"""The verdicts that answer the question."""

UNDECIDED = 1


def main(arguments: argparse.Namespace) -> int:
    """Carry out the command or one of its subcommands; return the exit code that `--help` documents."""
    subcommands = {"status": status, "replay": replay_, "report": report}
    return subcommands[arguments.what](arguments) if arguments.what else search(arguments)


def search(arguments: argparse.Namespace) -> int:
    """Search and print the report; with --check only print the label of the box that would run it."""
    home = locate_for_writing()
    require_ends(arguments)
    box = None
    if arguments.box is not None or arguments.check:
        box, arguments = select_box(arguments, home)
    asked = parse_request(arguments)
    if box is not None and arguments.check:
        print(box.label)
        return 0
    history = history_of(arguments.history, home)
    if box is not None:
        require_not_paused(home, now())
    with progress() as shown:
        if not (arguments.keep_disturbed or asked.question.is_counted):
            note_if_busy(home, shown, "accept it (--keep-disturbed)")
    with (
        progress() as shown,
        machine_awaited(home, arguments.wait * 60, shown),
        open_store(history) as store,
    ):
        real = real_dependencies(home, shown, asked.question.suite, asked.variant, asked.extension)
        bisect = BisectRun(asked, home, store, shown, real)
        try:
            log = bisect.run()
        except (TidemarkError, OSError, MemoryError, KeyboardInterrupt) as error:
            note_progress(error, store, bisect)
            raise
        if update_issue(store.database, log.bisect):
            shown.note(f"the issue of change {log.bisect.change} gets the result with the next delivery")
        state = load_state(store, log)
    print(text(state), end="")
    add_to_job_summary(markdown(state))
    chosen = f" --history {shell_line(without_secrets(arguments.history))}" if arguments.history else ""
    words = [redacted(word) for word in arguments.words if word != "--again"]
    if code(state) == UNDECIDED and words:
        print(f"\n{_open(state, bisect.seconds, words)}")
    else:
        report = f"./tidemark bisect report {log.bisect.uid} --format markdown{chosen}"
        print(f"\nfor an issue: {located(report)}")
    return code(state)


def _open(state: BisectState, seconds: float, words: Sequence[str]) -> str:
    """Return what comes next of a search without an answer, whose last session took so many `seconds`.

    The same command goes on with it, unless that has ended: another one searches what is left.
    """
    verdict = state.verdict
    if verdict is not None and state.log.bisect.is_open:
        return f"the rest of the range is not searched yet: {command(['./tidemark', *words])}"
    if verdict is not None:
        ends = {"--good": verdict.low, "--bad": verdict.high}
        for option, place in ends.items():
            words = with_option(words, option, state.point(place).short)
        if ends == {"--good": 0, "--bad": state.log.span.length}:
            words = [*words, "--again"]
        return f"undecided, and the search has ended; another search: {command(['./tidemark', *words])}"
    left = seconds_left(state, seconds)
    if left is None:
        return f"undecided, not known yet how much longer: {command(['./tidemark', *words])}"
    same = ["./tidemark", *with_budget(words, minutes_for(left))]
    return f"undecided: about {in_words(left)} more: {command(same)}"


def note_progress(error: BaseException, store: Store, run: BisectRun) -> None:
    """Note what the search has that `error` ended, and how it continues."""
    if run.bisect is None:
        return
    with suppress(TidemarkError, OSError):  # of the history, maybe the very error that ended the search
        rounds = BisectState(read_log(store, _chosen(store, run.bisect.uid))).rounds
        if not rounds:
            error.add_note(f"bisect {run.bisect.uid}: no usable round is stored")
            return
        count = "1 round is" if rounds == 1 else f"{rounds} rounds are"
        same = "the same command without --again" if run.request.again else "the same command"
        error.add_note(f"bisect {run.bisect.uid}: {count} stored; {same} continues it")


def code(state: BisectState) -> int:
    """Return 0 for an answer, 1 for none yet, 2 when bad differs in the other direction."""
    verdict = state.verdict
    if verdict is None or verdict.kind in ("undecided", "moving"):
        return UNDECIDED
    if state.log.bisect.is_open:
        return UNDECIDED  # the rest of the range is still to be searched
    return 0 if verdict.kind in ANSWERS else TROUBLE


def select_box(arguments: argparse.Namespace, home: Home) -> tuple[Box, argparse.Namespace]:
    """Return the box that was asked for, and the arguments with git source and history of its plan.

    What was named on the command line goes before the plan.

    Raises TidemarkError for a box, an engine, a suite, a profile or a step that does not exist.
    """
    plan = load_plan(plan_in_use(arguments.plan))
    inputs = Inputs(
        engine=arguments.engine,
        good=arguments.good,
        bad=arguments.bad,
        suite=arguments.suite,
        step=arguments.step,
        profile=arguments.profile,
    )
    box = box_for(plan, arguments.box or "", inputs)
    planned = {
        "git": arguments.git or plan.engines[Engine(arguments.engine)].git,
        "history": arguments.history or str(plan_history(plan, home)),
    }
    return box, argparse.Namespace(**{**vars(arguments), **planned})


# --- subcommands


def report(arguments: argparse.Namespace) -> int:
    """Print the report of one bisect; return the exit code of its verdict."""
    with open_reader(existing_history(arguments.history)) as store:
        state = load_state(store, read_log(store, _chosen(store, arguments.uid)))
    if arguments.format == "json":
        print(json_text(export(state), indent=1))
    elif arguments.format == "html":
        from runners.reporting.pages import bisect_alone  # loaded only for this format

        print(bisect_alone(state), end="")
    else:
        print((markdown if arguments.format == "markdown" else text)(state), end="")
    return code(state)


def replay_(arguments: argparse.Namespace) -> int:
    """Print every step of the search again, from a file or the history."""
    if Path(arguments.log).is_file():
        log = read_file(Path(arguments.log))
    else:
        with open_reader(existing_history(arguments.history)) as store:
            log = read_log(store, _chosen(store, arguments.log))
    standard_output().lines(replay(log))
    return 0


def status(arguments: argparse.Namespace) -> int:
    """Print all bisects, the latest first."""
    with open_reader(existing_history(arguments.history)) as store:
        with store.database.reading() as connection:
            known = list(bisects.load_all(connection))
        states = [BisectState(read_log(store, bisect)) for bisect in known]
    if arguments.format == "json":
        print(json_text([_status(state) for state in states], indent=1))
        return 0
    if not states:
        print("there is no bisect yet; see ./tidemark bisect --help")
        return 0
    screen = standard_output()
    for state in states:
        for line in status_lines(state):
            screen.line(line)
    return 0


def status_lines(state: BisectState) -> Iterator[str]:
    """Yield the lines that describe the progress of one bisect."""
    bisect = state.log.bisect
    yield f"{bisect.uid}  {state.log.question.summary}"
    began = f"begun on {bisect.began_at:%Y-%m-%d %H:%M} UTC on {bisect.machine.hostname}"
    excluded = sum(1 for _ in state.excluded())
    yield f"{began}; {state.rounds} rounds of {len(state.counts)} positions, {excluded} not measurable"
    yield headline(state) if state.verdict else f"not finished: {_likeliest(state)}"
    yield ""


def _likeliest(state: BisectState) -> str:
    if not state.counts:
        return "nothing has been measured yet"
    (place, share), *_ = state.likeliest(1, 0.0)
    return f"most likely {state.point(place).short}, {100 * share:.0f} %; the same command resumes it"


def _status(state: BisectState) -> dict[str, object]:
    verdict = state.verdict
    return {
        "uid": state.log.bisect.uid,
        "question": dict(state.log.bisect.question),
        "machine": state.log.bisect.machine.hostname,
        "began_at": state.log.bisect.began_at.isoformat(),
        "rounds": state.rounds,
        "verdict": None if verdict is None else verdict.kind,
        "blamed": [point.version for point in state.blamed()],
    }


def _chosen(store: Reader, uid: str | None) -> Bisect:
    """Raises HistoryError when there is none."""
    with store.database.reading() as connection:
        if uid is not None:
            return bisects.load(connection, uid)
        latest = next(bisects.load_all(connection), None)
    if latest is None:
        raise HistoryError("there is no bisect yet", where=store.where, hint="see ./tidemark bisect --help")
    return latest
