"""All commands in all surroundings; each fault is a sentence with the line that repeats it."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from build.host import cores
from tests.robustness.surroundings.answers import (
    CommandAnswer,
    Surroundings,
    answer,
    content,
    faults,
    folder_of_its_own,
    repeated,
)
from tests.robustness.surroundings.commands import TriedCommand

PLAIN = Surroundings("plain", 'exec "$@"')


@dataclass
class Outcome:
    """Trials, and what was wrong with them."""

    tried: int = 0
    faults: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Surroundings -> why they were not tried."""

    def add(self, faults: Iterable[str]) -> None:
        """Add a trial with its faults."""
        self.tried += 1
        self.faults += faults


def commands_in(
    surroundings: Iterable[Surroundings],
    commands: Sequence[TriedCommand],
    history: Callable[[Path], object],
) -> Outcome:
    """Run every command in all surroundings, each on a history of its own that `history` writes to a path."""
    outcome = Outcome()
    with folder_of_its_own() as folder:
        home = folder / "home"
        history(home / "history.db")
        plain = {command: _answered(command, PLAIN, home) for command in commands}
        chosen: list[tuple[TriedCommand, Surroundings]] = []
        for surrounding in surroundings:
            if surrounding.lacking:
                outcome.skipped[surrounding.name] = surrounding.lacking
            else:
                chosen += [(command, surrounding) for command in commands]
        with ThreadPoolExecutor(cores()) as pool:
            for found in pool.map(
                lambda pair: list(_faults(pair[0], pair[1], home, plain[pair[0]][0])), chosen
            ):
                outcome.add(found)
    return outcome


def _faults(
    command: TriedCommand, surroundings: Surroundings, home: Path, plain: CommandAnswer
) -> Iterator[str]:
    given, changed = _answered(command, surroundings, home)
    expected = surroundings.expected
    if command.varies:
        plain = replace(plain, output=given.output)
    found = list(faults(given, expected, plain))
    if changed:
        found.append("the history was changed")
    yield from (f"{surroundings.name}: {fault}\n  {repeated(command.words, surroundings)}" for fault in found)


def _answered(command: TriedCommand, surroundings: Surroundings, home: Path) -> tuple[CommandAnswer, bool]:
    """Run a command on a copy of a home; return its answer, and whether it changed the history."""
    with folder_of_its_own() as folder:
        copy = folder / "home"
        shutil.copytree(home, copy)
        before = content(copy)
        given = answer(command.words, surroundings, copy)
        here = str(folder).encode()
        given = replace(
            given, output=given.output.replace(here, b"HOME"), errors=given.errors.replace(here, b"HOME")
        )
        return given, content(copy) != before
