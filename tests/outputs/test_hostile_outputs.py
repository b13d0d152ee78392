"""One hostile history goes through every command and every format that the parser knows.

A new command, format or column of the schema is in it from its first day: commands and formats come from the
parser, columns from the schema.
"""

import argparse
import io
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import compare
from runners.cli import main, parser
from tests.outputs.harmless import (
    assert_nothing_hidden,
    require_csv,
    require_json,
    require_markdown,
    require_page,
    require_plain,
)
from tests.outputs.hostile_history import STRUCTURED, columns, hostile
from tests.report.rich import BASE, BRANCH, SLOWED

Path_ = tuple[str, ...]


def require_metrics(text: str) -> None:
    """Fail unless a text is plain, and Prometheus reads metrics from it."""
    require_plain(text)
    assert list(text_string_to_metric_families(text))


FORMATS: dict[str, Callable[[str], None]] = {
    **dict.fromkeys(("", "terminal", "text"), require_plain),
    **dict.fromkeys(("markdown", "summary"), require_markdown),
    "json": require_json,
    "csv": require_csv,
    "html": require_page,
    "prometheus": require_metrics,
}
"""What a format has to be."""

DATA = ("ndjson", "parquet")
"""Formats of exports; the second is only there to say that it is gone."""

STEP, BOX, OTHER = hostile(SLOWED), hostile("db1"), "postgres@18.6"

SHOWN: dict[Path_, list[list[str]]] = {
    ("compare",): [
        [BASE, OTHER, "--costs", "--kinds", "--plans"],
        [BASE, OTHER, "--since", "2026-03-20", "--machine", BOX],
        [BASE, "postgres@9.6", "--session", hostile("x")],
    ],
    ("bisect", "status"): [[]],
    ("bisect", "report"): [[], [hostile("b15ec7")], [hostile("none")]],
    ("bisect", "replay"): [[hostile("b15ec7")]],
    ("profile", "show"): [[BASE, "--step", STEP], [BASE, "--step", STEP, "--role", hostile("x")]],
    ("profile", "diff"): [[BASE, OTHER, "--step", STEP]],
    ("report",): [
        ["--page", "change", "{change}"],
        ["--page", "session", "{session}"],
        ["--page", "bisect", hostile("b15ec7")],
    ],
    ("history", "show"): [[], ["--step", STEP], ["--machine", hostile("nobody")]],
    ("history", "series"): [
        ["--step", STEP, "--machine", BOX, "--branch", hostile(BRANCH)],
        ["--step", STEP],
    ],
    ("history", "change-points"): [[], ["--base", hostile("nobody")]],
    ("history", "judge"): [[]],
    ("history", "changes"): [[]],
    ("history", "acknowledge"): [["{change}", "--reason", hostile("known")]],
    ("history", "export"): [["{home}/export"], ["{home}/history.db"]],
    ("history", "merge"): [["{home}/other.db"]],
    ("history", "backup"): [["{home}/backup.db"]],
    ("history", "restore"): [["{home}/other.db"]],
    ("history", "migrate"): [[]],
    ("history", "prune"): [["--before", "2026-03-10", "--dry-run"], ["--before", "2026-03-10"]],
    ("status",): [[]],
    ("data", "list"): [[]],
    ("history", "deliver"): [[]],
}
"""What is asked of each command that shows texts of a history or of this home."""

SILENT: dict[Path_, str] = {
    **dict.fromkeys(
        [
            *[("setup",), ("demo",), ("test",), ("build",), ("bench",), ("completion",)],
            *[("suite", "list"), ("suite", "save")],
        ],
        "reads no history that others wrote",
    ),
    **dict.fromkeys(
        [("run",), ("calibrate",), ("try",), ("bisect",), ("nightly",)],
        "measures; what it prints in the end is printed by others here, or is in test_hostile_texts.py",
    ),
    **dict.fromkeys(
        [("service", what) for what in ("install", "update", "pause", "resume", "test-alert")]
        + [("check",), ("data", "prune")],
        "shows this machine",
    ),
    ("history", "import"): "is tried with an export",
}
"""Why a command is not asked anything."""


