"""The arguments of `./tidemark bisect`."""

import argparse
from pathlib import Path

from build.version import Engine
from runners.values import count, duration, minutes
from suites.metrics import PRIMARY

EXIT_CODES = (
    "exit codes: 0 an answer was reached: a commit, a range, two steps, a slope, or that good and bad do not "
    "differ; 1 undecided: the budget or the rounds are used up, and the same command goes on; 2 trouble"
)


def add_arguments(it: argparse.ArgumentParser, plan: Path) -> None:
    """The question, and the words that look at bisects; `plan` is that of nights."""
    it.description = (
        "Find the commit between good and bad that changed a metric, by interleaved rounds on this machine. "
        "Interrupted at any point, the same command goes on."
    )
    it.epilog = EXIT_CODES
    _question(it)
    _how(it)
    _planned(it, plan)
    it.add_argument("--history", metavar="PATH", help="history to store into")
    words = it.add_subparsers(dest="what", metavar="WHAT", required=False)
    status = words.add_parser("status", help="all bisects, and how far they came")
    status.add_argument("--format", choices=["terminal", "json"], default="terminal")
    replay = words.add_parser("replay", help="every step of reasoning again, from what was measured")
    replay.add_argument("log", metavar="FILE|UID", help="a file of report --format json, or a bisect's uid")
    report = words.add_parser("report", help="verdict, probabilities, what was measured, how to reproduce")
    report.add_argument("uid", nargs="?", metavar="UID", help="default: the latest bisect")
    formats = ["text", "markdown", "json"]
    told = "text (default), markdown (for an issue or a mailing list), json (everything, for replay)"
    report.add_argument("--format", choices=formats, default="text", help=told)
    for each in (status, replay, report):
        each.add_argument("--history", metavar="PATH", help="history to read")


def _question(it: argparse.ArgumentParser) -> None:
    asked = it.add_argument_group("the question")
    add = asked.add_argument
    ref = "release, tag, branch or commit"
    add("--engine", choices=list(Engine), default=Engine.POSTGRES, help="default: %(default)s")
    add("--good", metavar="REF", help=f"{ref} before the change; required")
    add("--bad", metavar="REF", help=f"{ref} with the change; required")
    source = "URL or path of the git repository; without one, two releases span a list of known releases"
    add("--git", metavar="SOURCE", help=source)
    add("--suite", default="write-heavy", help="name or folder of the suite (default: %(default)s)")
    add("--step", metavar="NAME", help="the step that changed; required")
    add("--profile", default="smoke", help="how long and large: smoke (default) or short")
    add("--seconds", type=duration, metavar="S", help="of each version in a round, instead of the profile's")
    examples = f"such as {PRIMARY} (default), latency_p99_ms, cpu-per-op"
    metric = f"what changed: any metric that a run records, {examples}"
    add("--metric", default=PRIMARY, metavar="NAME", help=metric)
    add("--direction", choices=["worse", "better", "either"], default="worse", help="default: %(default)s")
    add("--confidence", type=confidence, default=95.0, metavar="PERCENT", help="default: %(default)g")


def _how(it: argparse.ArgumentParser) -> None:
    how = it.add_argument_group("how to go about it")
    add = how.add_argument
    add("--budget", type=minutes, metavar="MINUTES", help="begin no round after so many minutes of this call")
    ahead = "compile so many likely commits before anything is measured"
    add("--build-ahead", type=count, default=0, metavar="N", help=ahead)
    disturbed = "take rounds that others disturbed instead of running them again"
    add("--keep-disturbed", action="store_true", help=disturbed)
    add("--perf", action="store_true", help="in the end profile the culprit and what comes before it")
    add("--change", metavar="FINGERPRINT", help="the change whose issue is told; else the one of this range")
    add("--again", action="store_true", help="begin anew, whatever is known of the same question")


def _planned(it: argparse.ArgumentParser, plan: Path) -> None:
    how = it.add_argument_group("for a workflow")
    add = how.add_argument
    box = "a box of the plan: git source and history are the plan's, and the suite is one of this checkout"
    add("--box", metavar="NAME", help=box)
    add("--plan", default=str(plan), metavar="FILE", help="of nights; default: runners/nightly.toml")
    check = "with --box: refuse what makes no sense, print the label of the box's runner, and end"
    add("--check", action="store_true", help=check)


def confidence(text: str) -> float:
    """A percentage from 50 to below 100."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 50 < number < 100:
        raise argparse.ArgumentTypeError("must be a percentage above 50 and below 100")
    return number
