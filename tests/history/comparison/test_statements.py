"""How often a comparison asks the history, which on a server far away decides how long it takes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

import compare as program
from history.open import open_store
from tests.history.conftest import Target
from tests.history.handmade import record_steps, session_start

OLD, NEW = "postgres@17.11", "postgres@18.6"

MAX = 37
"""Statements, of which a network with an answer in 5 ms makes less than 0.2 s."""


FILE_CHECKS = 4
"""Those that look for missing rows in a file, which go over no network."""


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Every statement that is sent to any database."""
    sent: list[str] = []

    def note(*words: object) -> None:
        if not str(words[2]).startswith("PRAGMA"):  # which checks a file on this machine
            sent.append(str(words[2]))

    event.listen(Engine, "before_cursor_execute", note)
    yield sent
    event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("steps", [2, 40])
def test_a_comparison_takes_few_statements_however_many_steps(
    target: Target, statements: list[str], steps: int
) -> None:
    rates = {
        f"step-{number}": {OLD: [1000.0, 1010.0, 990.0], NEW: [900.0, 909.0, 891.0]}
        for number in range(steps)
    }
    with open_store(target) as store:
        record_steps(store, session_start(), rates)
    statements.clear()
    assert program.main([OLD, NEW, "--history", str(target)]) == 1
    checks = FILE_CHECKS if isinstance(target, Path) else 0
    assert len(statements) <= MAX + checks, statements
