"""The commands that are tried in every kind of surroundings: all that read a history, and what needs none."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TriedCommand:
    """A command that is tried."""

    words: tuple[str, ...]
    varies: bool = False
    """Whether its output names the time, or how long it took: then only the exit code has to be the same."""


BRANCH = "postgres@REL_18_STABLE"
READING = (
    TriedCommand(("compare", "postgres@17.11", "--branch", BRANCH)),
    *(
        TriedCommand(("compare", "postgres@17.11", "--branch", BRANCH, "--costs", "--format", form))
        for form in ("markdown", "summary", "json", "csv")
    ),
    TriedCommand(("compare", "postgres@17.11", "--branch", BRANCH, "--format", "html"), varies=True),
    TriedCommand(("history", "show")),
    TriedCommand(("history", "show", "--format", "json")),
    TriedCommand(("history", "changes")),
    TriedCommand(("history", "series", "--step", "insert", "--branch", BRANCH)),
    TriedCommand(("history", "change-points")),
    TriedCommand(("profile", "show", "postgres@17.11", "--step", "insert")),
    TriedCommand(("history", "export", "out.ndjson"), varies=True),
    TriedCommand(("history", "backup", "out.db"), varies=True),
    TriedCommand(("report", "--out", "out"), varies=True),
)
"""Commands that read a history, each in one of its formats."""

ALONE = (
    TriedCommand(("--help",)),
    TriedCommand(("run", "--help")),
    TriedCommand(("compare", "--help")),
    TriedCommand(("compair",)),
    TriedCommand(("run", "postgres@")),
    TriedCommand(("nightly", "--boxes")),
    TriedCommand(("bisect", "--check", "--good", "18.6", "--bad", "imagined", "--step", "insert")),
)
"""Commands that need no history: helps, refusals and checks of arguments."""

COMMANDS = (*READING, *ALONE)
