"""The commands that are tried in every kind of surroundings: all that read a history, and what needs none."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tried:
    """A command that is tried."""

    words: tuple[str, ...]
    varies: bool = False
    """Whether its output names the time, or how long it took: then only the exit code has to be the same."""


BRANCH = "postgres@REL_18_STABLE"
READING = (
    Tried(("compare", "postgres@17.11", "--branch", BRANCH)),
    *(
        Tried(("compare", "postgres@17.11", "--branch", BRANCH, "--costs", "--format", each))
        for each in ("markdown", "summary", "json", "csv")
    ),
    Tried(("compare", "postgres@17.11", "--branch", BRANCH, "--format", "html"), varies=True),
    Tried(("history", "show")),
    Tried(("history", "show", "--format", "json")),
    Tried(("history", "changes")),
    Tried(("history", "series", "--step", "insert", "--branch", BRANCH)),
    Tried(("history", "change-points")),
    Tried(("profile", "show", "postgres@17.11", "--step", "insert")),
    Tried(("history", "export", "out.ndjson"), varies=True),
    Tried(("history", "backup", "out.db"), varies=True),
    Tried(("report", "--out", "out"), varies=True),
)
"""Commands that read a history, each in one of its formats."""

ALONE = (
    Tried(("--help",)),
    Tried(("run", "--help")),
    Tried(("compare", "--help")),
    Tried(("compair",)),
    Tried(("run", "postgres@")),
    Tried(("nightly", "--boxes")),
    Tried(("bisect", "--check", "--good", "18.6", "--bad", "imagined", "--step", "insert")),
)
"""Commands that need no history: helps, refusals and checks of arguments."""

COMMANDS = (*READING, *ALONE)
