"""Starts and recoveries of all steps together: what is certain, and how often equal builds have a finding."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from build.home import ROOT
from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.finding import Bearing
from history.comparison.findings.starts import FALSE_FINDINGS, USUAL, moved_starts, pooled_interval
from history.comparison.options import CompareOptions
from history.comparison.pairs import Pair, StepPairs
from history.comparison.result import ContenderComparison
from history.comparison.verdict import Tone
from history.open import open_reader, open_store
from history.rendering.table import Cell
from history.rendering.tables.costs import TOGETHER, costs_legend, costs_rows
from history.store.records import Session, SessionStatus
from suites.metrics import CONNECT, INSTRUCTIONS, METRICS, RECOVERY
from tests.history.handmade import NIGHT, run_record, session_start

SEED = 20261125


def _pair(number: int, ratio: float) -> Pair:
    return Pair(number, {RECOVERY: 0.5}, {RECOVERY: 0.5 * ratio})


def contender(*ratios: Sequence[float]) -> ContenderComparison:
    """A contender whose steps recovered so many times as long as the base, in each round."""
    steps = [
        StepPairs(f"step-{place}", tuple(_pair(*numbered) for numbered in enumerate(of_step, 1)), ())
        for place, of_step in enumerate(ratios, 1)
    ]
    session = Session(
        **vars(session_start()), id=1, status=SessionStatus.FINISHED, started_at=NIGHT, ended_at=None
    )
    base, new = map(parse_version, ("postgres@18.5", "postgres@18.6"))
    return ContenderComparison(base, new, session, (), (), (), paired=tuple(steps))


def test_three_times_as_long_is_certain_after_four_steps() -> None:
    (found,) = moved_starts(contender((3.1,), (2.7,), (3.2,), (3.0,)))
    assert (found.step, found.bearing) == ("step-1", Bearing.WORSE)
    assert found.text.startswith("recovery after a crash +199.4 % (+")
    assert found.line.startswith("4 steps together: ")


def test_one_step_has_three_rounds() -> None:
    (found,) = moved_starts(contender((0.23, 0.21, 0.25)))
    assert found.bearing is Bearing.BETTER
    assert found.text.endswith(")")


@pytest.mark.parametrize(
    "ratios",
    [((4.0,), (4.0,)), ((1.2,),) * 3, ((2.1,), (2.2,), (2.1,)), ((3.0,), (0.9,), (1.0,)), ()],
    ids=["two values", "too small", "twice as long in three steps", "uneven", "none"],
)
def test_too_few_or_too_small_or_uneven_is_not(ratios: tuple[tuple[float, ...], ...]) -> None:
    assert list(moved_starts(contender(*ratios))) == []


def test_a_connect_that_takes_two_ms_longer_is_certain_in_one_step() -> None:
    base, longer = [2.6, 2.7, 2.65], [4.7, 4.9, 4.6]
    logs = [math.log(new / old) for old, new in zip(base, longer, strict=True)]
    interval = pooled_interval(CONNECT, logs)
    assert interval is not None
    assert interval.low > 1 + METRICS[CONNECT].threshold(0)


def test_recoveries_on_a_busy_machine_are_no_finding() -> None:
    """Recoveries of one commit took 2.6 times as long in three steps, and half as long in the fourth."""
    base, new = parse_version("postgres@18.6"), parse_version("postgres@git:c2a47db94667#ivy")
    options = CompareOptions(session="b7158293", metric=INSTRUCTIONS)
    with open_reader(ROOT / "docs/results/postgres.db.gz") as history:
        (contender,) = compare(history, base, (new,), options).contenders
    assert all(step.log_ratios(RECOVERY) for step in contender.paired)
    found = [finding for step in contender.steps for finding in step.findings if finding.metric == RECOVERY]
    assert found == []


@pytest.mark.deep("equal builds have no finding in hundreds of simulated sessions")
@pytest.mark.parametrize(("values", "scatter"), [(3, 0.05), (3, 0.1), (3, 0.25), (9, 0.4)])
def test_equal_builds_have_no_finding(values: int, scatter: float) -> None:
    """One contender in 4,000 may have one for the worse: a session of four of them, in a thousand."""
    random = np.random.default_rng(SEED)
    sessions, found = 10_000, 0
    for metric in USUAL:
        limit = 1 + METRICS[metric].threshold(0)
        for logs in random.standard_t(4, (sessions, values)) * scatter / math.sqrt(2):
            interval = pooled_interval(metric, logs.tolist())
            assert interval is not None
            found += interval.low > limit
    assert found <= FALSE_FINDINGS / 2 * sessions


def test_costs_of_a_step_say_what_all_steps_show_together(tmp_path: Path) -> None:
    """Each step has one recovery, which has no interval of its own: the table must not call it unknown."""
    with open_store(tmp_path / "history.db", clock=lambda: NIGHT) as store:
        session = store.start_session(session_start())
        for position, step in enumerate(("insert", "update-index", "delete"), start=1):
            for version, seconds in (("postgres@18.5", 0.25), ("postgres@18.6", 1.2 + position / 20)):
                for number in (1, 2, 3):
                    values = {"qps": 1000.0 + number, **({RECOVERY: seconds} if number == 1 else {})}
                    run = run_record(
                        values, version=version, step=step, step_position=position, repetition=number
                    )
                    store.record_run(session, run)
        store.finish_session(session, SessionStatus.FINISHED)
        versions = map(parse_version, ("postgres@18.5", "postgres@18.6"))
        (contender,) = compare(store, next(versions), [*versions], CompareOptions()).contenders
    rows = [row for step in contender.steps for row in costs_rows(contender, step)]
    cells = [row[-1] for row in rows if row[1].text == "recovery after a crash"]
    assert cells == [Cell("more together", Tone.BAD)] * 3
    assert TOGETHER in costs_legend(contender)
