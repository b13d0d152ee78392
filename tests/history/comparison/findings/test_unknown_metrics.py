"""Which of the judged metrics that may be worse are named, and that their line stays one."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from history.comparison.findings.unknown_metrics import COLUMNS, Unknown, may_be_worse, unknown_metrics
from history.metric_words import label_of
from history.rendering.notes import unknown_lines
from history.stats.estimators import Interval
from report.pages.verdicts import findings as page_findings
from suites.metrics import METRICS, QPS, judged_metrics
from tests.history.comparison.findings.test_moved_metrics import compared


def unknown(metric: str, low: float, high: float, *, worse: bool = False) -> Unknown:
    return Unknown(metric, ("insert",), Interval(1.0, low, high, 3), worse)


def test_what_lies_on_the_bad_side_is_named_first_then_what_is_counted_then_the_widest() -> None:
    ranked = [
        unknown("server_written_kb_per_op", 1.04, 1.2, worse=True),
        unknown("wal_record_bytes_per_transaction", 0.99, 1.02),
        unknown("reset_seconds", 0.5, 2.0),
        unknown("index_bytes", 0.9, 1.1),
    ]
    ranks = [metric.rank for metric in ranked]
    assert ranks == sorted(set(ranks))


def test_one_metric_is_named_and_the_rest_are_counted() -> None:
    metrics = [unknown("reset_seconds", 0.5, 2.0), unknown("index_bytes", 0.9, 1.1)]
    assert may_be_worse(metrics[:1]) == "may be worse in insert: reset seconds (-50.0 to +100.0 %)"
    assert (
        may_be_worse(metrics, most=1) == "may be worse in insert: reset seconds (-50.0 to +100.0 %); 1 more"
    )


def test_what_is_probably_worse_is_no_mere_may_be() -> None:
    metrics = [
        Unknown("server_written_kb_per_op", ("q1",), Interval(1.0, 1.04, 1.2, 3), is_rather_worse=True),
        Unknown("index_bytes", ("q2",), Interval(1.0, 0.9, 1.1, 3), is_rather_worse=False),
    ]
    assert may_be_worse(metrics) == (
        "probably worse in q1: written (+4.0 to +20.0 %); may be worse in q2: index bytes (-10.0 to +10.0 %)"
    )


@given(
    st.lists(st.sampled_from(judged_metrics()), min_size=1, unique=True),
    st.lists(st.text("abcdefghij-", min_size=1, max_size=12), min_size=1, max_size=10, unique=True),
    st.floats(1.001, 50),
)
def test_the_line_is_one(names: list[str], steps: list[str], width: float) -> None:
    metrics = [
        Unknown(name, tuple(steps), Interval(1.0, 1 / width, width, 3), is_rather_worse=False)
        for name in names
    ]
    line = may_be_worse(metrics)
    assert len(line) <= COLUMNS
    named = [name for name in names if label_of(name) in line]
    assert len(named) == len(names) or line.endswith(" more")


def test_a_part_is_not_named_beside_its_whole(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        {"reset_vacuum_seconds": [1.0, 9.0, 2.0], "reset_seconds": [1.0, 9.0, 2.0]},
        {"reset_vacuum_seconds": [2.0, 3.0, 9.0], "reset_seconds": [2.0, 3.0, 9.0]},
    )
    steps = found.contenders[0].steps
    assert {"reset_seconds", "reset_vacuum_seconds"} <= {judged.metric for judged in steps[0].unknown}
    assert [metric.metric for metric in unknown_metrics(steps)] == ["reset_seconds"]


def test_the_option_for_the_others_is_named_where_it_shows_more(tmp_path: Path) -> None:
    names = [
        name for name in judged_metrics() if not METRICS[name].is_counted and METRICS[name].beside_of == QPS
    ]
    units = {name: min(1e7, METRICS[name].most) for name in names if name != QPS}
    new, base = (
        {name: [share * unit for share in shares] for name, unit in units.items()}
        for shares in (
            (0.1, 0.9, 0.2),
            (0.2, 0.3, 0.9),
        )
    )
    (contender,) = compared(tmp_path, new, base).contenders
    (line,) = unknown_lines(contender)
    assert line.endswith(" more: --costs")
    assert list(unknown_lines(contender, costs=True)) == [line.removesuffix(": --costs")]
    page = str(page_findings(contender, str))
    assert " more</li>" in page, "all metrics are on the page"
