"""Files of SQL that people have: each is a stream, whose queries are its statements."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build.version import Engine
from suites.keys.sql_statements import Statement, statements_in
from suites.keys.step import Step

MAX_SHOWN = 50
"""The characters of a statement in its name."""


def own_streams(file: Path, engine: Engine, step: Step, seconds: float, limit: float) -> dict[str, Any]:
    """Return what the client program is asked for: the clients of the step at once carry the file out.

    They begin it again until `seconds` are over. A statement may take `limit` seconds. Without levels there
    is one client, whatever the cores: what people time by hand, they time alone.
    """
    queries = [
        {"name": name, "statements": [statement.text]}
        for name, statement in _named(statements_in(file.read_text(encoding="utf-8"), engine))
    ]
    return {
        "file": str(file),
        "streams": [queries] * (step.clients[0] if step.clients else 1),
        "limit": limit,
        "again_seconds": seconds,
        "seconds": seconds + limit * len(queries),
    }


def _named(statements: Sequence[Statement]) -> list[tuple[str, Statement]]:
    """Return each statement with its name: its line, its number if it is not the first there, first words."""
    on_line = Counter[int]()
    named = []
    for statement in statements:
        on_line[statement.line] += 1
        number = f"-{on_line[statement.line]}" if on_line[statement.line] > 1 else ""
        named.append((f"line-{statement.line}{number} {_first_words(statement.text)}", statement))
    return named


def _first_words(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= MAX_SHOWN else f"{words[: MAX_SHOWN - 1].rstrip()}…"


def place_of(file: str, query: str) -> str:
    """Return file and line of the statement in `file` that is called `query`."""
    line = re.match(r"line-(\d+)", query)
    assert line is not None
    return f"{Path(file).name}, line {line[1]}"


def explained_statements(file: Path, engine: Engine) -> list[str]:
    """Return the statements of a file if a server can explain them all; else none.

    What one statement makes, such as a temporary table, is missing where another one is explained alone.
    """
    statements = statements_in(file.read_text(encoding="utf-8"), engine)
    are_explained = all(statement.is_explained for statement in statements)
    return [statement.text for statement in statements] if are_explained else []
