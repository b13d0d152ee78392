"""Costs beside ratios, as compare.py tells them: what is not explained by cost, and what varies more."""

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compare as program
from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.explanation import Variation, imported_stand_ins, unknown_costs
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison, ContenderComparison, StepComparison
from history.comparison.verdict import Judged, MetricChange, Verdict
from history.metric_words import WORDS
from history.numbers import amount
from history.open import open_store
from history.rendering.csv_text import render_csv
from history.rendering.json_text import render_json
from history.rendering.markdown import render_markdown
from history.rendering.plain_table import Screen
from history.rendering.terminal import render_terminal
from history.stats.estimators import Interval
from history.store.records import Session, SessionStatus
from suites.metrics import (
    CONNECTION_KIB,
    DEAD_TUPLES,
    DIRTY_PAGES,
    INSTRUCTIONS,
    OPERATION_TIME,
    beside_verdict,
)
from tests.history.handmade import NIGHT, run_record, session_start
from tests.history.outcomes import record_outcomes

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"
Values = Mapping[str, list[float]]


def compared(path: Path, base: Values, contender: Values, step: str = "delete") -> Comparison:
    """One step of base and contender: metric -> its value in each repetition, written and read back."""
    with open_store(path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(replace(session_start(), options={"threads": 2}))
        for version, metrics in ((BASE, base), (CONTENDER, contender)):
            for repetition, numbers in enumerate(zip(*metrics.values(), strict=True), start=1):
                values = dict(zip(metrics, numbers, strict=True))
                record = run_record(values, version=version, step=step, repetition=repetition)
                store.record_run(session, record)
        store.finish_session(session, SessionStatus.FINISHED)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())


def terminal(comparison: Comparison, width: int = 100, *, costs: bool = False) -> str:
    file = io.StringIO()
    render_terminal(comparison, Screen(file, width), costs=costs)
    return file.getvalue()


def flat(text: str) -> str:
    """Without the line breaks that the width of the terminal made."""
    return " ".join(text.split())


def json_step(comparison: Comparison) -> dict[str, Any]:
    (step,) = json.loads(render_json(comparison))["contenders"][0]["steps"]
    assert isinstance(step, dict)
    return step


# --- not explained by cost

STALLED: Values = {
    "qps": [18000, 18030, 17980],
    "server_cpu_us_per_op": [80, 80.1, 79.9],
    "client_cpu_us_per_op": [25, 25, 25.1],
    "server_cs_per_op": [2.50, 2.51, 2.50],
    "server_read_kb_per_op": [0, 0, 0],
    "wal_bytes_per_op": [410, 410, 410],
}
"""Delete between two minor releases: the older one waited on something that costs nothing."""

FREE: Values = {**STALLED, "qps": [26500, 26540, 26470], "server_cs_per_op": [2.51, 2.50, 2.50]}
"""The same work at the same cost, 47 % faster."""


def test_a_stalled_base_is_not_read_as_a_faster_contender(tmp_path: Path) -> None:
    comparison = compared(tmp_path, STALLED, FREE)
    (step,) = comparison.contenders[0].steps
    assert step.judged.verdict is Verdict.IMPROVEMENT
    assert step.explained_by == ()
    table = terminal(comparison)
    (row,) = [line for line in table.splitlines() if line.startswith("delete ")]
    assert "1.47" in row
    assert row.rstrip().endswith(" improvement?")
    line = "delete: time per query -32 %: no cost explains it; 32 % is less waiting"
    assert line in table.splitlines()
    assert json_step(comparison)["explained_by"] == []
    assert "| improvement? |" in render_markdown(comparison)
    first, *others = csv.DictReader(io.StringIO(render_csv(comparison)))
    assert (first["verdict"], first["explained_by"]) == ("improvement", "not explained by cost")
    assert not any(row["explained_by"] for row in others)


def test_a_stalled_contender_is_a_regression_all_the_same(tmp_path: Path) -> None:
    """It may have waited on a lock of its own making: the doubt is said, and the exit code stays 1."""
    comparison = compared(tmp_path, FREE, STALLED)
    assert comparison.contenders[0].steps[0].is_unexplained
    assert "| **regression?** |" in render_markdown(comparison)
    assert exit_code(comparison) == 1


