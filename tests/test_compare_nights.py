"""compare.py over nights, by branch and by machine, and its summary: outputs, refusals, what is escaped.

TIDEMARK_REWRITE_GOLDENS=1 .venv/bin/python -m pytest tests/test_compare_nights.py
"""

import argparse
import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import compare as program
from build.home import ROOT
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.escaping.characters import JOINER
from history.metric_words import words_of
from history.open import open_store
from history.rendering.csv_text import render_csv
from history.rendering.json_text import render_json
from history.rendering.plain_table import PLAIN_WIDTH, PlacedField, Screen
from history.rendering.sparkline import BARS, GAP, sparkline
from history.rendering.summary import MAX_CHARACTERS, render_summary
from history.rendering.table import left_out
from history.timestamps import moment, now
from runners import cli
from tests.history.handmade import NIGHT, record_steps, session_start
from tests.history.nightly import BASE, NEW, Calendar, opened, record_nights
from tests.history.outcomes import record_outcomes
from tests.suites.golden import of_any_checkout, require_golden

GOLDEN = ROOT / "tests/golden/compare"

MOVED = {"update-index": 0.9, "update-one": 0.96}


@pytest.fixture
def weeks(tmp_path: Path) -> Path:
    """Three weeks of one box, in which the updates got slower, and three nights of another."""
    clock = Calendar()
    path = tmp_path / "history.db"
    with opened(path, clock) as store:
        record_nights(store, clock, [1.0, 1.01, 0.99, 1.0, 0.0, 1.01, 1.0, 0.99])
        record_nights(store, clock, [1.0, 1.01, 0.99, 1.0, 0.0, 1.0], moved=MOVED)
        record_nights(store, clock, [1.0, 0.99, 1.01], base="postgres@17.12", moved=MOVED)
        record_nights(store, clock, [1.0, 1.0, 1.0], box="db2")
    return path


