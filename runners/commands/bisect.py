"""`./tidemark bisect`: from a regression to the commit; and its words status, replay and report."""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path

from build.errors import TidemarkError
from build.home import Home, locate
from build.version import Engine, parse_version
from history.comparison.compare import THRESHOLD
from history.errors import HistoryError
from history.open import existing_history, open_store
from history.rendering.plain_table import standard_output
from history.store import bisects
from history.store.bisects import Bisect
from history.store.writer import Store
from runners.bisect.domain.question import Question, QuestionError, metric_named, require_direction
from runners.bisect.report.render import markdown, text
from runners.bisect.report.replay import read_file, replay
from runners.bisect.report.state import BisectState, account_of, export
from runners.bisect.report.wording import headline
from runners.bisect.run.bisect import Bisecting, BisectRequest, edges_of
from runners.bisect.run.candidates import git_of, shown_address
from runners.bisect.run.event_log import read_log
from runners.bisect.telling import tell_change
from runners.commands.run import history_of
from runners.console import add_to_job_summary, progress
from runners.nightly.inputs import Inputs, box_for
from runners.nightly.plan import Box, load_plan
from runners.nightly.report import plan_history

ANSWERS = ("culprit", "range", "none", "two-steps", "slope")
"""Verdicts that answer the question."""

UNDECIDED = 1
TROUBLE = 2


def main(arguments: argparse.Namespace) -> int:
    """Carry out the command or one of its words; the exit code is as `--help` says."""
    words = {"status": status, "replay": replay_, "report": report}
    return words[arguments.what](arguments) if arguments.what else search(arguments)


def search(arguments: argparse.Namespace) -> int:
    """Bisect, and print the report; with --check only say where it would run."""
    home = locate()
    _require(arguments)
    box = planned(arguments, home) if arguments.box is not None or arguments.check else None
    asked = asked_of(arguments)
    if box is not None and arguments.check:
        print(box.label)
        return 0
    history = history_of(arguments.history, home)
    with open_store(history) as store, progress() as shown:
        try:
            log = Bisecting(asked, home, store, shown, edges_of(home, shown)).run()
        except TidemarkError:
            shown.note("what was measured is kept: the same command goes on from here")
            raise
        if tell_change(store, log, THRESHOLD / 100):
            shown.note(f"the issue of change {log.bisect.change} gets the result with the next delivery")
        account = account_of(store, log)
    print(text(account), end="")
    add_to_job_summary(markdown(account))
    chosen = f" --history {arguments.history}" if arguments.history else ""
    print(f"\nfor an issue: ./tidemark bisect report {log.bisect.uid} --format markdown{chosen}")
    return code(account)


def code(account: BisectState) -> int:
    """0 for an answer, 1 for none yet, 2 when bad differs the other way."""
    verdict = account.verdict
    if verdict is None or verdict.kind == "undecided":
        return UNDECIDED
    return 0 if verdict.kind in ANSWERS else TROUBLE


def planned(arguments: argparse.Namespace, home: Home) -> Box:
    """The box that was asked for; git source and history are those of its plan, unless others are named.

    Raises TidemarkError for what neither the plan nor a suite of this checkout knows.
    """
    plan = load_plan(Path(arguments.plan))
    inputs = Inputs(
        engine=arguments.engine,
        good=arguments.good,
        bad=arguments.bad,
        suite=arguments.suite,
        step=arguments.step,
        profile=arguments.profile,
    )
    box = box_for(plan, arguments.box or "", inputs)
    arguments.git = arguments.git or plan.engines[Engine(arguments.engine)].git
    arguments.history = arguments.history or str(plan_history(plan, home))
    return box


def _require(arguments: argparse.Namespace) -> None:
    missing = [f"--{name}" for name in ("good", "bad", "step") if getattr(arguments, name) is None]
    if missing:
        raise QuestionError(
            f"{', '.join(missing)} is missing",
            where="bisect",
            hint="./tidemark bisect --help has an overview",
        )