def test_a_cost_that_moved_explains(tmp_path: Path) -> None:
    dearer: Values = {
        **FREE,
        "server_cpu_us_per_op": [105, 105.2, 104.9],
        "wal_bytes_per_op": [350, 350, 350],
    }
    comparison = compared(tmp_path, FREE, {**dearer, "qps": [18000, 18030, 17980]})
    assert json_step(comparison)["explained_by"] == ["server_cpu_us_per_op"]
    table = terminal(comparison)
    assert "regression?" not in table
    explained = "delete: time per query +47 %: server CPU +31 % explains 31 of 47 %; 16 % is waiting"
    assert explained in table.splitlines()
    assert "1.31+" in table
    assert "0.85-" in table


def test_a_cost_that_moved_the_wrong_way_does_not(tmp_path: Path) -> None:
    cheaper = {**STALLED, "server_cpu_us_per_op": [70, 70.1, 69.9], "server_cs_per_op": [2.5, 3.5, 1.5]}
    comparison = compared(tmp_path, FREE, cheaper)
    assert json_step(comparison)["explained_by"] == []
    text = flat(terminal(comparison))
    assert "not known whether it is due to context switches" in text


def test_a_part_that_is_explained_is_said_beside_what_is_not_known(tmp_path: Path) -> None:
    partly: Values = {
        **STALLED,
        "server_cpu_us_per_op": [88, 88.1, 87.9],
        "client_cpu_us_per_op": [20, 33, 28],
    }
    text = flat(terminal(compared(tmp_path, FREE, {**partly, "server_cs_per_op": [2.5, 3.5, 1.5]})))
    assert (
        "delete: time per query +47 %: server CPU +10 % explains 10 of 47 %; "
        "not known whether the rest is due to client CPU Ratios"
    ) in text, "context switches have no size"


def test_a_cost_without_a_size_is_named_where_cpu_does_not_explain(tmp_path: Path) -> None:
    flushing: Values = {
        **STALLED,
        "server_cs_per_op": [4.8, 4.81, 4.79],
        "client_cpu_us_per_op": [20, 33, 28],
    }
    text = flat(terminal(compared(tmp_path, FREE, flushing)))
    assert (
        "delete: time per query +47 %: with context switches up; "
        "not known whether it is due to client CPU Ratios"
    ) in text


def test_zero_on_both_sides_is_no_doubt(tmp_path: Path) -> None:
    (step,) = compared(tmp_path, FREE, STALLED).contenders[0].steps
    (read,) = [judged for judged in step.beside if judged.metric == "server_read_kb_per_op"]
    few = replace(read, change=MetricChange.UNKNOWN)
    assert unknown_costs(None, [few], None) == ()
    assert unknown_costs(None, [replace(few, contender=13.0)], None)


def test_reads_of_next_to_nothing_are_no_doubt(tmp_path: Path) -> None:
    reading = {**STALLED, "server_read_kb_per_op": [0.004, 0.0, 0.01]}
    assert "not known" not in flat(terminal(compared(tmp_path, FREE, reading)))


@pytest.mark.deep("compares whole histories in every format")
@settings(max_examples=40, deadline=None)
@given(st.floats(0.3, 3.0), st.floats(0.3, 3.0), st.floats(0.3, 3.0), st.sampled_from([0.001, 0.2]))
def test_no_cost_explains_more_than_there_is(
    tmp_path_factory: pytest.TempPathFactory, speed: float, server: float, client: float, noise: float
) -> None:
    other = {
        "qps": [speed * value for value in STALLED["qps"]],
        "server_cpu_us_per_op": [80 * server, 80 * server * (1 + noise), 80 * server * (1 - noise)],
        "client_cpu_us_per_op": [25 * client, 25 * client * (1 + noise), 25 * client * (1 - noise)],
    }
    comparison = compared(tmp_path_factory.mktemp("session"), STALLED, {**STALLED, **other})
    text = flat(terminal(comparison))
    parts = re.findall(r"explains (\d+) of (\d+) %", text)
    assert sum(int(part) for part, _ in parts) <= min((int(whole) for _, whole in parts), default=0) + 1
    for part, whole in parts:
        assert int(part) <= int(whole)
    rest = re.search(r"; (\d+) % is (less )?waiting", text)
    if rest and parts:
        assert abs(sum(int(part) for part, _ in parts) + int(rest[1]) - int(parts[0][1])) <= len(parts)


