"""The files of a suite with its statements, and what is filled in for a scale or a key."""

from pathlib import Path
from string import Template

from build.version import Engine
from suites.keys.sql_statements import statements_in

HUNDREDTHS = 100
"""The units of the scale in a scale factor of 1."""


def statements_of(file: Path, scale: int) -> list[str]:
    """Return the statements of a file of SQL, in which `$scale_factor` becomes that of `scale` hundredths."""
    text = Template(file.read_text(encoding="utf-8")).safe_substitute(
        scale_factor=f"{scale / HUNDREDTHS:.2f}"
    )
    return [statement.text for statement in statements_in(text, Engine.POSTGRES)]


def with_key(statement: str, key: int) -> str:
    """Return a statement of a refresh function for the order `key`."""
    return Template(statement).safe_substitute(key=key)


def refresh_keys(turn: int, count: int) -> list[int]:
    """Return the keys of the old orders of refresh set `turn`, counted from 1, with `count` orders each.

    TPC-H's order keys are the first 8 of every 32, counted from 1 on; a new order takes the key of an old one
    plus 8, which is free.
    """
    first = (turn - 1) * count
    return [number // 8 * 32 + number % 8 for number in range(first + 1, first + count + 1)]
