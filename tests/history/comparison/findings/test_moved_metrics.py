"""Metrics beside throughput: which differences are certain, what they make of a step, and what is unknown."""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from build.version import Engine, parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.findings.moved_metrics import moved_metrics
from history.comparison.intervals import Intervals
from history.comparison.judging import judge_all
from history.comparison.options import CompareOptions
from history.comparison.pairs import Pair, StepPairs
from history.comparison.result import Comparison, ContenderComparison
from history.open import open_store
from history.rendering.json_text import render_json
from history.rendering.notes import notes
from history.rendering.plain_table import Screen
from history.rendering.summary import render_summary
from history.rendering.terminal import render_terminal
from history.store.records import Session, SessionStatus
from runners.trying.answer import TryAnswer, markdown
from runners.trying.changes import changes_of
from runners.trying.sides import Sides
from suites.metrics import METRICS, beside_verdict
from tests.history.handmade import NIGHT, run_record, session_start

BASE, CONTENDER = "postgres@18.5", "postgres@18.6"
SAME = {
    "qps": [1000.0, 1001.0, 999.0],
    "wal_bytes_per_op": [400.0, 400.4, 399.8],
    "server_cpu_us_per_op": [100.0, 100.1, 99.9],
    "index_bytes": [8.0e6, 8.0e6, 8.0e6],
}

Values = Mapping[str, Sequence[float]]


def compared(folder: Path, contender: Values, base: Values | None = None) -> Comparison:
    with open_store(folder / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start())
        for version, values in ((BASE, {**SAME, **(base or {})}), (CONTENDER, {**SAME, **contender})):
            for number in range(3):
                rounds = {name: found[number] for name, found in values.items()}
                store.record_run(session, run_record(rounds, version=version, repetition=number + 1))
        store.finish_session(session, SessionStatus.FINISHED)
        return compare(store, parse_version(BASE), [parse_version(CONTENDER)], CompareOptions())


def findings(comparison: Comparison) -> list[str]:
    return [found.line for step in comparison.contenders[0].steps for found in step.findings]


def test_equal_metrics_are_no_difference(tmp_path: Path) -> None:
    same = compared(tmp_path, {})
    assert (findings(same), exit_code(same)) == ([], 0)
    assert not [line for line in notes(same, same.contenders[0]) if line.startswith("may be worse")]


def test_more_wal_is_worse(tmp_path: Path) -> None:
    more = compared(tmp_path, {"wal_bytes_per_op": [564.0, 564.5, 563.8]})
    (line,) = findings(more)
    assert line.startswith("insert: WAL or redo +41.0 % (+4")
    assert notes(more, more.contenders[0])[0] == line
    assert exit_code(more) == 1


@pytest.mark.parametrize(
    ("base", "contender", "code"),
    [(0.86, 3.49, 0), (0.0, 3.0, 0), (2.0, 40.0, 1), (19.5, 20.5, 0)],
)
def test_what_is_next_to_nothing_in_both_is_no_difference(
    tmp_path: Path, base: float, contender: float, code: int
) -> None:
    wal = [[value * (1 + error) for error in (0, 0.004, -0.004)] for value in (base, contender)]
    found = compared(tmp_path, {"wal_bytes_per_op": wal[1]}, {"wal_bytes_per_op": wal[0]})
    assert (len(findings(found)), exit_code(found)) == (code, code)
    assert not [line for line in notes(found, found.contenders[0]) if line.startswith("may be worse")]


@pytest.mark.parametrize(
    ("qps", "vacuum", "found"),
    [
        (1.0, 4.0, "+300.0"),
        (1.5, 1.5, None),  # as much more work
        (0.6, 1.0, None),  # per transaction it is 67 % more: the table is as large
        (1.5, 6.0, "+500.0"),
        (0.6, 2.0, "+100.0"),
        (1.0, 0.25, "-75.0"),
    ],
)
def test_what_grows_with_work_has_moved_in_all_and_per_transaction(
    tmp_path: Path, qps: float, vacuum: float, found: str | None
) -> None:
    seconds = [0.2, 0.201, 0.199]
    base = {"transactions": [3000.0, 3001.0, 2999.0], "reset_vacuum_seconds": seconds}
    faster = {name: [qps * value for value in values] for name, values in {**SAME, **base}.items()}
    faster |= {name: values for name, values in SAME.items() if name != "qps"}
    faster["reset_vacuum_seconds"] = [vacuum * value for value in seconds]
    lines = [line for line in findings(compared(tmp_path, faster, base)) if "vacuum" in line]
    assert [line.split()[3] for line in lines] == ([] if found is None else [found])


def test_a_faster_step_that_left_out_work_is_a_trade(tmp_path: Path) -> None:
    """The clean-up of indexes was skipped: it was called an improvement."""
    trade = compared(tmp_path, {"qps": [1200.0, 1202.0, 1199.0], "index_bytes": [10.72e6, 10.72e6, 10.73e6]})
    assert exit_code(trade) == 1
    (contender,) = trade.contenders
    screen = io.StringIO()
    render_terminal(trade, Screen(screen, 100))
    (row,) = [line for line in screen.getvalue().splitlines() if line.startswith("insert ")]
    assert row.split()[-1] == "trade"
    assert ": 1 trade, 0 regressions, 0 improvements" in render_summary(trade)
    assert notes(trade, contender)[0].endswith("; the step is faster")
    (step,) = json.loads(render_json(trade))["contenders"][0]["steps"]
    assert (step["trade"], step["findings"][0]["metric"]) == (True, "index_bytes")