def test_reads_that_appear_from_nothing_are_shown(tmp_path: Path) -> None:
    """There is no ratio to zero, so that nothing is proven; but the amounts are in sight."""
    reading = {**STALLED, "server_read_kb_per_op": [12.0, 14.0, 13.0]}
    comparison = compared(tmp_path, FREE, reading)
    assert "not known whether it is due to read (0 -> 13 KiB/query)" in flat(terminal(comparison))
    (row,) = [line for line in terminal(comparison, costs=True).splitlines() if " read  " in line]
    assert row.split() == ["delete", "read", "KiB/query", "0", "13", "–", "–", "unknown"]


def test_what_no_machine_recorded_is_no_row_of_costs(tmp_path: Path) -> None:
    uncounted = terminal(compared(tmp_path, STALLED, FREE), costs=True)
    assert "instructions" not in uncounted
    (tmp_path / "counted").mkdir()
    counted = {"server_instructions_per_op": [52000.0, 52010, 51990]}
    more = {"server_instructions_per_op": [61000.0, 61020, 60990]}
    comparison = compared(tmp_path / "counted", {**FREE, **counted}, {**STALLED, **more})
    (row,) = [line for line in terminal(comparison, costs=True).splitlines() if "instructions/" in line]
    assert row.split()[1:] == [
        *("hardware", "instructions", "instructions/query"),
        "52000",
        "61003",
        "1.17",
        "1.17–1.17",
        "more",
    ]
    assert json_step(comparison)["explained_by"] == ["server_instructions_per_op"]


# --- variation

STEADY: Values = {
    "qps": [1000, 1001, 999],
    "qps_cv": [0.12, 0.121, 0.119],
    "qps_p1_over_median": [0.8, 0.8, 0.8],
}
SWINGING: Values = {**STEADY, "qps_cv": [0.31, 0.33, 0.3], "qps_p1_over_median": [0.41, 0.4, 0.42]}


def test_a_step_that_varies_more_is_flagged(tmp_path: Path) -> None:
    comparison = compared(tmp_path, STEADY, SWINGING, "update-index")
    lines = terminal(comparison).splitlines()
    assert "varies more: update-index, cv 0.12 -> 0.31 (2.61x, 2.22–3.07)" in lines
    assert "varies more: update-index, p1/median 0.8 -> 0.41 (0.51x, 0.46–0.57)" in lines
    assert json_step(comparison)["variation"] == "worse"
    assert exit_code(comparison) == 0, "variation is no verdict on the judged metric"


def test_a_step_that_varies_less_is_not_flagged(tmp_path: Path) -> None:
    comparison = compared(tmp_path, SWINGING, STEADY)
    assert comparison.contenders[0].steps[0].variation is Variation.BETTER
    assert "varies more" not in terminal(comparison)


def test_variation_as_the_judged_metric_is_flagged_and_exits_1(tmp_path: Path) -> None:
    compared(tmp_path, STEADY, {**SWINGING, "qps_p1_over_median": [0.8, 0.8, 0.8]})
    with open_store(tmp_path / "history.db") as store:
        options = CompareOptions(metric="qps_cv")
        comparison = compare(store, parse_version(BASE), [parse_version(CONTENDER)], options)
    assert comparison.contenders[0].steps[0].variation is Variation.WORSE
    assert "varies more: delete, cv 0.12 -> 0.31" in terminal(comparison)
    assert exit_code(comparison) == 1


# --- what a table holds


def test_every_metric_has_a_name() -> None:
    shown = {*beside_verdict(), *imported_stand_ins().values(), *beside_verdict(primary=CONNECTION_KIB)}
    shown.add(OPERATION_TIME)  # which is judged itself, in results of other tools
    shown.add("latency_mean_ms")  # of imported sessions, in series
    shown |= {DEAD_TUPLES, DIRTY_PAGES}  # of which events are a part
    assert {name for name, words in WORDS.items() if words.label} == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (1e-6, "<0.0001"),
        (4e-4, "0.0004"),
        (0.0125, "0.0125"),
        (999.94, "999.9"),
        (123456.7, "123457"),
    ],
)
def test_amounts_have_no_exponent(value: float | None, text: str) -> None:
    assert amount(value) == text


