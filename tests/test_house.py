"""The house rules, over all files at once: which way imports go, how large things are, what names say.

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
    full_folders,
    inherited_environments,
    long_functions,
    long_modules,
    other_limits,
    patches_by_string,
    private_names,
    pronouns,
    quoted_hints,
    repeated_classes,
    silent_modules,
    stops_of_others,
    words_in,
)
from tests.house.sources import ROOMS, Source, house, none_of, places, program, read

HISTORY = (
    "arguments",
    "escaping",
    "errors",
    "timestamps",
    "counts",
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

LONGEST_MODULE = 400
RECORDED = Path("tests/history/released")
"""Histories as releases wrote them: data, however long."""
LONGEST_FUNCTION = 60
MAX_MODULES = 15
OF_ONE_METRIC = ("QPS", "PRIMARY", "THRESHOLD", '"qps"')
"""What a page that knows one metric alone, or one threshold, has of it."""

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


# --- sizes


def test_folders_stay_small(sources: list[Source]) -> None:
    none_of(full_folders(sources, MAX_MODULES))


def test_a_full_folder_is_seen() -> None:
    texts = dict.fromkeys(["a/x.py", "a/y.py", "a/__init__.py", "a/conftest.py", "a/deep/z.py"], "")
    assert full_folders(house(texts), 2) == []
    assert full_folders(house(texts | {"a/z.py": ""}), 2) == ["a: 3 modules"]


def test_modules_stay_short(sources: list[Source]) -> None:
    none_of(long_modules(sources, LONGEST_MODULE))


@pytest.mark.parametrize("suffix", [".lua", ".js", ".sql"])
def test_scripts_stay_short(suffix: str) -> None:
    scripts = [script for script in read(ROOT, ROOMS, suffix) if RECORDED not in script.path.parents]
    assert scripts
    none_of(long_modules(scripts, LONGEST_MODULE))


def test_a_long_module_is_seen() -> None:
    made_up = house({"a.py": "\n" * 3, "b.py": "\n" * 4})
    assert long_modules(made_up, 3) == ["b.py:4: 4 lines"]


def test_functions_stay_short(sources: list[Source]) -> None:
    none_of(long_functions(sources, LONGEST_FUNCTION))


def test_a_long_function_is_seen() -> None:
    text = "class C:\n    async def m(self):\n        1\n        2\n\ndef f():\n    1\n"
    assert long_functions(house({"a.py": text}), 2) == ["a.py:2: m has 3 lines"]


# --- names


def test_module_names_say_something(sources: list[Source]) -> None:
    none_of(catch_alls(sources, CATCH_ALL))


def test_a_catch_all_module_is_seen() -> None:
    made_up = house({"a/util.py": "", "shared/b.py": "", "a/utilisation.py": ""})
    assert places(catch_alls(made_up, CATCH_ALL)) == ["a/util.py:1", "shared/b.py:1"]


def test_a_class_name_means_one_thing(sources: list[Source]) -> None:
    none_of(repeated_classes(program(sources)))


def test_a_repeated_class_name_is_seen() -> None:
    made_up = house({"a.py": "class Run: ...\nclass _Row: ...", "b.py": "\nclass Run: ...\nclass _Row: ..."})
    assert repeated_classes(made_up) == ["a.py:1, b.py:2: class Run"]


def test_variables_say_what_they_stand_for(sources: list[Source]) -> None:
    none_of(pronouns(program(sources)))


@pytest.mark.parametrize(
    "text",
    [
        "for number, one in x: ...",
        "y = [each for each in x]",
        "its: int = 1",
        "def f(*, it): ...",
        "f = lambda it: 1",
        "with x as (one, other): ...",
        "try: ...\nexcept E as it: ...",
        "match x:\n    case [1, *its]: ...",
    ],
)
def test_a_pronoun_is_seen(text: str) -> None:
    assert len(pronouns(house({"a.py": text}))) == 1


def test_what_others_named_is_no_pronoun() -> None:
    assert pronouns(house({"a.py": "row.one = row['its'] = f(each=0)\nfor part, item in x: ..."})) == []


def test_limits_are_max_and_min(sources: list[Source]) -> None:
    none_of(other_limits(sources))


def test_a_limit_of_another_name_is_seen() -> None:
    made_up = house({"a.py": "MOST_ROWS = 1\n_LEAST_ROWS: int = 2\nALMOST_ALL = MAX_ROWS = MIN_ROWS = 3"})
    assert places(other_limits(made_up)) == ["a.py:1", "a.py:2"]


def test_every_module_says_what_it_is_for(sources: list[Source]) -> None:
    none_of(silent_modules(sources))


def test_a_silent_module_is_seen() -> None:
    made_up = house({"a.py": "import json\n", "b.py": '"""What it is for."""\n'})
    assert places(silent_modules(made_up)) == ["a.py:1"]


# --- messages


def test_no_message_offers_to_stop_what_is_not_ours(sources: list[Source]) -> None:
    """A neighbour's databases and timers are told of, and left alone."""
    lists = [ROOT / "tidemark", *(ROOT / "runners").glob("*.txt")]
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *lists]
    none_of(stops_of_others(program(sources), ROOT, documents))


