"""The packages of a bisect import in one direction: domain, inference, run, report."""

import ast
from pathlib import Path

import runners.bisect

LAYERS = ("domain", "inference", "run", "report")
FOLDER = Path(runners.bisect.__file__).parent


def imported_layers(source: str) -> set[str]:
    """The layers of `runners.bisect` that a module imports, wherever in it."""
    names = {
        node.module
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    names |= {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    return {name.split(".")[2] for name in names if name.startswith("runners.bisect.")} & set(LAYERS)


def test_no_layer_imports_a_later_one() -> None:
    upwards = [
        f"{path.relative_to(FOLDER)} imports {layer}"
        for place, own in enumerate(LAYERS)
        for path in sorted((FOLDER / own).rglob("*.py"))
        for layer in imported_layers(path.read_text()) & set(LAYERS[place + 1 :])
    ]
    assert not upwards
    assert all((FOLDER / layer / "__init__.py").is_file() for layer in LAYERS)


def test_a_wrong_import_is_detected() -> None:
    assert imported_layers("def f():\n    from runners.bisect.report.state import export\n") == {"report"}
