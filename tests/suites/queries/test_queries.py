"""The client of long queries without a server: its statements, and what a right answer is."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.definition import SuiteError, load_suite
from suites.generators.load import LoadError
from suites.generators.queries.client import statements_of
from suites.generators.queries.conductor import difference, load_of

SUITE = load_suite("tpch")


def test_the_suite_has_22_queries_of_one_statement() -> None:
    assert [step.name for step in SUITE.steps] == [f"q{number}" for number in range(1, 23)]
    for step in SUITE.steps:
        assert step.reads_only
        (text,) = statements_of(SUITE.folder / str(step.options["file"]), 1)
        assert text.startswith("SELECT")


def test_the_scale_factor_is_filled_in() -> None:
    (text,) = statements_of(SUITE.folder / "q11.sql", 1)
    assert "0.0001 / 0.01\n" in text
    (text,) = statements_of(SUITE.folder / "q11.sql", 1_000)
    assert "0.0001 / 10.00\n" in text


# --- answers


@pytest.mark.parametrize(
    ("known", "cell", "same"),
    [
        ("100", "100.00", True),
        ("100", "101", False),
        ("100.00", "100.01", True),
        ("100.00", "100.02", False),
        ("25.5375871168549970", "25.537587", True),
        ("25.5375871168549970", "25.537589", False),
        ("1998-09-02", "1998-09-03", False),
        ("100", None, False),
        (None, None, True),
        ("100", "a word", False),
    ],
)
def test_cells_of_two_engines(known: str | None, cell: str | None, same: bool) -> None:
    wrong = None if same else f"row 2: {cell} instead of {known}"
    assert difference([("a", "1"), ("b", known)], [("a", "1"), ("b", cell)]) == wrong


@given(st.lists(st.tuples(st.text(), st.decimals(-(10**9), 10**9, places=2)), max_size=130))
def test_a_result_is_the_same_as_itself_and_no_longer_one(rows: list[tuple[str, Decimal]]) -> None:
    cells = [(name, str(value)) for name, value in rows]
    assert difference(cells, cells) is None
    assert difference(cells, [*cells, ("more", "1")]) == f"{len(rows) + 1} rows instead of {len(rows)}"


# --- loads and rules


def test_a_load_is_of_the_measured_executions_alone() -> None:
    load = load_of([("q1", 0.2), ("q1", 0.4)], 0.6, executions=3)
    assert (load.transactions, load.watched_queries) == (2, 3)
    assert (load.seconds, load.kinds) == (0.6, {})
    assert load.latency_ms == pytest.approx({"mean": 300, "p50": 300, "max": 400})


@pytest.mark.parametrize("runs", [[], [("q1", 0.0)]])
def test_no_execution_is_no_rate_of_zero(runs: list[tuple[str, float]]) -> None:
    with pytest.raises(LoadError, match="no query was finished"):
        load_of(runs, 0.0, 0)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('file = "q1.sql"', 'file = "q0.sql"', "there is no file q0.sql"),
        ('file = "q1.sql"', 'script = "q1.sql"', "takes file, the name"),
        ('file = "q1.sql"', 'file = "q1.sql", keys = 15', "takes file, the name"),
    ],
)
def test_a_suite_with_a_mistake_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    for file in SUITE.folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    toml = tmp_path / "suite.toml"
    toml.write_text(toml.read_text().replace(old, new, 1))
    with pytest.raises(SuiteError) as caught:
        load_suite(f"{tmp_path}/")
    assert reason in caught.value.what