def asked_of(arguments: argparse.Namespace) -> BisectRequest:
    """Check the command line. Raises QuestionError, VersionError or SuiteError."""
    _require(arguments)
    engine = Engine(arguments.engine)
    for ref in (arguments.good, arguments.bad):
        parse_version(f"{engine}@{ref}")
    metric = metric_named(arguments.metric)
    require_direction(metric, arguments.direction)
    address = git_of(engine, arguments.good, arguments.bad, arguments.git)
    question = Question(
        engine=engine,
        good=arguments.good,
        bad=arguments.bad,
        suite=arguments.suite,
        profile=arguments.profile,
        step=arguments.step,
        metric=metric.name,
        direction=arguments.direction,
        confidence=arguments.confidence / 100,
        git=shown_address(address),
        seconds=arguments.seconds,
    )
    return BisectRequest(
        question,
        address,
        budget_seconds=math.inf if arguments.budget is None else arguments.budget * 60,
        build_ahead=arguments.build_ahead,
        again=arguments.again,
        perf=arguments.perf,
        keep_disturbed=arguments.keep_disturbed,
        change=arguments.change,
    )


# --- words


def report(arguments: argparse.Namespace) -> int:
    """Print the report of one bisect; the exit code is that of its verdict."""
    with open_store(existing_history(arguments.history)) as store:
        account = account_of(store, read_log(store, _chosen(store, arguments.uid)))
    if arguments.format == "json":
        print(json.dumps(export(account), indent=1))
    else:
        print((markdown if arguments.format == "markdown" else text)(account), end="")
    return code(account)


def replay_(arguments: argparse.Namespace) -> int:
    """Print the reasoning of a log, from a file or the history."""
    if Path(arguments.log).is_file():
        log = read_file(Path(arguments.log))
    else:
        with open_store(existing_history(arguments.history)) as store:
            log = read_log(store, _chosen(store, arguments.log))
    for line in replay(log):
        print(line)
    return 0


def status(arguments: argparse.Namespace) -> int:
    """Print all bisects, the latest first."""
    with open_store(existing_history(arguments.history)) as store:
        with store.database.reading() as connection:
            found = list(bisects.load_all(connection))
        told = [BisectState(read_log(store, each)) for each in found]
    if arguments.format == "json":
        print(json.dumps([_status(each) for each in told], indent=1))
        return 0
    if not told:
        print("no bisect has begun: ./tidemark bisect --help")
        return 0
    screen = standard_output()
    for each in told:
        for line in status_lines(each):
            screen.line(line)
    return 0


def status_lines(account: BisectState) -> Iterator[str]:
    """What is known of one bisect, in a few lines."""
    bisect = account.log.bisect
    yield f"{bisect.uid}  {account.log.question.told}"
    began = f"begun {bisect.began_at:%Y-%m-%d %H:%M} UTC on {bisect.machine.hostname}"
    excluded = sum(1 for _ in account.excluded())
    yield f"{began}; {account.rounds} rounds of {len(account.counts)} positions, {excluded} not measurable"
    yield headline(account) if account.verdict else f"not finished: {_likeliest(account)}"
    yield ""


def _likeliest(account: BisectState) -> str:
    if not account.counts:
        return "nothing is measured yet"
    (place, share), *_ = account.likeliest(1, 0.0)
    return f"likeliest {account.point(place).short}, {share:.0%}; the same command goes on"


def _status(account: BisectState) -> dict[str, object]:
    verdict = account.verdict
    return {
        "uid": account.log.bisect.uid,
        "question": dict(account.log.bisect.question),
        "machine": account.log.bisect.machine.hostname,
        "began_at": account.log.bisect.began_at.isoformat(),
        "rounds": account.rounds,
        "verdict": None if verdict is None else verdict.kind,
        "blamed": [each.version for each in account.blamed()],
    }


def _chosen(store: Store, uid: str | None) -> Bisect:
    """Raises HistoryError when there is none."""
    with store.database.reading() as connection:
        if uid is not None:
            return bisects.load(connection, uid)
        latest = next(bisects.load_all(connection), None)
    if latest is None:
        raise HistoryError("no bisect has begun", where=store.where, hint="./tidemark bisect --help")
    return latest