@pytest.mark.parametrize(
    ("metric", "base", "more", "label"),
    [
        ("reset_seconds", 3.0, 5.7, "reset seconds"),
        ("reset_vacuum_seconds", 2.0, 4.0, "vacuum seconds"),
        ("log_file_bytes", 512 * 2**20, 1024 * 2**20, "WAL or redo files"),
        ("server_written_kb_per_op", 2.0, 2.8, "written"),
        ("wal_bytes_per_op", 500.0, 650.0, "WAL or redo"),
    ],
)
def test_a_faster_step_that_writes_more_or_leaves_more_behind_is_a_trade(
    tmp_path: Path, metric: str, base: float, more: float, label: str
) -> None:
    work = {"qps": [1000.0, 1001.0, 999.0], "transactions": [3000.0, 3001.0, 2999.0]}
    rounds = [[value * error for error in (1, 1.001, 0.999)] for value in (base, more)]
    faster = {name: [1.1 * value for value in values] for name, values in work.items()}
    equal = {"equal_work_queries": [3000.0] * 3}
    found = compared(tmp_path, {**faster, **equal, metric: rounds[1]}, {**work, **equal, metric: rounds[0]})
    (line,) = findings(found)
    assert line.startswith(f"insert: {label} +")
    assert f"{line}; the step is faster" in notes(found, found.contenders[0])
    assert (exit_code(found), found.contenders[0].steps[0].is_trade) == (1, True)
    assert ": 1 trade, 0 regressions, 0 improvements" in render_summary(found)


TRANSACTIONS = {"transactions": [3000.0, 3001.0, 2999.0]}
CHEAP_RESET = {"reset_wal_bytes": [5.0e5, 5.01e5, 4.99e5], "reset_seconds": [1.0, 1.01, 0.99]}
DEAR_RESET = {name: [1.5 * value for value in values] for name, values in CHEAP_RESET.items()}


@pytest.mark.parametrize(
    ("base", "more", "text"),
    [
        (
            {"reset_not_visible_share": 0.0004},
            {"reset_not_visible_share": 1.0},
            "all-visible 2,500 times",
        ),
        ({"reset_not_frozen_share": 0.4}, {"reset_not_frozen_share": 1.0}, "not all-frozen +150.0 %"),
        ({"index_bytes": 8.0e6}, {"index_bytes": 9.0e6}, "index bytes +12.5 %"),
        (
            {"reset_dead_items": 900.0, "reset_dead_items_left": 0.0},
            {"reset_dead_items": 900.0, "reset_dead_items_left": 900.0},
            "2,700 of 2,700 dead row versions were left in the indexes",
        ),
        (
            {"reset_dead_tuples_before": 900.0, "reset_dead_tuples_after": 0.0},
            {"reset_dead_tuples_before": 900.0, "reset_dead_tuples_after": 900.0},
            "2,700 of 2,700 dead tuples were left by the vacuum",
        ),
        (
            {"reset_history_left": 0.0},
            {"reset_history_left": 900.0},
            "2,700 of 9,000 transactions left old row versions",
        ),
        (
            {"reset_dirty_pages_before": 900.0, "reset_dirty_pages_left": 0.0},
            {"reset_dirty_pages_before": 900.0, "reset_dirty_pages_left": 800.0},
            "2,400 of 2,700 dirty pages were left by the flush",
        ),
    ],
)
def test_a_reset_that_costs_less_and_leaves_more_is_a_trade(
    tmp_path: Path, base: Mapping[str, float], more: Mapping[str, float], text: str
) -> None:
    """A vacuum that never set the visibility map was told as better."""
    before, after = ({name: [value] * 3 for name, value in side.items()} for side in (base, more))
    found = compared(
        tmp_path, {**TRANSACTIONS, **CHEAP_RESET, **after}, {**TRANSACTIONS, **DEAR_RESET, **before}
    )
    assert exit_code(found) == 1
    left, saved = notes(found, found.contenders[0])[:2]
    assert text in left.removeprefix("insert: ")
    assert left.endswith("; the reset costs less")
    assert saved.startswith("insert: reset seconds -3")
    assert saved.endswith("; the reset leaves more")
    assert ": 1 trade, 0 regressions, 0 improvements, 0 unchanged" in render_summary(found)
    (step,) = json.loads(render_json(found))["contenders"][0]["steps"]
    assert (step["trade"], step["verdict"]) == (True, "unchanged")
    sides = Sides(parse_version(BASE), parse_version(CONTENDER), "a patch")
    answer = TryAnswer(sides, None, found, 5.0)
    assert answer.headline.startswith("A trade: ")
    assert answer.headline.endswith("in insert; a cheaper reset in insert.")
    assert answer.exit_code == 1


