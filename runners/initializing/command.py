"""`./tidemark runner init`: write the plan of a box, check what its nights need, and say what is left."""

import argparse
import os
import platform
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from build.files import make_folder, write_atomically
from build.home import SHARED_HOME, Home
from runners.initializing.answers import interview
from runners.initializing.interview import InitError, Interview, Words
from runners.initializing.left import LeftStep, left_steps
from runners.initializing.needs import Need, NeedState, needs
from runners.initializing.plan_text import plan_text
from runners.initializing.reach import reach
from runners.installing.arguments import PLAN
from runners.installing.machine import TargetMachine
from runners.installing.units import Installed, installed_units
from runners.nightly.plan import PlanError, find_box, load_plan

OPTIONS = (
    *("box", "base", "release", "branch", "git", "suite", "profile", "budget"),
    *("issues", "tracker", "notify"),
)
"""The options that are answers, by their names without dashes."""

WIDTH = 110


def init(arguments: argparse.Namespace) -> int:
    """Write a plan, check, and print what is left; return 0, or 1 when something has to be corrected.

    Raises InitError when answers are missing or a plan is there, and PlanError.
    """
    machine = TargetMachine()
    installed = installed_units(machine) if arguments.check else Installed()
    path = Path(arguments.plan or installed.plan or PLAN).absolute()
    homes = (arguments.home, os.environ.get("TIDEMARK_HOME"), installed.variables.get("TIDEMARK_HOME"))
    home = Home(Path(next(filter(None, homes), SHARED_HOME)).absolute())
    place = next(folder for folder in (home.path, *home.path.parents) if folder.is_dir())
    given = _given(arguments)
    if arguments.check:
        chosen = arguments.box or installed.variables.get("TIDEMARK_BOX")
    else:
        _require_writable(path, force=arguments.force)
        asked = Interview(given, arguments.yes, _ask if sys.stdin.isatty() else None)
        answers = interview(asked, home, place)
        _write(path, plan_text(answers))
        print(f"written: {path}\n", flush=True)
        chosen = answers.box
    plan = load_plan(path)
    box = find_box(plan, chosen, platform.node())
    found = []
    people = reach(plan, box, sends=not arguments.check)
    for need in chain(needs(plan, path, box, home, place), people):
        found.append(need)
        print(_shown(need), flush=True)
    _say_left(list(left_steps(plan, path, box, home.path, found, machine)))
    wrong = [need.name for need in found if need.state is NeedState.WRONG]
    if wrong:
        print(f"\nTo be corrected before the first night: {', '.join(wrong)}.")
    return 1 if wrong else 0


def _given(arguments: argparse.Namespace) -> Mapping[str, Words]:
    """Return what options say, by option."""
    said = {f"--{name}": getattr(arguments, name) for name in OPTIONS}
    return {
        option: [words] if isinstance(words, str) else words
        for option, words in said.items()
        if words is not None
    }


def _require_writable(path: Path, *, force: bool) -> None:
    """Raise InitError before anything is asked if there is a plan, or this user cannot write one."""
    if path.exists() and not force:
        raise InitError(
            "there is a plan already",
            where=str(path),
            hint="--check checks it, --force replaces it, and --plan FILE writes another one",
        )
    folder = next(folder for folder in path.parents if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InitError(
            "this user cannot write the plan", where=str(path), hint="use sudo, or --plan FILE elsewhere"
        )


def _write(path: Path, text: str) -> None:
    """Write a plan that was read once before. Raises InitError if it contradicts itself."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / "plan.toml"
        trial.write_text(text, encoding="utf-8")
        try:
            load_plan(trial)
        except PlanError as error:
            raise InitError(f"the answers contradict each other: {error.what}") from error
    try:
        make_folder(path.parent)
        write_atomically(path, text)
    except OSError as error:
        raise InitError(
            f"the plan cannot be written: {error.strerror}", where=str(path), hint="--plan FILE elsewhere"
        ) from error


def _ask(prompt: str) -> str:
    print(prompt, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        raise InitError("the input has ended before the last answer", hint="nothing was written: start again")
    return line


def _shown(need: Need) -> str:
    """Return state, name and text of a need in columns, and what is to be done below them."""
    head = f"{need.state:<5}  {need.name:<18}  "
    indent = " " * len(head)
    lines = textwrap.wrap(
        need.text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,  # not within paths
    )
    if need.to_do:
        lines.append(f"{indent}to do: {need.to_do}")  # never wrapped, so that it can be copied
    return "\n".join(lines)


def _say_left(steps: Sequence[LeftStep]) -> None:
    print("\nLeft for you:")
    for number, step in enumerate(steps, start=1):
        print(f"  {number}. {step.why}\n     {step.command}")
