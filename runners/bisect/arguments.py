"""The arguments of `./tidemark bisect`."""

import argparse
import math

from build.sources.repository import GIT_HELP
from build.version import Engine
from runners.occupancy.arguments import add_wait
from runners.plan_argument import add_plan
from runners.values import count, duration, minutes
from runners.variant_arguments import add_variants
from suites.metrics import PRIMARY

EXIT_CODES = (
    "exit codes: 0 there is an answer: a commit, a range, two or more steps, a slope, that levels vary from "
    "commit to commit, or that good and bad do not differ; 1 undecided: the budget or the rounds are used "
    "up, no further round would help, ratios move while the search goes on, or with --all a part of the "
    "range is not searched yet, and the last line has the command that goes on; 2 trouble"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the question and the subcommands."""
    parser.description = (
        "Find the commit between good and bad that changed a metric, by interleaved rounds on this machine. "
        "After an interruption the same command resumes the search. Without a repository that was named, the "
        "known releases between two releases are searched."
    )
    parser.epilog = EXIT_CODES
    _question(parser)
    _how(parser)
    _planned(parser)
    parser.add_argument("--history", metavar="PATH", help="history to write to")
    subcommands = parser.add_subparsers(dest="what", metavar="WHAT", required=False)
    status = subcommands.add_parser("status", help="list all bisects with their progress")
    status.add_argument("--format", choices=["terminal", "json"], default="terminal")
    replay = subcommands.add_parser("replay", help="show every step of the search again, from its log")
    replay.add_argument("log", metavar="FILE|UID", help="a file of report --format json, or a bisect's uid")
    report = subcommands.add_parser(
        "report", help="show verdict, probabilities, measurements, how to reproduce"
    )
    report.add_argument("uid", nargs="?", metavar="UID", help="default: the latest bisect")
    formats = ["text", "markdown", "json", "html"]
    form = "text (default), markdown (for an issue or a mailing list), json (for replay), html (one page)"
    report.add_argument("--format", choices=formats, default="text", help=form)
    for subcommand in (status, replay, report):
        subcommand.add_argument("--history", metavar="PATH", help="history to read from")


def _question(parser: argparse.ArgumentParser) -> None:
    asked = parser.add_argument_group("the question")
    add = asked.add_argument
    ref = "release, tag, branch or commit"
    add("--engine", choices=list(Engine), default=Engine.POSTGRES, help="default: %(default)s")
    add("--good", metavar="REF", help=f"{ref} before the change; required")
    add("--bad", metavar="REF", help=f"{ref} with the change; required")
    add("--git", metavar="SOURCE", help=GIT_HELP)
    server = (
        "search the commits of an extension on this version, such as postgres@18.6: good and bad are refs "
        "of its repository"
    )
    add("--server", metavar="VERSION", help=server)
    extension = "with --server: the extension whose commits are searched"
    add("--extension", action="append", default=[], metavar="NAME=REPO", help=extension)
    add("--suite", default="write-heavy", help="name or folder of the suite (default: %(default)s)")
    add("--step", metavar="NAME", help="the step that changed; required")
    add("--profile", default="smoke", help="how long and large: smoke (default) or short")
    add(
        "--seconds",
        type=duration,
        metavar="S",
        help="seconds per version in a round, instead of the profile's",
    )
    examples = f"such as {PRIMARY} (default), latency_p99_ms, cpu-per-op"
    metric = f"what changed: any metric that a run records, {examples}"
    add("--metric", default=PRIMARY, metavar="NAME", help=metric)
    add("--direction", choices=["worse", "better", "either"], default="worse", help="default: %(default)s")
    add("--confidence", type=confidence, default=95.0, metavar="PERCENT", help="default: %(default)g")
    smallest = "the smallest change that is searched for; default: the metric's, such as 0.5 for counts"
    add("--threshold", type=threshold, metavar="PERCENT", help=smallest)
    add_variants(parser, others=("--extension",))


def _how(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("options of the search")
    add = how.add_argument
    add_wait(how)
    add("--budget", type=minutes, metavar="MINUTES", help="begin no further round after this many minutes")
    ahead = "compile the N likeliest commits before anything is measured"
    add("--build-ahead", type=count, default=0, metavar="N", help=ahead)
    disturbed = "keep rounds that were disturbed by other processes instead of measuring them again"
    add("--keep-disturbed", action="store_true", help=disturbed)
    exact = "do not count instructions first, which one client executes at any level; see docs/bisect.md"
    add("--no-exact", action="store_true", help=exact)
    rest = (
        "after the first answer, search the rest of the range until the commits that were found make up the "
        "whole difference; default: where the metric is counted, not where it is timed"
    )
    add("--all", action=argparse.BooleanOptionalAction, default=None, help=rest)
    add("--perf", action="store_true", help="profile the culprit and its parent at the end")
    add(
        "--change",
        metavar="FINGERPRINT",
        help="the change whose issue gets the result; default: the open change of this range",
    )
    add("--again", action="store_true", help="begin a new search even if one of the same question exists")


def _planned(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("for workflows")
    add = how.add_argument
    box = (
        "the box of the plan to run on; git source and history are then the plan's, and a branch or tag of "
        "that source has to lead to good and bad"
    )
    add("--box", metavar="NAME", help=box)
    add_plan(how, "plan of the nights")
    check = "with --box: only check the arguments and print the label of the box's runner"
    add("--check", action="store_true", help=check)


def confidence(text: str) -> float:
    """Parse a percentage above 50 and below 100 for argparse."""
    return _percentage(text, 50, 100)


def threshold(text: str) -> float:
    """Parse a percentage above 0 and below 50 for argparse."""
    return _percentage(text, 0, 50)


def _percentage(text: str, above: int, below: int) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not above < number < below:
        raise argparse.ArgumentTypeError(f"must be a percentage above {above} and below {below}")
    return number