@pytest.mark.parametrize("more_left", [True, False])
def test_a_reset_that_is_only_cheaper_or_only_leaves_more_is_no_trade(
    tmp_path: Path, more_left: bool
) -> None:
    left = {"reset_not_visible_share": [1.0 if more_left else 0.0004] * 3}
    reset = DEAR_RESET if more_left else CHEAP_RESET
    found = compared(
        tmp_path,
        {**TRANSACTIONS, **reset, **left},
        {**TRANSACTIONS, **DEAR_RESET, "reset_not_visible_share": [0.0004] * 3},
    )
    assert (exit_code(found), found.contenders[0].steps[0].is_trade) == (int(more_left), False)
    assert not [line for line in notes(found, found.contenders[0]) if "; the reset" in line]


def test_a_faster_step_that_touches_more_pages_leaves_no_more_of_them_for_its_work(tmp_path: Path) -> None:
    faster = {name: [1.5 * value for value in values] for name, values in TRANSACTIONS.items()}
    found = compared(
        tmp_path,
        {**faster, "reset_not_frozen_share": [0.6] * 3},
        {**TRANSACTIONS, "reset_not_frozen_share": [0.4] * 3},
    )
    assert findings(found) == []


def test_a_faster_step_may_use_more_cpu_time(tmp_path: Path) -> None:
    faster = compared(
        tmp_path, {"qps": [1200.0, 1202.0, 1199.0], "server_cpu_us_per_op": [120.0, 120.1, 119.9]}
    )
    assert (findings(faster), exit_code(faster)) == ([], 0)


def test_a_try_tells_each_difference_once(tmp_path: Path) -> None:
    """Rounds and counted passes may both have it, and a line of costs too."""
    found = compared(tmp_path, {"wal_bytes_per_op": [560.0, 561.0, 559.0], "index_bytes": [1.0e7] * 3})
    sides = Sides(parse_version(BASE), parse_version(CONTENDER), "a patch")
    with open_store(tmp_path / "history.db") as store:
        changes = changes_of(store, found, found)
    answer = TryAnswer(sides, found, found, 5.0, changes=changes)
    wal, index = "WAL or redo +40.0 % (+39.4 to +40.6)", "index bytes +25.0 % (+25.0 to +25.0)"
    assert answer.headline.removeprefix("Worse: ") == f"{wal}, {index} in insert."
    lines = [line for line in str(markdown(answer, "page.html")).splitlines() if line.startswith("- ")]
    assert [line for line in lines if "+40.0 %" in line.replace("\\", "")] == lines[:1]


def test_what_may_be_worse_is_unknown(tmp_path: Path) -> None:
    """Throughput is unchanged; that nothing else is worse is not known."""
    wide = compared(tmp_path, {"wal_bytes_per_op": [380.0, 440.0, 405.0]})
    assert (findings(wide), exit_code(wide)) == ([], 2)
    (line,) = [line for line in notes(wide, wide.contenders[0]) if line.startswith("may be worse")]
    assert line.startswith("may be worse in insert: WAL or redo (-")


def test_a_metric_that_scatters_has_a_threshold_of_its_own(tmp_path: Path) -> None:
    base, slower = [1.0, 1.02, 0.99], [1.08, 1.10, 1.07]
    found = compared(tmp_path, {"reset_seconds": slower}, {"reset_seconds": base})
    assert (findings(found), exit_code(found)) == ([], 0)


@pytest.mark.deep("equal builds have no finding in hundreds of simulated sessions")
@pytest.mark.parametrize("rounds", [3, 10])
def test_equal_builds_have_no_findings(rounds: int) -> None:
    """Ten steps, and metrics that scatter by 1 to 20 %: at most a quarter of a per cent of contenders."""
    random = np.random.default_rng(rounds)
    names = [name for name in beside_verdict({Engine.POSTGRES}) if METRICS[name].judged]
    scatter = {name: random.uniform(0.01, 0.2) for name in names if not METRICS[name].is_counted}
    false = sum(bool(list(of_equal_builds(random, scatter, rounds))) for _ in range(150))
    assert false <= 1


def of_equal_builds(random: np.random.Generator, scatter: Mapping[str, float], rounds: int) -> list[str]:
    """Return the findings of a contender that is the base."""

    def one() -> dict[str, float]:
        moved = {name: 100 * float(np.exp(random.normal(0, spread))) for name, spread in scatter.items()}
        return {"qps": 1000 * float(np.exp(random.normal(0, 0.02))), **moved}

    steps = [
        StepPairs(f"step {number}", tuple(Pair(i + 1, one(), one()) for i in range(rounds)), ())
        for number in range(10)
    ]
    intervals = Intervals(steps, 0.98, None)
    versions = parse_version(BASE), parse_version(CONTENDER)
    session = Session(
        **vars(session_start()), id=1, status=SessionStatus.FINISHED, started_at=NIGHT, ended_at=None
    )
    judged = judge_all(steps, CompareOptions(), intervals, {}, session, {Engine.POSTGRES})
    contender = ContenderComparison(*versions, session, judged, failures=(), warnings=())
    return [found.line for found in moved_metrics(contender, intervals)]