def test_an_offer_to_stop_something_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`systemctl stop tidemark-nightly`\n`systemctl disable --now fstrim.timer`\n")
    made_up = house({"a.py": 'x = 1\ny = f"pkill -x {x}"\n', "b.py": "z = 'systemctl stop ' + x"})
    assert places(stops_of_others(made_up, tmp_path, [page])) == ["a.py:2", "b.py:1", "page.md:2"]


# --- what is started


def test_programs_are_told_their_variables(sources: list[Source]) -> None:
    """Of the rooms that compile and measure: what they inherit could change a result. Downloads need it."""
    rooms = [source for source in sources if source.path.parts[0] in ("build", "suites")]
    none_of(inherited_environments(rooms, {"build/sources"}))


def test_an_inherited_environment_is_seen() -> None:
    made_up = house({"a/x.py": "subprocess.run(['ls'])\nsubprocess.run(['ls'], env={})\nrun(['ls'])"})
    assert places(inherited_environments(made_up, {"b"})) == ["a/x.py:1"]
    assert inherited_environments(made_up, {"a"}) == []


def test_hints_are_remedies(sources: list[Source]) -> None:
    none_of(quoted_hints(program(sources)))


def test_a_hint_that_quotes_an_error_is_seen() -> None:
    made_up = house({"a.py": "E('x', hint=str(e))", "b.py": "\nE('x', hint=tail(out))\nE(hint=remedy(x))"})
    assert places(quoted_hints(made_up)) == ["a.py:1", "b.py:2"]


# --- what knows no metric


def test_pages_know_no_metric_of_their_own() -> None:
    """Unit, direction and threshold of what a page shows come with the judged value, as `Judged`."""
    report = ROOT / "report"
    files = [*report.rglob("*.py"), *report.glob("static/*.js")]
    none_of(words_in(files, ROOT, OF_ONE_METRIC))


def test_a_page_of_one_metric_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text("from suites.metric import QPS\nx = 1\nunit = 'qps'\ny = metrics['qps_cv']\n")
    assert places(words_in([page], tmp_path, OF_ONE_METRIC)) == ["page.py:1"]
    page.write_text('if (metric === "qps") return THRESHOLD / 100\n')
    assert len(words_in([page], tmp_path, OF_ONE_METRIC)) == 2


# --- what a move would break


def test_documents_name_files_that_exist() -> None:
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    none_of(dead_paths(ROOT, documents))


def test_a_dead_path_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text("`docs/page.md` and [itself](page.md#top)\n`build/gone.py`\n[gone](../gone.md#top)\n")
    assert places(dead_paths(tmp_path, [page])) == ["docs/page.md:2", "docs/page.md:3"]


def test_patches_name_objects(sources: list[Source]) -> None:
    none_of(patches_by_string(sources))


@pytest.mark.parametrize(
    "call",
    ["monkeypatch.setattr('a.b', 1)", "m.delattr(f'{a}.b')", "patch('a.b')", "mock.patch('a.b', new=1)"],
)
def test_a_patch_by_string_is_seen(call: str) -> None:
    assert places(patches_by_string(house({"a.py": f"\n{call}"}))) == ["a.py:2"]
    by_object = (
        "monkeypatch.setattr(a, 'b', 1)\nsetattr(a, 'b', 1)\npatch.object(a, 'b')\nsetattr('a.b', 'c', 1)"
    )
    assert patches_by_string(house({"a.py": by_object})) == []


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
