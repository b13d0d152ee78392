"""The client of long queries without a server: its statements, and what a right answer is."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.definition import SuiteError, load_suite
from suites.generators.load import LoadError
from suites.generators.queries.client import statements_of
from suites.generators.queries.conductor import (
    AnswerError,
    Kind,
    answer_from,
    answers_of,
    difference,
    is_same,
    load_of,
)

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
    ("kind", "cell", "same"),
    [
        (Kind.EXACT, "100.00", True),
        (Kind.EXACT, "100.01", False),
        (Kind.SUM, "200", True),
        (Kind.SUM, "200.01", False),
        (Kind.SUM, None, False),
        (Kind.SHARE, "100.999", True),
        (Kind.SHARE, "101.006", False),
        (Kind.SHARE, "a word", False),
    ],
)
def test_tolerances(kind: Kind, cell: str | None, same: bool) -> None:
    assert is_same(kind, "100", cell) is same


@given(st.lists(st.tuples(st.text(), st.decimals(-(10**9), 10**9, places=2)), max_size=130))
def test_a_result_is_the_answer_that_it_makes(rows: list[tuple[str, Decimal]]) -> None:
    cells = [(name, str(value)) for name, value in rows]
    kinds = (Kind.EXACT, Kind.SUM)
    assert difference(answer_from(kinds, cells), cells) is None
    assert difference(answer_from(kinds, cells), [*cells, ("more", "1")]) is not None


def test_a_wrong_row_behind_those_that_are_kept_is_seen_in_the_totals() -> None:
    rows = [(str(number), "1.00") for number in range(150)]
    known = answer_from((Kind.EXACT, Kind.SUM), rows)
    wrong = [*rows[:-1], ("149", "500.00")]
    assert difference(known, wrong) == "column 2 comes to 649.00 instead of 150.00"


@pytest.mark.parametrize("scale", [1, 100])
def test_every_query_has_an_answer(scale: int) -> None:
    assert answers_of(SUITE.folder, scale).keys() == {step.name for step in SUITE.steps}


SEEN = {
    "q1": (2, {0: "N", 1: "O", 2: "74476040.00", 9: "2920374"}),
    "q3": (0, {0: "2456423", 1: "406181.0111"}),
    "q5": (0, {0: "INDONESIA", 1: "55502041.17"}),
    "q6": (0, {0: "123141078.2283"}),
    "q7": (0, {3: "54639732.7336"}),
    "q10": (0, {0: "57040"}),
    "q12": (0, {1: "6202", 2: "9324"}),
    "q14": (0, {0: "16.3808"}),
    "q15": (0, {0: "8449", 4: "1772627.2087"}),
    "q17": (0, {0: "348406.05"}),
    "q19": (0, {0: "3083843.06"}),
    "q22": (0, {0: "13", 1: "888", 2: "6737713.99"}),
}
"""Cells of published answers at scale factor 1: a row, and values by column."""

COUNTS = {"q1": 4, "q2": 100, "q9": 175, "q11": 1048, "q13": 42, "q16": 18314, "q18": 57, "q20": 186}
"""Rows of published answers at scale factor 1."""


def test_the_answers_are_the_published_ones() -> None:
    answers = answers_of(SUITE.folder, 100)
    for step, (row, cells) in SEEN.items():
        for column, cell in cells.items():
            kind = answers[step].kinds[column]
            assert is_same(kind, cell, answers[step].rows[row][column]), (step, column)
    assert {step: answers[step].count for step in COUNTS} == COUNTS
    assert [row[1] for row in answers["q4"].rows] == ["10594", "10476", "10410", "10556", "10487"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b"{",
        b'{"q1": 1}',
        b'{"q1": {"columns": ["sum"], "rows": [[]], "totals": [1], "count": 1}}',
    ],
)
def test_a_damaged_file_of_answers_is_refused(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "answers-1.json").write_bytes(damage)
    with pytest.raises(AnswerError, match="known answers cannot be read"):
        answers_of(tmp_path, 1)


# --- loads and rules


def test_a_load_is_of_the_measured_executions_alone() -> None:
    load = load_of([0.2, 0.4], executions=3)
    assert (load.transactions, load.watched_queries) == (2, 3)
    assert load.seconds == pytest.approx(0.6)
    assert load.latency_ms == pytest.approx({"mean": 300, "p50": 300, "max": 400})


@pytest.mark.parametrize("runs", [[], [0.0]])
def test_no_execution_is_no_rate_of_zero(runs: list[float]) -> None:
    with pytest.raises(LoadError, match="no query was finished"):
        load_of(runs, 0)


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


def test_the_answers_are_json_that_a_person_can_read() -> None:
    for scale in (1, 100):
        text = (SUITE.folder / f"answers-{scale}.json").read_text(encoding="utf-8")
        assert max(map(len, text.splitlines())) < 500
        assert json.loads(text)
