"""How many files of a compile are counted in its log, by the recipes of both kinds of makefiles."""

import re
from pathlib import Path

import pytest

from build.compile_commands import CompileCommands
from build.recipes import mysql, postgres

NINJA = "ninja: Entering directory\\n[1/200] Building a.o\\n[2/187] Building b.o\\n"
MAKE = "make: Entering directory\\ngcc -O2 -c -o a.o a.c\\ngcc -O2 -c -o b.o b.c\\ngcc -o postgres a.o b.o\\n"


@pytest.mark.parametrize(
    ("counted", "log", "last"),
    [
        (mysql.recipe("9.7.2", lambda _: True).counted, NINJA, (2, 187)),
        (postgres.recipe("18.6", lambda _: True).counted, MAKE, (2, None)),
    ],
    ids=["ninja", "make"],
)
def test_files_are_counted(tmp_path: Path, counted: str, log: str, last: tuple[int, int | None]) -> None:
    """Ninja says of how many; a makefile does not."""
    seen: list[tuple[int, int | None]] = []

    def on_count(count: int, total: int | None) -> None:
        seen.append((count, total))

    (tmp_path / "log").touch()
    work = CompileCommands("x", tmp_path / "log", {}, re.compile(counted.encode()), on_count)
    work.run("compile", ["/usr/bin/printf", log], tmp_path)
    assert seen[-1] == last
