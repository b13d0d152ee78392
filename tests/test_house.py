"""The house rules: rooms import in one direction, modules and functions stay small, names stay meaningful."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# From left to right: each may import itself and what stands before it (docs/decisions/0001-rooms.md).
ROOMS = ("build", "suites", "history", "compare", "runners", "benchmarks", "tests")

LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
CATCH_ALL = {"util", "utils", "common", "helpers", "models", "misc", "shared", "base"}


def modules() -> list[Path]:
    """Every Python file of the project, relative to the checkout."""
    folders = [ROOT / room for room in ROOMS if (ROOT / room).is_dir()]
    found = [path for folder in folders for path in folder.rglob("*.py")]
    return sorted(path.relative_to(ROOT) for path in [*found, ROOT / "compare.py"])


def imported_rooms(source: str) -> set[str]:
    """The rooms that a module imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names} & set(ROOMS)


def too_far_right(module: Path, source: str) -> set[str]:
    """The rooms that `module` imports although they stand to the right of its own."""
    own = module.parts[0].removesuffix(".py")
    return {room for room in imported_rooms(source) if ROOMS.index(room) > ROOMS.index(own)}


@pytest.mark.parametrize("module", modules(), ids=str)
def test_imports_go_one_way(module: Path) -> None:
    wrong = too_far_right(module, (ROOT / module).read_text())
    assert not wrong, f"{module} imports {wrong}, which stand to its right: {' -> '.join(ROOMS)}"


def test_a_wrong_import_is_seen() -> None:
    assert too_far_right(Path("build/x.py"), "def f():\n    from suites.step import run_step\n") == {"suites"}
    assert too_far_right(Path("compare.py"), "import runners.cli") == {"runners"}
    assert not too_far_right(Path("runners/x.py"), "import compare, build.make, json")


@pytest.mark.parametrize("module", modules(), ids=str)
def test_modules_and_functions_stay_small(module: Path) -> None:
    text = (ROOT / module).read_text()
    assert len(text.splitlines()) <= LONGEST_MODULE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{module}:{node.lineno} {node.name} has {length} lines"


@pytest.mark.parametrize("module", modules(), ids=str)
def test_no_catch_all_module(module: Path) -> None:
    assert not {part.removesuffix(".py") for part in module.parts} & CATCH_ALL


def test_every_module_says_what_it_is_for() -> None:
    silent = [path for path in modules() if not ast.get_docstring(ast.parse((ROOT / path).read_text()))]
    assert not silent


def test_documents_name_files_that_exist() -> None:
    """Paths of ours in backquotes or links in the documents lead somewhere."""
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    pattern = re.compile(
        r"`((?:build|suites|history|runners|benchmarks|tests|docs)/[\w./-]+)`|\]\(([\w./-]+)\)"
    )
    dead = []
    for document in documents:
        for named, linked in pattern.findall(document.read_text()):
            target = ROOT / named if named else document.parent / linked
            if not target.exists():
                dead.append(f"{document.relative_to(ROOT)}: {named or linked}")
    assert not dead
