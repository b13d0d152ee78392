"""`./tidemark completion SHELL`: the script with which a shell completes commands and options."""

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import shtab

import compare
from build.home import locate
from build.sources.releases import known_releases
from build.version import Engine
from runners import cli
from suites.definition import load_suite, own_suites, suite_names
from suites.keys.levels import LEVEL
from suites.metrics import METRICS

PATHS: Mapping[str, Any] = {"FILE": shtab.FILE, "PATH": shtab.FILE, "FOLDER": shtab.DIRECTORY}
"""What an argument with this metavar is completed by."""

VERSIONS = ("VERSION", "BASE", "CONTENDER")
"""The metavars of arguments that are versions."""

# Bash parts words at `@`, for names of hosts, and would complete what follows it alone.
PREAMBLE = {"bash": "COMP_WORDBREAKS=${COMP_WORDBREAKS//@/}"}


def main(arguments: argparse.Namespace) -> int:
    """Print the script; return 0."""
    parser = cli.parser()
    values: dict[str, Any] = {f"--{name}": _words(words) for name, words in _options().items()}
    values |= {**dict.fromkeys(VERSIONS, _words(_versions())), **PATHS}
    for action in _actions(parser):
        found = [values[key] for key in (*action.option_strings, str(action.metavar)) if key in values]
        if found and action.choices is None:
            action.complete = found[0]  # type: ignore[attr-defined]
    sys.stdout.write(shtab.complete(parser, arguments.shell, preamble=PREAMBLE.get(arguments.shell, "")))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its commands, `compare` with its own."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            yield action
            continue
        if "compare" in action.choices:
            action.choices["compare"] = compare.parser()
        for command in dict.fromkeys(action.choices.values()):
            yield from _actions(command)


def _words(words: Iterable[str]) -> Any:
    """Return the completion by fixed words, which the shell prints without starting a program."""
    return shtab.cmd(shlex.join(["printf", "%s\\n", *words]))


def _versions() -> list[str]:
    home = locate()
    return [f"{engine}@{release}" for engine in Engine for release in reversed(known_releases(engine, home))]


def _options() -> Mapping[str, Iterable[str]]:
    """Return the values of options that name something, by option."""
    suites = [load_suite(name) for name in suite_names()]
    steps = dict.fromkeys(step.name.partition(LEVEL)[0] for suite in suites for step in suite.steps)
    return {
        "suite": [*suite_names(), *own_suites()],
        "profile": dict.fromkeys(name for suite in suites for name in suite.profiles),
        "step": steps,
        "metric": METRICS,
    }
