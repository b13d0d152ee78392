"""Histories of every schema that ever landed, given to the program as it is now."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from build.errors import TidemarkError
from build.home import ROOT
from tests.robustness.surroundings.answers import (
    CommandAnswer,
    Expected,
    answer,
    content,
    faults,
    folder_of_its_own,
    repeated,
)
from tests.robustness.surroundings.commands import READING
from tests.robustness.surroundings.trials import PLAIN

RELEASED = ROOT / "tests/history/released"
"""Histories as SQL, each recorded by the code of its time, named by its schema and its commit."""

WRITING = (
    ("history", "judge"),
    ("history", "merge", "{other}"),
    ("history", "prune", "--before", "2026-01-01"),
    ("nightly", "--report", "--plan", str(ROOT / "runners/examples/demo.toml")),
    ("history", "restore", "{other}", "--discard"),
)
"""Commands that write to a history, and so migrate it; `other` is the same history again."""


def recorded_histories() -> list[Path]:
    """The recorded histories in the order of their schemas. Raises TidemarkError without any."""
    recorded = sorted(RELEASED.glob("*.sql"))
    if not recorded:
        raise TidemarkError("no recorded histories", where=str(RELEASED), hint="restore them by git")
    return recorded


def upgraded(text: Path) -> Iterator[str]:
    """Read a history without changing it, then write to it; yield what is wrong, such as what is lost."""
    with folder_of_its_own() as folder:
        other = folder / "other.db"
        write(text, other)
        for words in (*(command.words for command in READING), *WRITING):
            chosen = tuple(word.format(other=other) for word in words)
            found = _faults(text, chosen, folder / "home", reads=words not in WRITING)
            yield from (f"{fault}\n  {repeated(chosen, PLAIN)}" for fault in found)


def write(text: Path, path: Path) -> None:
    """Write a recorded history as the file that it was."""
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(text.read_text(encoding="utf-8"))


def _faults(text: Path, words: tuple[str, ...], home: Path, *, reads: bool) -> Iterator[str]:
    history = home / "history.db"
    if not history.exists():
        write(text, history)
    before, rounds = content(home), _rounds(history)
    given = answer(words, PLAIN, home)
    yield from faults(given, Expected.ANSWER, given)
    yield from _refusal(words, given)
    if reads and content(home) != before:
        yield "the history was changed"
    if not rounds <= _rounds(history):
        yield "finished rounds are lost"


def _refusal(words: tuple[str, ...], given: CommandAnswer) -> Iterator[str]:
    """Comparisons without enough data, missing profiles and a night's report may end with 2."""
    if given.code == 2 and words[0] not in ("compare", "profile", "nightly"):
        yield f"refused: {given.errors.decode(errors='replace')[:200]}"


def _rounds(history: Path) -> set[tuple[object, ...]]:
    query = (
        "SELECT sessions.uid, version, step, repetition, value FROM runs "
        "JOIN sessions ON sessions.id = session_id JOIN measurements ON run_id = runs.id AND metric = 'qps'"
    )
    with closing(sqlite3.connect(f"file:{history}?mode=ro", uri=True)) as connection:
        return set(connection.execute(query))
