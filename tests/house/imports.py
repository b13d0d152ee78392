"""The import graph of the project: which module imports which, in what order, and where in a circle.

An import counts wherever it stands: at the top, inside a function, below TYPE_CHECKING, or as
`import_module("...")`; `import_module(f"package.{name}")` counts as an import of all that it may load.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.house.sources import Source


@dataclass(frozen=True)
class Import:
    """One module of the project imports another, at a line."""

    importer: str
    imported: str
    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.importer} imports {self.imported}"


@dataclass(frozen=True)
class ImportGraph:
    """All modules with their files, and all imports among them."""

    modules: dict[str, Path]
    imports: tuple[Import, ...]


def import_graph(sources: Iterable[Source]) -> ImportGraph:
    """The graph over `sources`; imports of anything else are left out.

    `from package import name` is an import of the submodule when there is one, or else of what the package's
    own file imports. Packages whose file imports nothing are passed over.
    """
    by_name = {source.module: source for source in sources}
    imports = {
        Import(source.module, imported, source.path, line): None
        for source in by_name.values()
        for name, line in _names(source)
        for imported in _modules_of(name, source.module, by_name)
    }
    return ImportGraph({name: source.path for name, source in by_name.items()}, tuple(imports))


def out_of_order(graph: ImportGraph, package: str, order: Sequence[str]) -> list[str]:
    """Imports in `package` from one of its children to a later one, and children without a place in `order`.

    The children are modules or folders of the package; with an empty `package` they are the rooms.
    """
    rank = {child: place for place, child in enumerate(order)}
    reports = []
    for name, path in graph.modules.items():
        child = _child(name, package)
        if child is not None and child != "__init__" and child not in rank:
            reports.append(f"{path}:1: {child} has no place in {' < '.join(order)}")
    for found in graph.imports:
        importer, imported = _child(found.importer, package), _child(found.imported, package)
        if importer in rank and imported in rank and rank[importer] < rank[imported]:
            reports.append(f"{found}, which comes after it in {' < '.join(order)}")
    return reports


def past_doors(graph: ImportGraph, doors: Iterable[str]) -> list[str]:
    """Imports of a module inside a package with a door, from elsewhere than the package and its own tests.

    The door of a package is its own file, which says what everything outside may use.
    """
    return [
        f"{found}, which is inside {door}"
        for door in doors
        for found in graph.imports
        if _child(found.imported, door) not in (None, "__init__")
        and _child(found.importer, door) is None
        and _child(found.importer, f"tests.{door}") is None
    ]


def circles(graph: ImportGraph) -> list[str]:
    """Imports that close a circle among the modules and folders that lie side by side in some folder.

    A circle of modules is one of the children of the folder that holds them all; so folders are looked at
    alone, as if each were one module. Of all imports from one child to another the first is reported.
    """
    folders = {parent for path in graph.modules.values() for parent in path.parents}
    packages = sorted(".".join(folder.parts) for folder in folders)
    return [report for package in packages for report in _circles_in(graph, package)]


def _circles_in(graph: ImportGraph, package: str) -> Iterator[str]:
    first: dict[tuple[str, str], Import] = {}
    for found in graph.imports:
        importer, imported = _child(found.importer, package), _child(found.imported, package)
        if importer is not None and imported is not None and importer != imported:
            first.setdefault((importer, imported), found)
    edges: dict[str, set[str]] = {}
    for importer, imported in first:
        edges.setdefault(importer, set()).add(imported)
    reached = {child: _reachable(child, edges) for child in edges}
    for (importer, imported), found in first.items():
        if importer in reached.get(imported, ()):
            yield f"{found}, and {imported} leads back to {importer}"


def _reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    """What can be reached from `start` over one edge or more."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        further = edges.get(pending.pop(), set()) - seen
        seen |= further
        pending += further
    return seen


def _child(module: str, package: str) -> str | None:
    """The child of `package` that is the module or holds it; none of a module that lies outside."""
    inside = module.removeprefix(f"{package}.") if package else module
    return inside.split(".")[0] if inside != module or not package else None


def _names(source: Source) -> Iterator[tuple[str, int]]:
    """Dotted names that a module imports, with their lines; one that ends with `.*` means all below it."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = ".".join(source.path.parts[: -node.level]) if node.level else ""
            parent = ".".join(filter(None, (package, node.module)))
            yield from ((f"{parent}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in (
            getattr(node.func, "id", None),
            getattr(node.func, "attr", None),
        ):
            yield from ((name, node.lineno) for name in _loaded(node.args[0]))


def _loaded(argument: ast.expr) -> Iterator[str]:
    """What the argument of import_module names."""
    if isinstance(argument, ast.Constant):
        yield str(argument.value)
    elif isinstance(argument, ast.JoinedStr) and isinstance(argument.values[0], ast.Constant):
        yield f"{str(argument.values[0].value).rstrip('.')}.*"


def _modules_of(name: str, importer: str, by_name: dict[str, Source]) -> Iterator[str]:
    """The modules that an import of `name` runs: the one that it is or lies in, and packages with code."""
    if name.endswith(".*"):
        yield from (module for module in by_name if module.startswith(name[:-1]))
        return
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        candidate = ".".join(parts[:end])
        package = f"{candidate}.__init__"
        if candidate in by_name and candidate != importer:
            yield candidate
        elif (
            package in by_name and not importer.startswith(f"{candidate}.") and any(_names(by_name[package]))
        ):
            yield package
