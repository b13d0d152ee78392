"""The house rules, over all files at once: which way imports go, and what names mean.

Every rule is a function that lists its violations, with file and line. Beside each test of the project stands
one that shows the rule a small violation.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from build.home import ROOT
from tests.house.imports import ImportGraph, circles, import_graph, out_of_order
from tests.house.rules import (
    catch_alls,
    dead_paths,
    private_names,
    repeated_classes,
)
from tests.house.sources import ROOMS, Source, house, none_of, places, program, read

HISTORY = (
    "arguments",
    "escaping",
    "errors",
    "timestamps",
    "counts",
    "metric_words",
    "stats",
    "numbers",
    "store",
    "placement",
    "series",
    "comparison",
    "changes",
    "derive",
    "open",
    "spool",
    "transfer",
    "backups",
    "rendering",
)
REPORT = ("addresses", "values", "markup", "charts", "pages", "writing")
BISECT = ("arguments", "domain", "inference", "run", "requests", "report")
ORDERS = {"": ROOMS, "history": HISTORY, "report": REPORT, "runners.bisect": BISECT}

LAUNCHERS = {Path("runners/commands/bench.py")}
"""Modules that start a program of a room to their right, by the name that a person gives."""


CATCH_ALL = {"util", "utils", "common", "helpers", "models", "misc", "shared", "base"}


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    """Every Python file of the project."""
    return read(ROOT, ROOMS)


@pytest.fixture(scope="module")
def graph(sources: list[Source]) -> ImportGraph:
    """All imports of the project, without what launchers load."""
    whole = import_graph(sources)
    return replace(
        whole, imports=tuple(imported for imported in whole.imports if imported.path not in LAUNCHERS)
    )


# --- imports


@pytest.mark.deep("a whole command on a whole history")
@pytest.mark.parametrize("package", ORDERS, ids=lambda package: package or "rooms")
def test_imports_go_one_way(graph: ImportGraph, package: str) -> None:
    none_of(out_of_order(graph, package, ORDERS[package]))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("def f():\n    from suites.step import run_step", 2),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import suites.step", 3),
        ("from importlib import import_module\nimport_module('suites.step')", 2),
        ("import importlib\nfor x in 'ab':\n    importlib.import_module(f'suites.{x}')", 3),
        ("from suites import step", 1),
    ],
)
def test_an_import_to_the_right_is_seen(text: str, line: int) -> None:
    made_up = house({"build/deep/x.py": text, "suites/step.py": "import build.deep.x, json"})
    assert out_of_order(import_graph(made_up), "", ("build", "suites")) == [
        f"build/deep/x.py:{line}: build.deep.x imports suites.step, which comes after it in build < suites"
    ]


def test_an_import_of_a_higher_layer_is_seen() -> None:
    made_up = house(
        {
            "history/store/writer.py": "from history.stats.tails import x\nfrom history.series import night",
            "history/stats/tails.py": "from build import home",
            "history/series/night.py": "import history.store.writer",
            "history/stray.py": "",
            "build/home.py": "",
        }
    )
    reports = out_of_order(import_graph(made_up), "history", ("stats", "store", "series"))
    assert places(reports) == ["history/stray.py:1", "history/store/writer.py:2"]


@pytest.mark.deep("a whole command on a whole history")
def test_there_is_no_import_circle(graph: ImportGraph) -> None:
    none_of(circles(graph))


def test_a_circle_of_modules_is_seen() -> None:
    made_up = house(
        {
            "room/first.py": "def f():\n    from room.second import g",
            "room/second.py": "from room import third",
            "room/third.py": "if True:\n    from .first import f",
            "room/fourth.py": "import room.first",
        }
    )
    reports = circles(import_graph(made_up))
    assert places(reports) == ["room/first.py:2", "room/second.py:1", "room/third.py:2"]


def test_a_circle_of_folders_is_seen() -> None:
    """Every module can be imported alone; but neither folder can be understood without the other."""
    made_up = house(
        {
            "room/left/a.py": "import room.right.b",
            "room/left/b.py": "",
            "room/right/a.py": "import room.left.b",
            "room/right/b.py": "",
        }
    )
    assert places(circles(import_graph(made_up))) == ["room/left/a.py:1", "room/right/a.py:1"]


def test_a_package_counts_when_its_own_file_imports() -> None:
    texts = {
        "room/x.py": "from room.pack import y",
        "room/pack/y.py": "",
        "room/pack/__init__.py": '"""Nothing."""',
    }
    assert circles(import_graph(house(texts))) == []
    texts["room/pack/__init__.py"] = "import room.x"
    assert places(circles(import_graph(house(texts)))) == ["room/x.py:1", "room/pack/__init__.py:1"]


# --- names


def test_module_names_say_something(sources: list[Source]) -> None:
    none_of(catch_alls(sources, CATCH_ALL))


def test_a_catch_all_module_is_seen() -> None:
    made_up = house({"a/util.py": "", "shared/b.py": "", "a/utilisation.py": ""})
    assert places(catch_alls(made_up, CATCH_ALL)) == ["a/util.py:1", "shared/b.py:1"]


@pytest.mark.deep("a whole command on a whole history")
def test_a_class_name_means_one_thing(sources: list[Source]) -> None:
    none_of(repeated_classes(program(sources)))


def test_a_repeated_class_name_is_seen() -> None:
    made_up = house({"a.py": "class Run: ...\nclass _Row: ...", "b.py": "\nclass Run: ...\nclass _Row: ..."})
    assert repeated_classes(made_up) == ["a.py:1, b.py:2: class Run"]


# --- what a move would break


def test_documents_name_files_that_exist() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    none_of(dead_paths(ROOT, documents))


def test_a_dead_path_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text("`docs/page.md` and [itself](page.md#top)\n`build/gone.py`\n[gone](../gone.md#top)\n")
    assert places(dead_paths(tmp_path, [page])) == ["docs/page.md:2", "docs/page.md:3"]


@pytest.mark.deep("a whole command on a whole history")
def test_private_names_stay_in_their_module(sources: list[Source]) -> None:
    none_of(private_names(sources))


@pytest.mark.parametrize(
    "text", ["from a.b import _c", "import a\na._c()", "store.rows._c = 1", "monkeypatch.setattr(a, '_c', 1)"]
)
def test_a_private_name_of_another_module_is_seen(text: str) -> None:
    made_up = house(
        {"x.py": text, "y.py": "class C:\n    _c: int\n    def f(self, x): return x._c + self._d"}
    )
    assert places(private_names(made_up)) == [f"x.py:{len(text.splitlines())}"]