def leaves(of: argparse.ArgumentParser, path: Path_ = ()) -> Iterator[tuple[Path_, argparse.ArgumentParser]]:
    """Return every command with its parser."""
    below = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    for action in below:
        for name, inner in action.choices.items():
            yield from leaves(inner, (*path, name))
    if not below or not below[0].required:
        yield path, compare.parser() if path == ("compare",) else of


COMMANDS = dict(leaves(parser()))


def formats(path: Path_) -> list[str]:
    """Return the formats of a command; an empty one without any."""
    options = [action for action in COMMANDS[path]._actions if "--format" in action.option_strings]
    return list(options[0].choices or ()) if options else [""]


def test_every_command_is_asked_or_says_nothing() -> None:
    assert {*SHOWN} | {*SILENT} == {*COMMANDS}
    assert not {*SHOWN} & {*SILENT}


def test_every_structured_column_exists() -> None:
    known = {*columns()}
    assert {(table, name) for table, names in STRUCTURED.items() for name in names} <= known
    assert len(known) > 80


@pytest.fixture
def home(home: Path, written: Path) -> Path:
    """The hostile home with another history beside it."""
    shutil.copy(written, home / "other.db")
    return home


def asked(words: list[str], home: Path) -> list[str]:
    """Return the words with what stands for a change, a session and the home."""
    with sqlite3.connect(home / "history.db") as connection:
        ((change,), *_) = connection.execute("SELECT fingerprint FROM changes ORDER BY id")
        ((session,), *_) = connection.execute("SELECT uid FROM sessions WHERE uid LIKE '%db1n046%'")
    places = {"{change}": change, "{session}": session}
    return [places.get(word, word.replace("{home}", str(home))) for word in words]


CASES = [
    pytest.param(path, format_, words, id=f"{' '.join(path)} {format_} {number}".strip())
    for path, asked_ in SHOWN.items()
    for format_ in formats(path)
    for number, words in enumerate(asked_)
]


@pytest.mark.parametrize(("path", "format_", "words"), CASES)
def test_an_output_is_harmless(
    path: Path_, format_: str, words: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["--format", format_] if format_ else []
    code = main([*path, *asked(words, home), *chosen])
    out, err = capsys.readouterr()
    assert code in (0, 1, 2)
    require_plain(err)
    if path == ("report",):
        format_ = "html"
    if code != 2 or format_ not in ("json", "csv", "html"):
        FORMATS["terminal" if format_ in DATA or code == 2 else format_](out)
    for file in (home / "flamegraphs").rglob("*.svg"):
        assert_nothing_hidden(file.read_text(encoding="utf-8"))
        assert len(file.relative_to(home).parts) == 3


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("path", "words"),
    [(path, words) for path, asked_ in SHOWN.items() for words in asked_ if path != ("report",)],
)
def test_a_terminal_gets_no_sequence_but_colours(
    path: Path_, words: list[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, err = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "dumb-but-coloured")
    monkeypatch.delenv("NO_COLOR", raising=False)
    main([*path, *asked(words, home)])
    require_plain(out.getvalue(), coloured=True)
    require_plain(err.getvalue())


def test_data_are_exact(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is exported and imported again is the same."""
    target = str(home / "export.ndjson")
    assert main(["history", "export", target]) == 0
    assert main(["history", "import", target, "--history", str(home / "again.db")]) == 0
    require_plain(capsys.readouterr().out)
    texts = "SELECT step, failure, version FROM runs ORDER BY step, version, started_at, repetition"
    found = [sqlite3.connect(home / name).execute(texts).fetchall() for name in ("history.db", "again.db")]
    assert found[0] == found[1]
    assert any("\x1b" in step for step, _, _ in found[0])
