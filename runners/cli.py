"""The command line: its commands, their arguments and exit codes.

Exit codes follow diff(1): 0 clean, 1 regression, 2 trouble or not known; 130 interrupted.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from build.environment import kept_from_process
from build.errors import TidemarkError, machine_refusal
from build.sources.repository import GIT_HELP
from history.arguments import Parser
from history.escaping.streams import escaped_output
from runners.exit_codes import INTERRUPTED, TROUBLE
from runners.nightly.past.arguments import add_past
from runners.occupancy.arguments import add_wait
from runners.own_version import own_version
from runners.own_workload.arguments import USUAL_SUITE, add_own_workload
from runners.plan_argument import add_plan
from runners.retention.arguments import add_data
from runners.standard_streams import OutputError, discard_output
from runners.values import LAYOUTS_HELP, count, duration, levels, minutes, revision, rounds, version
from runners.variant_arguments import add_variants, add_with, require_no_former

UNREAD = 141
"""The exit code of a program that SIGPIPE ended: 128 and its number."""

ELSEWHERE = {
    "try": "runners.trying.entry",
    "suite": "runners.own_workload.command",
    "data": "runners.retention.data_command",
    "service": "runners.service.command",
}
"""The modules of commands with a folder of their own."""

GONE = {
    "runner init": "a plan copied from runners/examples/plan.toml, then ./tidemark check --plan FILE",
    "runner install": "./tidemark service install",
    "runner uninstall": "systemctl disable --now tidemark-nightly.timer (docs/hardware.md)",
    "runner show": "systemctl status 'tidemark-*'",
    "runner watch": "./tidemark status, and boxes.NAME.ping in the plan (docs/nightly.md)",
    "runner hook": "nothing: remove the lines of ACTIONS_RUNNER_HOOK from .env of GitHub's runner",
    "runner pull-request": "the label tidemark-try (docs/try.md)",
    "runner": "./tidemark service",
    "update": "./tidemark service update",
}
"""What takes the place of commands that went with the last release. It goes with the next one."""

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    return guarded(_run_words, list(sys.argv[1:] if argv is None else argv))


def guarded(run: Callable[[list[str]], int], words: list[str]) -> int:
    """Run a command line with `run`; return its exit code, also where the output cannot be written."""
    try:
        try:
            with escaped_output():
                return run(words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader is gone, as in `| head`; without this Python reports it again when it closes stdout.
        discard_output()
        return UNREAD
    except OutputError as error:
        discard_output()
        print(f"tidemark: {error}", file=sys.stderr)
        return TROUBLE


def _run_words(words: list[str]) -> int:
    try:
        if words[:1] == ["compare"]:
            # compare.py parses its own arguments; it is the same program under both names.
            compare: Callable[[Sequence[str]], int] = import_module("compare").main
            return _carried_out(compare, words[1:])
        require_there(words)
        arguments = parser().parse_args(words)
        arguments.words = words
        module = ELSEWHERE.get(arguments.command, f"runners.commands.{arguments.command}")
        command: Command = import_module(module).main
        with kept_from_process():
            return _carried_out(command, arguments)
    except OutputError:
        raise
    except TidemarkError as error:
        print(f"tidemark: {error}", file=sys.stderr)
        _say_notes(error)
        return TROUBLE
    except KeyboardInterrupt as error:
        _say_notes(error)  # that it was interrupted, runners.interrupts has said at once
        return INTERRUPTED


def require_there(words: Sequence[str]) -> None:
    """Raise TidemarkError for a command that is gone, with the one that takes its place."""
    for name, instead in GONE.items():
        if list(words[: len(name.split())]) == name.split():
            raise TidemarkError(f"the command '{name}' is gone", hint=f"use {instead}")


def _say_notes(error: BaseException) -> None:
    """Say what was stored, and how it is continued, as whoever was ended by the error has noted it."""
    for note in getattr(error, "__notes__", ()):
        print(f"tidemark: {note}", file=sys.stderr)


class _HelpFormatter(argparse.HelpFormatter):
    """Aligns subcommands with their help as Python 3.13 does; older ones break the line of the longest."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        for indented in self._iter_indented_subactions(action):
            length = len(self._format_action_invocation(indented)) + self._current_indent
            self._action_max_length = max(self._action_max_length, length)


class _Parser(Parser):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"formatter_class": _HelpFormatter, **options})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, others = super().parse_known_args(args, namespace)
        require_no_former(self, parsed)
        return parsed, others


