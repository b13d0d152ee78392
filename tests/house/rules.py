"""Rules about single files, and about names and folders: each returns its violations, with file and line."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from tests.house.sources import Source

PATH_IN_DOCUMENT = re.compile(
    r"`((?:build|suites|history|runners|benchmarks|tests|docs)/[\w./-]+)`|\]\(([\w./-]+)(?:#[\w-]*)?\)"
)
"""A path of ours in backquotes, and a link that does not leave the checkout."""

PYTHONS_OWN = {"_exit", "_replace", "_SubParsersAction", "_actions"}
"""Names of the standard library that are documented, or have no public equivalent."""


# --- sizes


def full_folders(sources: Iterable[Source], limit: int) -> list[str]:
    """Folders with more than `limit` modules; `__init__.py` and `conftest.py` are not counted."""
    uncounted = {"__init__.py", "conftest.py"}
    modules = Counter(source.path.parent for source in sources if source.path.name not in uncounted)
    return [f"{folder}: {count} modules" for folder, count in modules.items() if count > limit]


def long_modules(sources: Iterable[Source], limit: int) -> list[str]:
    """Modules of more than `limit` lines."""
    lengths = {source: len(source.text.splitlines()) for source in sources}
    return [f"{source.at(limit + 1)}: {length} lines" for source, length in lengths.items() if length > limit]


def long_functions(sources: Iterable[Source], limit: int) -> list[str]:
    """Functions and methods of more than `limit` lines, from `def` to their last."""
    return [
        f"{source.at(node.lineno)}: {node.name} has {length} lines"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > limit
    ]


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


def silent_modules(sources: Iterable[Source]) -> list[str]:
    """Modules without a docstring."""
    return [f"{source.at(1)}: no docstring" for source in sources if not ast.get_docstring(source.tree)]


PRONOUNS = {"one", "each", "it", "its"}
OTHER_LIMITS = re.compile(r"_?(MOST|LEAST)_")
"""How constants begin that say MAX or MIN in another way."""


def pronouns(sources: Iterable[Source]) -> list[str]:
    """Variables and parameters that are pronouns: they do not say what they stand for."""
    return [
        f"{source.at(line)}: {name} does not say what it stands for"
        for source in sources
        for name, line in _bound_names(source.tree)
        if name in PRONOUNS
    ]


def other_limits(sources: Iterable[Source]) -> list[str]:
    """Constants named MOST_ or LEAST_: limits begin with MAX_ or MIN_."""
    return [
        f"{source.at(line)}: {name} is no MAX_ or MIN_"
        for source in sources
        for name, line in _bound_names(source.tree)
        if OTHER_LIMITS.match(name)
    ]


def _bound_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Names that a module binds to a value, with their lines: variables, parameters, captures."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


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


# --- messages

STOPS = re.compile(
    r"\b(pkill|killall|fuser -k|service (\S+ )?stop|systemctl (stop|disable|mask|kill)\b(?! tidemark))"
)
"""Commands that end what runs on a machine, but for units of Tidemark."""


def stops_of_others(sources: Iterable[Source], root: Path, documents: Iterable[Path]) -> list[str]:
    """Texts of programs, and lines of documents below `root`, with a command that stops what is not ours."""
    reports = [
        f"{source.at(node.lineno)}: offers {node.value!r}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and STOPS.search(node.value)
    ]
    return reports + [
        f"{document.relative_to(root)}:{number}: offers {found[0]!r}"
        for document in documents
        for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1)
        if (found := STOPS.search(line))
    ]


# --- what is started


def inherited_environments(sources: Iterable[Source], allowed: Collection[str]) -> list[str]:
    """Programs that are started without saying which variables they get, outside the folders `allowed`."""
    return [
        f"{source.at(node.lineno)}: {ast.unparse(node.func)} without env"
        for source in sources
        if source.path.parent.as_posix() not in allowed
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"subprocess.run", "subprocess.Popen"}
        and not any(keyword.arg == "env" for keyword in node.keywords)
    ]


QUOTING = {"tail", "tail_of", "in_a_sentence", "str", "repr"}
"""Functions that give what a program or an error said."""


def quoted_hints(sources: Iterable[Source]) -> list[str]:
    """Hints, which say what to do, that are made of what a program or an error said."""
    return [
        f"{source.at(node.value.lineno)}: hint={ast.unparse(node.value)} is no remedy"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.keyword) and node.arg == "hint" and isinstance(node.value, ast.Call)
        if getattr(node.value.func, "id", None) in QUOTING
    ]


# --- what knows no metric


def words_in(files: Iterable[Path], root: Path, words: Collection[str]) -> list[str]:
    """Places in files below `root` that have one of the words, in whatever else it is a part of."""
    return [
        f"{path.relative_to(root)}:{number}: {word}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for word in words
        if word in line
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


def patches_by_string(sources: Iterable[Source]) -> list[str]:
    """`monkeypatch.setattr("a.b.c", ...)` and its like: a move of a.b is noticed only when the test runs."""
    return [
        f"{source.at(node.lineno)}: patches {ast.unparse(node.args[0])} by a string"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and node.args and _patches(node) and _is_text(node.args[0])
    ]


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