@pytest.mark.deep("compares whole histories in every format")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("session.txt", [BASE, NEW, "--machine", "db1"]),
        ("since.txt", ["postgres@17", NEW, "--since", "2026-03-10"]),
        ("decided.txt", ["postgres@17", NEW, "--since", "2026-03-10", "--step", "update-index"]),
        ("since.json", ["postgres@17", "--branch", NEW, "--since", "2026-03-10", "--step", "insert"]),
        ("groups.csv", ["postgres@17", "--branch", NEW, "--machine", "db1"]),
        ("summary.md", ["postgres@17", "--branch", NEW, "--machine", "db1", "--format", "summary"]),
        ("nights.md", ["postgres@17", NEW, "--since", "2026-03-10", "--format", "markdown"]),
    ],
)
def test_output(
    name: str,
    arguments: list[str],
    weeks: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(weeks.parent)
    ending = name.partition(".")[2]
    chosen = ["--format", ending] if ending in ("json", "csv") else []
    program.main([*arguments, *chosen, "--history", "history.db"])
    output = capsys.readouterr()
    assert output.err == ""
    require_golden(name, of_any_checkout(output.out), GOLDEN / "nights")


@pytest.mark.deep("compares whole histories in every format")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("show.txt", ["show"]),
        ("show.json", ["show", "--step", "insert", "--metric", "qps", "--format", "json"]),
        ("series.txt", ["series", "--step", "update-index", "--machine", "db1", "--since", "2026-03-05"]),
        ("series.csv", ["series", "--step", "insert", "--machine", "db1", "--format", "csv"]),
    ],
)
def test_views(
    name: str,
    arguments: list[str],
    weeks: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(weeks.parent)
    assert cli.main(["history", *arguments, "--history", "history.db"]) == 0
    found = capsys.readouterr().out
    require_golden(name, found, GOLDEN / "nights")


@pytest.mark.deep("compares whole histories in every format")
def test_several_series_are_listed_with_what_tells_them_apart(
    weeks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["history", "series", "--step", "insert", "--history", str(weeks)]) == 2
    said = capsys.readouterr().err
    assert "4 series match" in said
    assert f"--machine db2 --suite write-heavy --configuration 'short relaxed' --branch {NEW}" in said
    assert cli.main(["history", "series", "--step", "nope", "--history", str(weeks)]) == 2
    assert "no series matches" in capsys.readouterr().err
    assert cli.main(["history", "show", "--machine", "db9", "--history", str(weeks)]) == 2


# --- width


@pytest.mark.deep("compares whole histories in every format")
def test_columns_make_room_for_the_nights(weeks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.main([BASE, NEW, "--history", str(weeks), "--machine", "db1"])
    table, _, _ = capsys.readouterr().out.rpartition("\n\n")
    assert max(len(line) for line in table.splitlines() if "/tidemark " not in line) <= PLAIN_WIDTH
    with open_store(weeks) as store:
        options = CompareOptions(machine="db1")
        (contender,) = compare(store, parse_version(BASE), [parse_version(NEW)], options).contenders
    assert left_out(contender, 200) == ()
    narrow = left_out(contender, 40)
    assert narrow == tuple(sorted(narrow, key=lambda name: words_of(name).gives_way))


def test_a_table_of_the_screen() -> None:
    file = io.StringIO()
    rows = (
        [[PlacedField("insert"), PlacedField("1.00", "1;31")]],
        [[PlacedField("mean of all"), PlacedField("12.00")]],
    )
    Screen(file, 20).table(["step", "rel"], rows, left=["step"])
    Screen(file, 20).line("one two three four five")
    Screen(file, 20, colours=True).line("bad", "1;31")
    assert file.getvalue().splitlines() == [
        "step          rel",
        "─" * 17,
        "insert       1.00",
        "",
        "mean of all 12.00",
        "one two three four",
        "five",
        "\x1b[1;31mbad\x1b[0m",
    ]


# --- arguments


def test_dates_and_days() -> None:
    assert moment("2026-11-01") == datetime(2026, 11, 1, tzinfo=UTC)
    assert moment("2026-11-01T12:00:00+02:00") == datetime(2026, 11, 1, 10, tzinfo=UTC)
    assert abs(moment("30d") - (now() - timedelta(days=30))) < timedelta(minutes=1)
    for text in ("yesterday", "d", "x30d", "99999999999d"):
        with pytest.raises(argparse.ArgumentTypeError, match="neither a date"):
            moment(text)


@pytest.mark.parametrize("arguments", [[BASE], [BASE, NEW, "--since", "soon"], [BASE, "--branch", "x"]])
def test_bad_arguments_exit_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        program.main(arguments)
    assert leaving.value.code == 2
    assert "usage:" in capsys.readouterr().err


# --- sparklines


def test_a_bar_is_low_only_when_the_value_is() -> None:
    assert sparkline([1.0, None, 1.05, 1 / 1.05]) == BARS[3] + GAP + BARS[6] + BARS[0]
    assert sparkline([1.004, 0.996, 1.0]) == BARS[3] * 3, "noise is no drama"
    assert sparkline([0.5, 1.0, 2.0, 0.97]) == BARS[0] + BARS[3] + BARS[6] + BARS[3]
    assert sparkline([]) == ""
    assert sparkline([None, None]) == GAP * 2


@given(st.lists(st.none() | st.floats(1e-6, 1e6), max_size=40))
def test_a_bar_for_each_night(ratios: list[float | None]) -> None:
    bars = sparkline(ratios)
    assert [bar == GAP for bar in bars] == [ratio is None for ratio in ratios]
    assert set(bars) <= {*BARS, GAP}


# --- the summary


def test_a_failure_is_escaped_in_the_summary(tmp_path: Path) -> None:
    clock = Calendar()
    with opened(tmp_path / "history.db", clock) as store:
        record_nights(store, clock, [1.0], steps=("insert",))
        with store.database.writing() as connection:
            connection.exec_driver_sql(
                "UPDATE runs SET status = 'failed', failure = '</details> | @everyone `x`\n# head'"
                " WHERE repetition = 3"
            )
        text = render_summary(compare(store, parse_version(BASE), [parse_version(NEW)]))
    assert text.count("</details>") == 1
    assert f"&lt;/details> \\| @{JOINER}everyone \\`x\\` # head" in text


def test_the_first_line_says_how_it_came_out(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record_outcomes(store)
        text = render_summary(compare(store, parse_version(BASE), [parse_version("postgres@18.6")]))
    assert text.splitlines()[0] == (
        "**postgres@18.6 against postgres@17.11: qps (queries/s): 1 regression, 2 improvements, 1 unchanged, "
        "1 inconclusive, 3 without a verdict; worst: update-nonindex 0.85 (0.84–0.86); "
        "3 findings that are worse.**"
    )
    table, _, folded = text.partition("<details>")
    assert "update-inlist" not in table, "it is unchanged"
    assert "update-inlist" in folded


def test_what_is_undecided_is_not_called_the_worst(tmp_path: Path) -> None:
    """Its ratio may be above 1."""
    rounds = {BASE: [1000.0, 1010.0, 990.0], NEW: [1100.0, 1300.0, 900.0]}
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record_steps(store, session_start(), {"insert": rounds})
        text = render_summary(compare(store, parse_version(BASE), [parse_version(NEW)]))
    assert "0 regressions, 0 improvements, 0 unchanged, 1 inconclusive.**" in text


@pytest.mark.deep("compares whole histories in every format")
def test_a_summary_that_is_too_long_is_cut_and_says_so(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record_outcomes(store)
        short = compare(store, parse_version(BASE), [parse_version("postgres@18.6")])
        long = replace(short.contenders[0], warnings=("x" * (MAX_CHARACTERS // 20),) * 20)
        cut = render_summary(replace(short, contenders=(long,)))
        many = render_summary(replace(short, contenders=(long, *short.contenders * 199)))
    for text in (cut, many):
        assert len(text) <= MAX_CHARACTERS
        assert text.endswith("has everything.*\n")
        assert "worst: update-nonindex" in text
        assert text.count("<details>") == text.count("</details>")


# --- what programs read


@pytest.mark.deep("compares whole histories in every format")
def test_json_and_csv_hold_groups_and_trends(weeks: Path) -> None:
    with open_store(weeks) as store:
        options = CompareOptions(machine="db1")
        comparison = compare(store, parse_version("postgres@17"), [], options, [parse_version(NEW)])
    (contender,) = json.loads(render_json(comparison))["contenders"]
    assert contender["base"] == "postgres@17.12"
    assert [(group["group"], group["steps"]) for group in contender["group_means"]] == [("updates", 2)]
    assert contender["group_means"][0]["ratio"] == pytest.approx(contender["group_means"][0]["ratios"]["qps"])
    trend = contender["steps"][0]["trend"]
    assert len(trend) == 16
    assert trend.count(None) == 2
    rows = list(csv.DictReader(io.StringIO(render_csv(comparison))))
    (mean,) = [row for row in rows if not row["step"] and row["metric"] == "qps"]
    assert (mean["group"], mean["group_steps"]) == ("updates", "2")
    assert float(mean["ratio"]) == pytest.approx(contender["group_means"][0]["ratio"])