class _ShowVersion(argparse.Action):
    """Asks git only when it is asked, unlike argparse's own action."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"tidemark {own_version()}")
        parser.exit()


def _carried_out(command: Callable[[Any], int], arguments: Any) -> int:
    """Run a command; what the kernel refuses, such as a file where a folder is expected, is trouble."""
    try:
        return command(arguments)
    except BrokenPipeError:
        raise
    except (OSError, MemoryError, RuntimeError, ImportError, UnicodeEncodeError) as error:
        refusal = machine_refusal(error)
        if refusal is None:
            raise
        for note in getattr(error, "__notes__", ()):
            refusal.add_note(note)
        raise refusal from error


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = _Parser(
        prog="tidemark",
        description="Compile versions of Postgres, MySQL and MariaDB from source, measure them, report "
        "regressions.",
        epilog="A version is engine@ref: postgres@18.6, postgres@REL_18_STABLE, postgres@git:5bf748b86b. "
        "Exit codes: 0 clean, 1 regression, 2 trouble or not known.",
    )
    top.add_argument("--version", action=_ShowVersion, nargs=0, help="show the commit of this checkout")
    top.set_defaults(words=())  # the whole command line, where there is one
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("setup", help="install the system and Python packages that Tidemark needs")
    commands.add_parser("demo", help="compile and compare two Postgres releases in minutes")
    test = commands.add_parser("test", help="run the quick tests, or all with --deep")
    test.leaves_others = True
    _check(commands.add_parser("check", help="check that this machine is fit for benchmarking"))
    _build(commands.add_parser("build", help="compile versions unless they are cached; print their prefixes"))
    _run(commands.add_parser("run", help="measure versions with a suite"))
    _calibrate(
        commands.add_parser("calibrate", help="measure how much identical builds differ on this machine")
    )
    _nightly(
        commands.add_parser("nightly", help="measure what is new, judge it, update issues; once a night")
    )
    _status(commands.add_parser("status", help="show what the nightly service is doing"))
    _service(commands.add_parser("service", help="set up, pause and update a box of the nightly service"))
    compare = commands.add_parser(
        "compare", help="compare versions with a base, and judge the differences", add_help=False
    )
    compare.description = "The same program as ./compare.py."
    _bisect(commands.add_parser("bisect", help="find the commit that caused a regression"))
    _try(commands.add_parser("try", help="compare a branch or a patch with its merge base, for a reviewer"))
    _profile(commands.add_parser("profile", help="show CPU profiles: functions and flame graphs"))
    _report(commands.add_parser("report", help="write the report site: all results as pages with charts"))
    _history(commands.add_parser("history", help="show, judge, export, merge and back up the history"))
    _suite(commands.add_parser("suite", help="list the suites, or keep one made from own files by a name"))
    add_data(commands.add_parser("data", help="list or delete the kept copies of loaded data"))
    _completion(
        commands.add_parser("completion", help="print what a shell needs to complete commands and options")
    )
    _bench(commands.add_parser("bench", help="run one of Tidemark's own benchmarks against its targets"))
    return top


def _build(command: argparse.ArgumentParser) -> None:
    what = "engine@ref; or: export FOLDER VERSION..., import FILE..., list, prune [20GB] [30d] [NAME...]"
    command.add_argument("what", nargs="+", metavar="VERSION", help=what)
    add_with(command, "every version is compiled with, or engine@ref#VARIANT alone", ("build", "patch"))
    command.add_argument("--git", metavar="SOURCE", help=GIT_HELP)


def _check(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "exit codes: 0 fit, and nights can begin; 1 unfit, or something has to be corrected before; 2 "
        "trouble, or a setting could not be changed"
    )
    group = command.add_mutually_exclusive_group()
    group.add_argument(
        "--fix",
        action="store_true",
        help="change the settings that can be changed, and save the previous ones",
    )
    group.add_argument("--restore", action="store_true", help="restore the settings before the first --fix")
    planned = (
        "check all that the nights of a plan need: machine, disk, memory, programs, git, releases, folders; "
        "send a test alert (default FILE: that of the installed units, else runners/nightly.toml)"
    )
    group.add_argument("--plan", nargs="?", const="", metavar="FILE", help=planned)
    box = "with --plan: box that this machine is; default: $TIDEMARK_BOX, else by host name"
    command.add_argument("--box", metavar="NAME", help=box)
    command.add_argument("--format", choices=["terminal", "json"], default="terminal")


def _run(command: argparse.ArgumentParser) -> None:
    suite = "name of a suite, or the path of a folder with a suite.toml"
    step = "only this step; can be repeated"
    seconds = "seconds per version in a round, instead of the profile's"
    how_many = "rounds (in long mode blocks) of each step, not the profile's; with --until-decided the least"
    decided = "measure more rounds of steps without a verdict, up to the profile's maximum and the budget"
    budget = (
        "all the time there is, compiling included: instructions are counted first, and rounds begin where "
        "counts leave doubt; implies --until-decided"
    )
    mode = "rounds: every round starts from the same data; long: servers stay up, steps share their data"
    perf = "profile each version with perf at the end of each step, in slices that do not count for QPS"
    during = "profile the measured slices themselves, which slows them down a little"
    no_exact = (
        "count no instructions; otherwise smoke and short count them under callgrind, if it is installed"
    )
    exact_only = "only count instructions: no timed rounds, and a verdict on instructions in minutes"
    disturbed = "keep rounds disturbed by other processes, with a warning, instead of repeating them"
    resume = "resume the last interrupted session of the same request, at most a day old"
    clients = (
        "client connections, such as 1,8,64: each number makes a level of every step, with a series of its "
        "own, instead of the suite's levels; instructions are counted with one client"
    )
    alone = "measure one version without a base, for its own figures: no step gets a verdict"
    durability = "durability of commits: relaxed (default) may lose the last second in a crash"
    history = "history to write to"
    command.add_argument(
        "versions",
        nargs="+",
        type=revision,
        metavar="VERSION",
        help="engine@ref, or engine@NAME=PATH for an install prefix; the base first",
    )
    command.add_argument("--suite", help=f"{suite} (default: {USUAL_SUITE})")
    command.add_argument("--profile", default="smoke", help="smoke (default), short, io or long")
    command.add_argument("--step", action="append", default=[], metavar="NAME", help=step)
    command.add_argument("--repetitions", type=rounds, metavar="N", help=how_many)
    command.add_argument("--until-decided", action="store_true", help=decided)
    command.add_argument("--layouts", type=rounds, default=0, metavar="N", help=LAYOUTS_HELP)
    command.add_argument("--budget", type=minutes, metavar="MINUTES", help=budget)
    command.add_argument("--keep-disturbed", action="store_true", help=disturbed)
    command.add_argument("--mode", choices=["rounds", "long"], help=mode)
    counting = command.add_mutually_exclusive_group()
    counting.add_argument("--no-exact", action="store_true", help=no_exact)
    counting.add_argument("--exact-only", action="store_true", help=exact_only)
    command.add_argument("--resume", action="store_true", help=resume)
    sampled = command.add_mutually_exclusive_group()
    sampled.add_argument("--perf", action="store_true", help=perf)
    sampled.add_argument("--perf-during", action="store_true", help=during)
    command.add_argument("--seconds", type=duration, metavar="S", help=seconds)
    command.add_argument("--clients", type=levels, default=(), metavar="N,N...", help=clients)
    command.add_argument("--alone", action="store_true", help=alone)
    command.add_argument("--durability", choices=["relaxed", "full"], default="relaxed", help=durability)
    add_own_workload(command)
    add_variants(command)
    command.add_argument("--git", metavar="SOURCE", help=GIT_HELP)
    add_wait(command)
    command.add_argument("--history", metavar="PATH", help=history)


def _calibrate(command: argparse.ArgumentParser) -> None:
    suite = "name of a suite, or the path of a folder with a suite.toml"
    command.description = "Measure a version against itself, and store the noise of each step."
    command.epilog = (
        "exit codes: 0 the noise of every step is known; 1 identical builds measured as different; 2 trouble"
    )
    command.add_argument(
        "version", type=revision, metavar="VERSION", help="engine@ref, measured against itself"
    )
    add_variants(command)
    command.add_argument("--git", metavar="SOURCE", help=GIT_HELP)
    clients = "client connections: each number makes a level of every step"
    how_many = "rounds of each step, or blocks in long mode (default: 10)"
    command.add_argument("--clients", type=levels, default=(), metavar="N,N...", help=clients)
    command.add_argument("--suite", default="write-heavy", help=suite)
    command.add_argument("--profile", default="smoke", help="smoke (default), short, io or long")
    command.add_argument(
        "--step", action="append", default=[], metavar="NAME", help="only this step; can be repeated"
    )
    command.add_argument("--rounds", type=rounds, default=10, metavar="N", help=how_many)
    add_wait(command)
    command.add_argument("--history", metavar="PATH", help="history to write to")


def _nightly(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "exit codes: 0 done, or nothing is new; 1 a change for the worse is new or came back; 2 trouble"
    )
    add_plan(command)
    box = "box of the plan that this machine is; default: $TIDEMARK_BOX, else by host name"
    command.add_argument("--box", metavar="NAME", help=box)
    part = command.add_mutually_exclusive_group()
    part.add_argument("--measure", action="store_true", help="only measure; another job reports")
    boxes = "print the boxes of the plan as JSON for the matrix of a workflow; --box selects one"
    part.add_argument("--boxes", action="store_true", help=boxes)
    part.add_argument(
        "--report", action="store_true", help="only judge, update issues, and back up the history"
    )
    add_past(command)


def _status(command: argparse.ArgumentParser) -> None:
    command.epilog = (
        "exit codes: 0 healthy; 1 results are overdue, the night failed, hangs, died or was missed, or none"
        " ever ran; 2 trouble"
    )
    command.add_argument("--plan", metavar="FILE", help="the plan (default: that of the last night)")
    command.add_argument("--box", help="a box of the plan (default: that of the last night, or by host name)")
    command.add_argument("--format", choices=["terminal", "json", "prometheus"], default="terminal")


def _service(command: argparse.ArgumentParser) -> None:
    from runners.service.arguments import add_subcommands  # imported late, as above

    add_subcommands(command)


def _profile(command: argparse.ArgumentParser) -> None:
    exact = "counted instructions instead of sampled CPU time; the default where nothing was sampled"
    what = command.add_subparsers(dest="what", required=True, metavar="WHAT")
    show = what.add_parser("show", help="show the functions of one version on a step, and its flame graph")
    show.add_argument(
        "version", type=version, metavar="VERSION", help="engine@ref that was measured with --perf"
    )
    diff = what.add_parser(
        "diff", help="show the functions that became slower or faster, and three flame graphs"
    )
    diff.add_argument("base", type=version, metavar="BASE", help="engine@ref that was measured with --perf")
    diff.add_argument("contender", type=version, metavar="CONTENDER", help="engine@ref of the same session")
    for subcommand in (show, diff):
        subcommand.epilog = "exit codes: 0 shown, whatever it says; 2 there is no profile, or trouble"
        subcommand.add_argument("--step", required=True, metavar="NAME", help="the step that was profiled")
        subcommand.add_argument("--suite", help="only sessions of this suite")
        subcommand.add_argument("--profile", help="only sessions of this profile")
        subcommand.add_argument("--session", metavar="UID", help="this session, not the latest that finished")
        subcommand.add_argument("--exact", action="store_true", help=exact)
        subcommand.add_argument(
            "--role", metavar="ROLE", help="only this process role, such as 'client backend'"
        )
        subcommand.add_argument(
            "--limit", type=count, default=15, metavar="N", help="number of rows (default: %(default)s)"
        )
        subcommand.add_argument("--format", choices=["terminal", "json"], default="terminal")
        subcommand.add_argument(
            "--output", metavar="FOLDER", help="folder for SVGs and folded stacks, instead of Tidemark's own"
        )
        subcommand.add_argument("--git", metavar="SOURCE", help=GIT_HELP)
        subcommand.add_argument("--history", metavar="PATH", help="history to read from")


def _bisect(command: argparse.ArgumentParser) -> None:
    from runners.bisect.arguments import add_arguments  # imported late, as above

    add_arguments(command)


def _try(command: argparse.ArgumentParser) -> None:
    from runners.trying.arguments import add_arguments  # imported late, as above

    add_arguments(command)


def _report(command: argparse.ArgumentParser) -> None:
    from runners.reporting.arguments import add_arguments  # imported late, as above

    add_arguments(command)


def _history(command: argparse.ArgumentParser) -> None:
    from runners.history.arguments import add_subcommands  # imported late, as above

    add_subcommands(command)


def _suite(command: argparse.ArgumentParser) -> None:
    what = command.add_subparsers(dest="what", required=True, metavar="WHAT")
    what.add_parser("list", help="list all suites with their steps, minutes and disk space")
    save = what.add_parser("save", help="keep a suite that run --script made, to name it in plans")
    save.add_argument("suite", metavar="SUITE", help="its name, as run has printed it")
    save.add_argument("name", metavar="NAME", help="the name to give it")


def _completion(command: argparse.ArgumentParser) -> None:
    command.description = "Print the script with which a shell completes commands, options and versions."
    command.epilog = "Bash reads it with: source <(./tidemark completion bash)"
    command.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell that reads the script")


def _bench(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", help="name of a program in benchmarks/, such as overhead")
