"""Rules about single files, and about names and folders: each returns its violations, with file and line."""

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from tests.house.sources import Source

PATH_IN_DOCUMENT = re.compile(
    r"`((?:build|suites|history|runners|benchmarks|tests|docs)/[\w./-]+)`|\]\(([\w./-]+)(?:#[\w-]*)?\)"
)
"""A path of ours in backquotes, and a link that does not leave the checkout."""

PYTHONS_OWN = {"_exit", "_replace", "_SubParsersAction", "_actions"}
"""Names of the standard library that are documented, or have no public equivalent."""


# --- names


def catch_alls(sources: Iterable[Source], names: Collection[str]) -> list[str]:
    """Modules and folders whose name says nothing about what is in them."""
    return [
        f"{source.at(1)}: {part} says nothing about what is in it"
        for source in sources
        for part in source.path.with_suffix("").parts
        if part in names
    ]


def repeated_classes(sources: Iterable[Source]) -> list[str]:
    """Public classes whose name another public class has too, be it in the same file."""
    places = defaultdict(list)
    for source in sources:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(source.at(node.lineno))
    return [f"{', '.join(where)}: class {name}" for name, where in places.items() if len(where) > 1]


# --- documents


def dead_paths(root: Path, documents: Iterable[Path]) -> list[str]:
    """Paths and links in documents that lead to nothing below `root`."""
    return [
        f"{document.relative_to(root)}:{number}: {named or linked} does not exist"
        for document in documents
        for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1)
        for named, linked in PATH_IN_DOCUMENT.findall(line)
        if not (root / named if named else document.parent / linked).exists()
    ]


# --- what is written in one place


def writes_of(sources: Iterable[Source], table: str) -> list[str]:
    """Statements that put rows into a table of the schema, by its name or in the text of a query."""
    text = re.compile(rf"\b(INSERT|REPLACE)\s+INTO\s+{table}\b", re.IGNORECASE)
    return [
        f"{source.at(node.lineno)}: writes {table}"
        for source in sources
        for node in ast.walk(source.tree)
        if (isinstance(node, ast.Constant) and isinstance(node.value, str) and text.search(node.value))
        or (isinstance(node, ast.Call) and _inserts_into(node, table))
    ]


def _inserts_into(call: ast.Call, table: str) -> bool:
    """Whether a call is `insert(table)`, `update(table)` or `table.insert()`, below whatever module names."""
    name = ast.unparse(call.func).rpartition(".")
    if name[2] not in {"insert", "update"}:
        return False
    written = ast.unparse(call.args[0]) if call.args else name[0]
    return written.rpartition(".")[2] == table


# --- what a move would break


def _patches(call: ast.Call) -> bool:
    """A call of a method setattr or delattr, or of `patch` under whatever name it was imported."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in {"setattr", "delattr", "patch"}
    return isinstance(call.func, ast.Name) and call.func.id == "patch"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def private_names(sources: Iterable[Source]) -> list[str]:
    """Private names that a file takes from elsewhere: imported, as an attribute, or patched by name.

    Private names that the file itself defines are its own, and what `self` has may be inherited.
    """
    return [report for source in sources for report in _private_names_of(source)]


def _private_names_of(source: Source) -> Iterator[str]:
    own = _own_names(source.tree)
    for node in ast.walk(source.tree):
        names: Sequence[str] = ()
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute) and not _is_self(node.value):
            names = [node.attr]
        elif isinstance(node, ast.Call) and _patches(node) and len(node.args) > 1 and _is_text(node.args[1]):
            names = [ast.unparse(node.args[1]).strip("'")]
        for name in names:
            if name.startswith("_") and not name.startswith("__") and name not in own | PYTHONS_OWN:
                yield f"{source.at(node.lineno)}: {name} is private to another module"  # type: ignore[attr-defined]


def _own_names(tree: ast.Module) -> set[str]:
    """Names that a module defines: functions, classes, variables, and attributes of `self`."""
    own = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            own.add(node.attr)
    return own


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}
