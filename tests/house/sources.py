"""The project's Python files, read once, as the rules of the house look at them."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A Python file: its path below the checkout, and its text."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed text. Raises SyntaxError."""
        return ast.parse(self.text)

    @property
    def module(self) -> str:
        """The dotted name; a package's own file is `package.__init__`."""
        return ".".join(self.path.with_suffix("").parts)

    def at(self, line: int) -> str:
        """A place in the file, as compilers write it."""
        return f"{self.path}:{line}"


def read(root: Path, rooms: Iterable[str], suffix: str = ".py") -> list[Source]:
    """Every file of one kind in the rooms, folders or single modules below `root`, sorted by path."""
    paths: list[Path] = []
    for room in rooms:
        paths += (root / room).rglob(f"*{suffix}")
        paths += root.glob(f"{room}{suffix}")
    return [Source(path.relative_to(root), path.read_text(encoding="utf-8")) for path in sorted(paths)]
