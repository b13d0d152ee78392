"""The command line: what can be asked, and the exit code of each answer.

Exit codes follow diff(1): 0 clean, 1 regression, 2 trouble; 130 when a person interrupted.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from build.errors import TidemarkError
from build.home import ROOT
from build.version import Engine
from runners.alerting.tokens import withheld
from runners.values import count, duration, minutes, version

TROUBLE = 2
INTERRUPTED = 130
PLAN = ROOT / "runners/nightly.toml"

UNREAD = 141
"""As of a program that SIGPIPE ended: 128 and its number."""

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run_words(words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Who read has gone, as in `| head`. Python would complain once more when it closes what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD


def _run_words(words: list[str]) -> int:
    if words[:1] == ["compare"]:
        # compare.py has its own arguments, and is the same program under both names.
        compare: Callable[[Sequence[str]], int] = import_module("compare").main
        return compare(words[1:])
    try:
        arguments = parser().parse_args(words)
        command: Command = import_module(f"runners.commands.{arguments.command}").main
        with withheld():
            return command(arguments)
    except TidemarkError as error:
        print(f"tidemark: {error}", file=sys.stderr)
        return TROUBLE
    except KeyboardInterrupt:
        print("tidemark: interrupted; servers are stopped, and every finished step is kept", file=sys.stderr)
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """All commands with their arguments."""
    top = argparse.ArgumentParser(
        prog="tidemark",
        description="Compile Postgres versions from source, measure them, and see what regressed.",
        epilog="A version is engine@ref: postgres@18.6, postgres@REL_18_STABLE, postgres@git:5bf748b86b. "
        "Exit codes: 0 clean, 1 regression, 2 trouble.",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("setup", help="install the system and Python packages that Tidemark needs")
    commands.add_parser("demo", help="two Postgres releases from source to a verdict, in minutes")
    commands.add_parser("test", help="run the tests; further arguments go to pytest", add_help=False)
    _check(commands.add_parser("check", help="say whether this machine is fit to measure on, and mend it"))
    _build(commands.add_parser("build", help="compile a version, or find it in the cache; print its prefix"))
    _run(commands.add_parser("run", help="measure versions with a suite"))
    _calibrate(commands.add_parser("calibrate", help="how much do identical builds differ on this machine?"))
    _nightly(commands.add_parser("nightly", help="measure what is new, judge it, tell people; once a night"))
    _status(commands.add_parser("status", help="what the nightly service is doing, and whether it is well"))
    _runner(commands.add_parser("runner", help="set up this machine as a box of the nightly service"))
    compare = commands.add_parser("compare", help="judge a contender against a base", add_help=False)
    compare.description = "The same program as ./compare.py."
    _bisect(commands.add_parser("bisect", help="from a regression to the commit that brought it"))
    _profile(commands.add_parser("profile", help="where the CPU time went: functions and flame graphs"))
    _history(commands.add_parser("history", help="what the history holds, what changed, and copies of it"))
    _bench(commands.add_parser("bench", help="check one of our own figures against its target"))
    return top


def _build(it: argparse.ArgumentParser) -> None:
    what = "engine@ref; or: export FOLDER VERSION..., import FILE..."
    patch = "apply this patch before compiling; can be repeated"
    git = "URL or path of a git repository to take the version from"
    it.add_argument("what", nargs="+", metavar="VERSION", help=what)
    it.add_argument("--patch", action="append", default=[], metavar="FILE", help=patch)
    it.add_argument("--git", metavar="SOURCE", help=git)


def _check(it: argparse.ArgumentParser) -> None:
    it.epilog = "exit codes: 0 fit; 1 unfit; 2 trouble, or something could not be set"
    one = it.add_mutually_exclusive_group()
    one.add_argument("--fix", action="store_true", help="set what can be set, and keep what was there before")
    one.add_argument("--restore", action="store_true", help="put back what was there before the first --fix")
    it.add_argument("--format", choices=["terminal", "json"], default="terminal")


def _run(it: argparse.ArgumentParser) -> None:
    suite = "name of a suite, or the path of a folder with a suite.toml"
    step = "only this step; can be repeated"
    seconds = "how long each version works in a round, instead of the profile's"
    rounds = "rounds of each step, instead of the profile's; with --until-decided the least"
    decided = "give steps without a verdict more rounds, up to the profile's most and the budget"
    budget = "with --until-decided: begin no round after so many minutes, instead of the profile's"
    mode = "rounds: each begins from the same data; long: servers stay up, steps inherit their data"
    perf = "profile each version by perf at the end of each step, in slices that do not count for QPS"
    during = "profile the measured slices themselves, which perf slows down a little"
    disturbed = "take rounds that others disturbed, with a warning, instead of running them again"
    resume = "go on with the last session of a day at most that asked for the same and was interrupted"
    patch = "apply FILE to the source of engine@ref#NAME before compiling; can be repeated"
    durability = "what a commit promises: relaxed (default) may lose the last second in a crash"
    names = " or ".join(f"{engine}.NAME" for engine in Engine)
    setting = f"override a server setting; {names} for one engine; can be repeated"
    history = "history to store into"
    it.add_argument("versions", nargs="+", type=version, metavar="VERSION", help="engine@ref; the base first")
    it.add_argument("--suite", default="write-heavy", help=suite)
    it.add_argument("--profile", default="smoke", help="smoke (default), short or long")
    it.add_argument("--step", action="append", default=[], metavar="NAME", help=step)
    it.add_argument("--repetitions", type=count, metavar="N", help=rounds)
    it.add_argument("--until-decided", action="store_true", help=decided)
    it.add_argument("--budget", type=minutes, metavar="MINUTES", help=budget)
    it.add_argument("--keep-disturbed", action="store_true", help=disturbed)
    it.add_argument("--mode", choices=["rounds", "long"], help=mode)
    it.add_argument("--resume", action="store_true", help=resume)
    sampled = it.add_mutually_exclusive_group()
    sampled.add_argument("--perf", action="store_true", help=perf)
    sampled.add_argument("--perf-during", action="store_true", help=during)
    it.add_argument("--seconds", type=duration, metavar="S", help=seconds)
    it.add_argument("--durability", choices=["relaxed", "full"], default="relaxed", help=durability)
    it.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=setting)
    it.add_argument("--patch", action="append", default=[], metavar="NAME=FILE", help=patch)
    it.add_argument("--history", metavar="PATH", help=history)


def _calibrate(it: argparse.ArgumentParser) -> None:
    suite = "name of a suite, or the path of a folder with a suite.toml"
    it.description = "Measure a version against itself, and store how much each step scatters."
    it.epilog = "exit codes: 0 every step is known; 1 the two, which are one, were told apart; 2 trouble"
    it.add_argument("version", type=version, metavar="VERSION", help="engine@ref, measured against itself")
    it.add_argument("--suite", default="write-heavy", help=suite)
    it.add_argument("--profile", default="smoke", help="smoke (default), short or long")
    it.add_argument(
        "--step", action="append", default=[], metavar="NAME", help="only this step; can be repeated"
    )
    it.add_argument("--rounds", type=count, default=10, metavar="N", help="rounds of each step (default: 10)")
    it.add_argument("--history", metavar="PATH", help="history to store into")


def _nightly(it: argparse.ArgumentParser) -> None:
    it.epilog = "exit codes: 0 done, or nothing is new; 1 a regression is new or came back; 2 trouble"
    it.add_argument("--plan", default=str(PLAN), metavar="FILE", help="default: runners/nightly.toml")
    box = "which box of the plan this machine is; default: $TIDEMARK_BOX, else by host name"
    it.add_argument("--box", metavar="NAME", help=box)
    part = it.add_mutually_exclusive_group()
    part.add_argument("--measure", action="store_true", help="only measure: another job reports")
    boxes = "print the boxes of the plan as JSON, for a workflow's matrix; --box leaves one"
    part.add_argument("--boxes", action="store_true", help=boxes)
    part.add_argument("--report", action="store_true", help="only judge, tell people, and copy the history")


def _status(it: argparse.ArgumentParser) -> None:
    it.epilog = "exit codes: 0 well; 1 a night hangs, died, or was missed; 2 trouble"
    it.add_argument("--format", choices=["terminal", "json"], default="terminal")


def _runner(it: argparse.ArgumentParser) -> None:
    from runners.installing.arguments import add_words  # only here: compare goes through this module

    add_words(it, str(PLAN))


def _profile(it: argparse.ArgumentParser) -> None:
    what = it.add_subparsers(dest="what", required=True, metavar="WHAT")
    show = what.add_parser("show", help="the functions of one version on a step, and its flame graph")
    show.add_argument("version", type=version, metavar="VERSION", help="engine@ref that was run with --perf")
    diff = what.add_parser("diff", help="the functions that gained or lost, and three flame graphs")
    diff.add_argument("base", type=version, metavar="BASE", help="engine@ref that was run with --perf")
    diff.add_argument("contender", type=version, metavar="CONTENDER", help="engine@ref of the same session")
    for each in (show, diff):
        each.add_argument("--step", required=True, metavar="NAME", help="the step that was profiled")
        each.add_argument("--suite", help="only sessions of this suite")
        each.add_argument("--profile", help="only sessions of this profile")
        each.add_argument("--session", metavar="UID", help="this session instead of the latest")
        each.add_argument("--role", metavar="ROLE", help="only this role, such as 'client backend'")
        each.add_argument("--limit", type=count, default=15, metavar="N", help="rows (default: %(default)s)")
        each.add_argument("--format", choices=["terminal", "json"], default="terminal")
        each.add_argument("--output", metavar="FOLDER", help="for the SVGs, instead of Tidemark's own")
        each.add_argument("--history", metavar="PATH", help="history to read")


def _bisect(it: argparse.ArgumentParser) -> None:
    from runners.bisect.arguments import add_arguments  # as below

    add_arguments(it, PLAN)


def _history(it: argparse.ArgumentParser) -> None:
    from runners.history.arguments import (
        add_words,  # only here: compare goes through this module, and is quick
    )

    add_words(it)


def _bench(it: argparse.ArgumentParser) -> None:
    it.add_argument("name", help="a program in benchmarks/, such as overhead")
