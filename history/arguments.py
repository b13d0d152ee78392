"""Parsers of command lines that say what was meant: a mistyped word, or the option of another benchmark."""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from build.addresses import redacted
from build.errors import did_you_mean


@dataclass(frozen=True)
class Habit:
    """An option of pgbench or sysbench, and what does the same here."""

    sentence: str
    option: str = ""
    """The option here; empty if there is none."""


_CLIENTS = Habit("the number of clients is --clients N, and 1,8,64 measures each", "--clients")
_SECONDS = Habit("the seconds in which each version is measured in a round are --seconds S", "--seconds")
_THREADS = Habit("the load generator takes as many threads as the machine has cores for it")
_SCRIPT = Habit("scripts of pgbench are --script FILE@WEIGHT, and their tables --setup FILE", "--script")
_SIZE = Habit("the size of the data is that of a profile of the suite: --profile short", "--profile")
_SCALE = Habit(
    "the scale of pgbench's own tables is --scale N; a suite is as large as its profile: --profile short",
    "--scale",
)
_LOADED = Habit("data are loaded in any case: --setup FILE, or --scale N for pgbench's own tables", "--setup")
_BUILT_IN = Habit("the built-in scripts of pgbench are steps of --suite pgbench, chosen by --step", "--suite")
_PROTOCOL = Habit("how pgbench sends statements is --protocol simple, extended or prepared", "--protocol")
_DEFINE = Habit("a variable of the scripts is --define NAME=VALUE", "--define")
_CONNECT = Habit("a connection for each transaction is --connect", "--connect")
_RATE = Habit("transactions that arrive at a rate are --rate N", "--rate")
_ADDRESS = Habit("Tidemark starts the servers itself: there is no host, port, user or database to give")
_PROGRESS = Habit("progress is shown in any case, and seconds, latencies and errors are stored")
_FIXED = Habit(
    "a round lasts a time, --seconds S; --exact-only counts the instructions of fixed work", "--seconds"
)

HABITS = {
    "-c": _CLIENTS,
    "--client": _CLIENTS,
    "--threads": _CLIENTS,
    "-T": _SECONDS,
    "--time": _SECONDS,
    "-j": _THREADS,
    "--jobs": _THREADS,
    "-f": _SCRIPT,
    "--file": _SCRIPT,
    "-s": _SCALE,
    "--scale": _SIZE,
    "--table-size": _SIZE,
    "--table_size": _SIZE,
    "-t": _FIXED,
    "--transactions": _FIXED,
    "--events": _FIXED,
    "-i": _LOADED,
    "--initialize": _LOADED,
    "-b": _BUILT_IN,
    "--builtin": _BUILT_IN,
    "-S": _BUILT_IN,
    "--select-only": _BUILT_IN,
    "-N": _BUILT_IN,
    "--skip-some-updates": _BUILT_IN,
    "-M": _PROTOCOL,
    "-D": _DEFINE,
    "-C": _CONNECT,
    "-R": _RATE,
    **dict.fromkeys(
        ("-U", "--username", "-u", "--user", "-p", "--port", "--host", "-d", "--dbname"), _ADDRESS
    ),
    **{
        f"--{driver}-{what}": _ADDRESS
        for driver in ("mysql", "pgsql")
        for what in ("host", "port", "user", "password", "db", "socket")
    },
    "-P": _PROGRESS,
    "--progress": _PROGRESS,
    "--report-interval": _PROGRESS,
    "-r": _PROGRESS,
    "-l": _PROGRESS,
}
"""What people type who know pgbench or sysbench, whose clients are called threads."""

MAX_CHOICES = 20
"""With more, such as all metrics, the one that may have been meant stands alone: a list would hide it."""

_CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)' \(choose from (?P<known>.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser that ends with 2 and one sentence more than argparse: what may have been meant."""

    leaves_others = False
    """Whether options that it does not know are for another program."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.color = False  # Python 3.14 would put sequences for the terminal into the help

    def error(self, message: str) -> NoReturn:
        """Complain without the passwords of addresses that were mistyped."""
        if choice := _CHOICE.search(message):
            known = re.findall(r"[\w-]+", choice["known"])
            if meant := did_you_mean(choice["given"], known):
                if len(known) > MAX_CHOICES:
                    message = message.replace(f"choose from {choice['known']}", f"none of {len(known)}")
                message = f"{message}; {meant}"
        super().error(redacted(message))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse options that it does not have before their values are taken for something else."""
        if not self.leaves_others:
            self._require_known(sys.argv[1:] if args is None else list(args))
        return super().parse_known_args(args, namespace)

    def _require_known(self, words: Sequence[str]) -> None:
        has_commands = any(isinstance(action, argparse._SubParsersAction) for action in self._actions)
        for place, word in _options(words, ends_at_word=has_commands):
            name = word.partition("=")[0]
            if self._knows(name):
                continue
            value = [text for text in words[place + 1 : place + 2] if not text.startswith("-")]
            meant = self._meant(name)
            said = f"unrecognized arguments: {' '.join([word, *value])}"
            self.error(f"{said}; {meant}" if meant else said)

    def _knows(self, name: str) -> bool:
        known = self._option_string_actions
        if name.startswith("--"):
            return any(option.startswith(name) for option in known)
        return any(option in known for option in (name, name[:2])) or self._has_negative_number(name)

    def _has_negative_number(self, name: str) -> bool:
        return self._negative_number_matcher.match(name) is not None

    def _meant(self, name: str) -> str:
        habit = HABITS.get(name if name.startswith("--") else name[:2])
        if habit is not None and (habit.option or "--clients") in self._option_string_actions:
            return habit.sentence
        return did_you_mean(name, self._option_string_actions)


def _options(words: Sequence[str], *, ends_at_word: bool) -> Iterator[tuple[int, str]]:
    """Yield the words that argparse takes for options, with their places."""
    for place, word in enumerate(words):
        if word == "--" or (ends_at_word and not word.startswith("-")):
            return
        if len(word) > 1 and word.startswith("-") and " " not in word:
            yield place, word