def made(judged: Judged, beside: list[Judged], verdict: Verdict) -> Comparison:
    """A comparison of a step with a name as long as the longest of our suites."""
    step = StepComparison(
        "update-nonindex", replace(judged, verdict=verdict), tuple(beside), smallest_visible=0.0987
    )
    session = Session(
        **vars(session_start()), id=1, status=SessionStatus.FINISHED, started_at=NIGHT, ended_at=NIGHT
    )
    contender = ContenderComparison(
        parse_version(BASE), parse_version(CONTENDER), session, (step,) * 2, (), ()
    )
    return Comparison(parse_version(BASE), (contender,), CompareOptions(), "history.db")


amounts = st.floats(1e-6, 999_999)
ratios = st.floats(0.01, 9.99)

TIMED = [name for name in beside_verdict() if name != INSTRUCTIONS]


@pytest.mark.deep("compares whole histories in every format")
@settings(max_examples=40)  # drawing tables takes its time
@given(
    st.lists(
        st.tuples(amounts, ratios, st.sampled_from(MetricChange)),
        min_size=1 + len(TIMED),
        max_size=1 + len(TIMED),
    ),
    st.data(),
)
def test_the_tables_of_timed_rounds_fit_a_hundred_columns(
    numbers: list[tuple[float, float, MetricChange]], data: st.DataObject
) -> None:
    def one(metric: str, amount: float, value: float, change: MetricChange) -> Judged:
        interval = Interval(value, value * 0.9, value * 1.1, 20)
        return Judged(
            metric, amount, min(amount * value, 999_999), value, interval, change, 20, 0.02, "round"
        )

    judged, *beside = (one(metric, *number) for metric, number in zip(("qps", *TIMED), numbers, strict=True))
    comparison = made(judged, beside, data.draw(st.sampled_from(Verdict)))
    narrow, wide = (terminal(comparison, width, costs=True).splitlines() for width in (100, 200))
    rows = [
        [line.rstrip() for line in lines if line.startswith(("update-nonindex ", "geomean"))]
        for lines in (narrow, wide)
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 2 * (1 + len(TIMED)) + 1


def test_marks_stand_behind_digits_that_stay_below_each_other(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        record_outcomes(store)
        comparison = compare(store, parse_version("postgres@17.11"), [parse_version(CONTENDER)])
    table = terminal(comparison).splitlines()
    rows = [line for line in table if line.startswith(("update-in", "delete ", "geomean"))]
    ends = {match.end() for row in rows for match in re.finditer(r"[01]\.\d\d(?=[ +-])", row)}
    assert len(ends) == 2 + 6, "ratio, interval and the six columns beside them end in one place each"


def test_colours_and_signs_say_the_same(tmp_path: Path) -> None:
    dearer: Values = {
        **STALLED,
        "server_cpu_us_per_op": [105, 105.2, 104.9],
        "wal_bytes_per_op": [350, 350, 350],
    }
    comparison = compared(tmp_path, FREE, dearer)
    file = io.StringIO()
    render_terminal(comparison, Screen(file, colours=True))
    assert "\x1b[1;31m1.31+" in file.getvalue()
    assert "\x1b[1;32m0.85-" in file.getvalue()


def test_options_reach_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    comparison = compared(tmp_path, STALLED, FREE)
    arguments = [BASE, CONTENDER, "--history", str(tmp_path / "history.db"), "--costs"]
    where = replace(comparison, history=str(tmp_path / "history.db"))
    program.main([*arguments, "--format", "markdown"])
    assert capsys.readouterr().out == render_markdown(where, costs=True)
    program.main([*arguments, "--format", "json"])
    assert capsys.readouterr().out == render_json(where)


# --- a cost that certainly grew


@pytest.mark.parametrize(
    ("factor", "wal", "code"),
    [
        (1.0, [575, 574, 576], 1),
        (1.0, [411, 410, 412], 0),
        (1.0, [390, 590, 430], 2),
        (1.2, [575, 574, 576], 1),
    ],
    ids=["grew", "did not", "perhaps", "of a faster version"],
)
def test_a_cost_that_certainly_grew_exits_1(
    tmp_path: Path, factor: float, wal: list[float], code: int
) -> None:
    base: Values = {"qps": [18000, 18030, 17980], "wal_bytes_per_op": [410, 411, 410]}
    contender: Values = {"qps": [factor * qps for qps in base["qps"]], "wal_bytes_per_op": wal}
    assert exit_code(compared(tmp_path, base, contender)) == code
