"""The project's Python files, read once, as the rules of the house look at them."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

# From left to right: each may import itself and what stands before it (docs/decisions/0001-rooms.md).
ROOMS = ("build", "suites", "history", "report", "compare", "runners", "benchmarks", "tests")


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


def program(sources: list[Source]) -> list[Source]:
    """The sources without tests."""
    return [source for source in sources if source.path.parts[0] != "tests"]


def none_of(reports: list[str]) -> None:
    """Fail with all violations, one a line."""
    assert not reports, "\n" + "\n".join(reports)


def house(texts: dict[str, str]) -> list[Source]:
    """Made-up sources from paths and texts."""
    return [Source(Path(path), text) for path, text in texts.items()]


def places(reports: list[str]) -> list[str]:
    """File and line of each report."""
    return [report.split(": ")[0] for report in reports]
