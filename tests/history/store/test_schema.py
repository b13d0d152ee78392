"""docs/schema.md, the tables as queries name them, and the real database say the same."""

import re
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import TableClause

from build.home import ROOT
from history.open import open_store
from history.store import schema

Columns = dict[str, set[str]]


def documented(text: str) -> Columns:
    """Table or view -> columns, from `## name` headings and the tables below them."""
    found: Columns = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, _, body = section.partition("\n")
        found[name.strip()] = set(re.findall(r"^\| `(\w+)` \|", body, flags=re.MULTILINE))
    return found


@pytest.fixture
def real(tmp_path: Path) -> Columns:
    path = tmp_path / "history.db"
    open_store(path).close()
    connection = sqlite3.connect(path)
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
        )
    ]
    columns = {name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} for name in names}
    connection.close()
    return columns


def test_documentation_is_complete_and_true(real: Columns) -> None:
    assert documented((ROOT / "docs/schema.md").read_text(encoding="utf-8")) == real


def test_queries_name_what_is_there(real: Columns) -> None:
    tables = [var for var in vars(schema).values() if isinstance(var, TableClause)]
    assert {table.name: set(table.c.keys()) for table in tables} == real


def test_every_table_is_strict(tmp_path: Path) -> None:
    open_store(tmp_path / "history.db").close()
    connection = sqlite3.connect(tmp_path / "history.db")
    rows = connection.execute(
        "SELECT name, strict FROM pragma_table_list"
        " WHERE type = 'table' AND schema = 'main' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    connection.close()
    assert rows
    assert all(strict for _, strict in rows), rows
