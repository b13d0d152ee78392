"""Files of SQL that people have: each is a stream, whose queries are its statements."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from build.version import Engine
from suites.keys.sql_statements import Statement, statements_in
from suites.keys.step import Step


def own_streams(file: Path, engine: Engine, step: Step, seconds: float, limit: float) -> dict[str, Any]:
    """Return what the client program is asked for: the clients of the step at once carry the file out.

    They begin it again until `seconds` are over. A statement may take `limit` seconds. Without levels there
    is one client, whatever the cores: what people time by hand, they time alone.
    """
    queries = [
        {"name": name, "statements": [statement.text], "keys": []}
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
    """Return each statement with its name: the line at which it begins, and a number on the same line."""
    named: dict[str, Statement] = {}
    for statement in statements:
        name, number = f"line-{statement.line}", 1
        while name in named:
            number += 1
            name = f"line-{statement.line}-{number}"
        named[name] = statement
    return list(named.items())


def place_of(file: str, query: str) -> str:
    """Return where a query stands: file and line of a statement in `file`, else its own name."""
    line = re.match(r"line-(\d+)", query)
    return f"{Path(file).name}, line {line[1]}" if file and line else query


def explained_statements(file: Path, engine: Engine) -> list[str]:
    """Return the statements of a file if a server can explain them all; else none.

    What one statement makes, such as a temporary table, is missing where another one is explained alone.
    """
    statements = statements_in(file.read_text(encoding="utf-8"), engine)
    are_explained = all(statement.is_explained for statement in statements)
    return [statement.text for statement in statements] if are_explained else []
