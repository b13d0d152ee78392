"""Names of metrics in the code: which modules produce them, and where else they may be spelled."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.home import ROOT
from build.version import Engine
from suites import metrics
from suites.engines import ENGINE_CLASSES
from suites.innodb.engine import InnodbEngine
from suites.metrics import METRICS, OPERATION_TIME, PRIMARY

REGISTRY = ROOT / "suites/metrics.py"

# --- one producer


def modules(*rooms: str) -> list[Path]:
    files = [path for room in rooms for path in [ROOT / room, *(ROOT / room).rglob("*.py")]]
    return sorted(path.relative_to(ROOT) for path in files if path.suffix == ".py")


def texts(source: str) -> Iterator[str]:
    """The texts of a module without its docstrings."""
    tree = ast.parse(source)
    said = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def imported(source: str) -> set[str]:
    """What a module takes by name from the registry, such as QPS."""
    froms = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    given = [
        getattr(metrics, name.name)
        for node in froms
        if node.module == metrics.__name__
        for name in node.names
    ]
    lists = [value for value in given if isinstance(value, tuple)]
    lists += [tuple(value.values()) for value in given if isinstance(value, dict)]
    return {value for values in (given, *lists) for value in values if isinstance(value, str)}


def produced(source: str) -> set[str]:
    """The metrics that are whole texts of a module, or that a constant of the registry stands for."""
    return (set(texts(source)) | imported(source)) & METRICS.keys()


PRODUCERS = {
    path: produced((ROOT / path).read_text()) for path in modules("suites") if ROOT / path != REGISTRY
}


FAMILY = frozenset(engine for engine, of in ENGINE_CLASSES.items() if isinstance(of, InnodbEngine))
"""The engines that share suites/innodb/."""


def engines_of(folder: str) -> frozenset[Engine]:
    """The engines whose metrics a folder of suites/ produces; none for what is of no engine."""
    return FAMILY if folder == "innodb" else frozenset(engine for engine in Engine if engine == folder)


def test_every_row_has_a_producer_that_spells_its_name() -> None:
    """A search for the name finds both; of an engine's own metric the producer is in the engine's folder."""
    assert len(FAMILY) == 2
    for name, metric in METRICS.items():
        if name == OPERATION_TIME:
            continue  # which other tools record
        producers = [path for path, names in PRODUCERS.items() if name in names]
        assert producers, f"nothing below suites/ records {name}"
        folders = frozenset[Engine]().union(*(engines_of(path.parts[1]) for path in producers))
        assert folders in (set(), metric.engines), (
            f"{name}: its row says {set(metric.engines)}, not {folders}"
        )


# --- names are spelled in the registry and where they are produced

ORDINARY_WORDS = {"errors", "seconds", "transactions"}
"""Names of metrics that name fields, options and units too: a text that holds them means nothing."""

SPELLED = {
    ("history/store/schema.py", "qps"): "a column of the table samples",
    ("history/store/session_writes.py", "qps"): "the same column",
    ("history/transfer/merging.py", "qps"): "the same column",
    ("history/transfer/format_detection.py", "qps"): "a part of the file names of mytools",
    ("runners/bisect/arguments.py", "latency_p99_ms"): "an example in a help text",
    ("runners/history/arguments.py", "latency_p99_ms"): "likewise",
    ("runners/history/arguments.py", "operation_ms"): "likewise",
    ("runners/history/arguments.py", "qps"): "likewise",
    ("runners/history/arguments.py", "tps"): "likewise",
}
"""Where a name may be spelled to the right of the suites, and why."""

SPELLING = ("history/transfer/foreign/", "history/metric_words.py")
"""Where the numbers of other tools get names of ours, and names get words."""


def spelled(source: str) -> set[str]:
    """The metrics that the texts of a module name, as words of their own."""
    words = {word for text in texts(source) for word in re.findall(r"\w+", text)}
    return (words & METRICS.keys()) - ORDINARY_WORDS


@pytest.mark.deep("a whole command on a whole history")
def test_nothing_behind_the_suites_spells_the_name_of_a_metric() -> None:
    found = {
        (str(path), name)
        for path in modules("history", "runners", "compare.py")
        if not str(path).startswith(SPELLING)
        for name in spelled((ROOT / path).read_text())
    }
    assert found == SPELLED.keys(), "ask the registry, or name the primary metric PRIMARY"


def test_the_primary_metric_is_spelled_in_the_registry_alone() -> None:
    found = {
        str(path)
        for path in modules("build", "suites", "benchmarks")
        if f'"{PRIMARY}"' in (ROOT / path).read_text()
    }
    assert found == {"suites/metrics.py"}


def test_a_spelled_name_is_seen() -> None:
    assert spelled('"""Of qps."""\nif key.metric == "qps":\n    pass') == {"qps"}
    assert spelled("SQL = \"SELECT value FROM points WHERE metric = 'wal_bytes_per_op'\"") == {
        "wal_bytes_per_op"
    }
    assert not spelled('"""Of wal_bytes_per_op."""\nseconds = options["seconds"]')
