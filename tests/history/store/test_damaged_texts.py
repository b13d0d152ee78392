"""Texts of a history that are not what was written there: said as damage, never a traceback."""

import sqlite3
from pathlib import Path

import pytest

import compare
from history.errors import DamagedTextError
from history.open import open_store
from history.store.profiles import packed, unpacked
from runners.cli import main
from tests.history.handmade import record_steps, session_start

VERSIONS = ("postgres@17.11", "postgres@18.6")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        rates = {version: [1000.0, 1001.0, 1002.0] for version in VERSIONS}
        record_steps(store, session_start(), {"insert": rates})
    return path


def damage(path: Path, table: str, column: str, content: bytes, rows: str = "TRUE") -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE {rows}", (content,))
    connection.close()


@pytest.mark.parametrize(
    ("table", "column", "content"),
    [
        ("sessions", "options", b"{"),
        ("sessions", "options", b"[]"),
        ("sessions", "options", b"[" * 5000),
        ("sessions", "options", b'{"rounds": {"until_decided": true, "least": "x", "cap": []}}'),
        ("sessions", "options", b"\xff"),
        ("sessions", "tools", b"null"),
        ("sessions", "started_at", b"yesterday"),
        ("sessions", "started_at", b"2026-01-01T00:00:00"),
        ("sessions", "started_at", b"\xff"),
        ("machines", "details", b"no"),
        ("runs", "warnings", b"{}"),
        ("runs", "warnings", b"\xff"),
        ("runs", "step", b"\xff"),
    ],
)
def test_a_damaged_text_is_said(
    history: Path, table: str, column: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(history, table, column, content)
    assert compare.main([*VERSIONS, "--history", str(history)]) == 2
    said = capsys.readouterr().err
    assert "the history is damaged" in said
    assert "./tidemark history restore FILE" in said


def test_a_listing_of_a_damaged_history(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(history, "nights", "started_at", b"yesterday")
    assert main(["history", "show", "--history", str(history)]) == 2
    assert "the history is damaged" in capsys.readouterr().err


def test_pages_of_a_damaged_history(
    history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(history, "runs", "version", b"nonsense", f"version = '{VERSIONS[1]}' AND repetition = 1")
    assert main(["report", "--history", str(history), "--out", str(tmp_path / "site")]) == 2
    assert "the history is damaged: 'nonsense' is not a version" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"no zlib", packed({"role;main": 5})[:-3], packed({"role": -1})])
def test_a_damaged_profile(content: bytes) -> None:
    with pytest.raises(DamagedTextError):
        unpacked(content)
