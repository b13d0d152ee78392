"""Comparisons over nights, by branch and by machine; the last nights beside a session."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from benchmarks.output.intervals import ratio_interval
from build.version import parse_version
from history.comparison.compare import compare, exit_code
from history.comparison.nights.recent_nights import LAST_NIGHTS
from history.comparison.options import CompareOptions
from history.comparison.result import Comparison
from history.comparison.verdict import Gap, Verdict
from history.errors import ComparisonError
from history.store.records import SessionStatus
from history.store.writer import Store
from tests.history.conftest import Target
from tests.history.handmade import MACHINE, NIGHT, record_steps, session_start
from tests.history.nightly import BASE, NEW, Calendar, opened, record_nights

ON_DB1 = replace(MACHINE, fingerprint="of db1")
RATIOS = [0.90, 0.91, 0.89, 0.90]


@pytest.fixture
def clock() -> Calendar:
    return Calendar()


@pytest.fixture
def store(target: Target, clock: Calendar) -> Iterator[Store]:
    with opened(target, clock) as store:
        yield store


def over_nights(store: Store, base: str = BASE, new: str = NEW, **options: object) -> Comparison:
    chosen = CompareOptions(since=NIGHT, **options)  # type: ignore[arg-type]
    return compare(store, parse_version(base), [parse_version(new)], chosen)


def test_nights_are_what_an_interval_counts(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, RATIOS, steps=("insert",))
    (only,) = over_nights(store).contenders
    (step,) = only.steps
    expected = ratio_interval([1.0] * 4, RATIOS, 0.98)
    assert expected is not None
    assert step.judged.interval is not None
    assert step.judged.interval.n == 4
    assert step.judged.interval.low == pytest.approx(expected.low)
    assert step.judged.value == pytest.approx(expected.estimate)
    assert step.judged.verdict is Verdict.REGRESSION
    assert step.trend == pytest.approx(RATIOS)


def test_pairs_are_of_one_night(store: Store, clock: Calendar) -> None:
    """The nights differ in speed by up to eight tenths: across them nothing could be told."""
    record_nights(store, clock, [0.95] * 6, steps=("insert",))
    (step,) = over_nights(store).contenders[0].steps
    assert step.judged.interval is not None
    assert step.judged.interval.low == pytest.approx(0.95)
    assert step.judged.interval.high == pytest.approx(0.95)


def test_two_nights_are_too_few(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, RATIOS[:2])
    comparison = over_nights(store)
    (contender,) = comparison.contenders
    assert {step.judged.gap for step in contender.steps} == {Gap.TOO_FEW}
    assert contender.steps[0].judged.reason == "2 nights: a verdict needs 3, run 1 more"
    assert exit_code(comparison) == 2


def test_a_failed_night_is_a_gap_with_its_reason(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, [*RATIOS, 0.0])
    comparison = over_nights(store)
    (contender,) = comparison.contenders
    assert contender.nights is not None
    assert [step.judged.pairs for step in contender.steps] == [4, 4, 4]
    assert contender.steps[0].trend[-1] is None
    assert {(gap.branch, gap.reason, gap.nights) for gap in contender.nights.gaps} == {
        (NEW, "the server did not start", (clock.moment,))
    }
    assert exit_code(comparison) == 1


def test_a_version_that_was_not_built_is_a_gap(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, RATIOS)
    clock.next_day()
    options: dict[str, object] = {"versions": [BASE, NEW], "not_built": {NEW: "make failed"}}
    start = replace(session_start("broken"), options=options, machine=ON_DB1)
    record_steps(store, start, {"insert": {BASE: [1.0] * 3}})
    (contender,) = over_nights(store).contenders
    assert contender.nights is not None
    assert [(gap.step, gap.reason) for gap in contender.nights.gaps] == [("", "not built: make failed")]
    assert contender.steps[0].judged.pairs == 4
    assert contender.steps[0].trend[-1] is None
    (latest,) = compare(store, parse_version(BASE), [parse_version(NEW)]).contenders
    assert latest.session.uid != "broken", "it does not hold both"


def test_boxes_have_tables_of_their_own(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, RATIOS)
    record_nights(store, clock, [1.0] * 3, box="db2")
    first, two = over_nights(store).contenders
    assert [contender.session.machine.hostname for contender in (first, two)] == ["db2", "db1"]
    assert {step.judged.verdict for step in first.steps} == {Verdict.UNCHANGED}
    assert {step.judged.verdict for step in two.steps} == {Verdict.REGRESSION}
    (limited,) = over_nights(store, machine="db1").contenders
    assert limited.session.machine.hostname == "db1"


def test_since_leaves_older_nights_out(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, [0.5, *RATIOS])
    options = CompareOptions(since=NIGHT + timedelta(days=2))
    (contender,) = compare(store, parse_version(BASE), [parse_version(NEW)], options).contenders
    assert contender.nights is not None
    assert len(contender.nights.started_at) == 4


def test_a_line_of_releases_goes_on_with_its_next_release(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, RATIOS[:2], base="postgres@17.11")
    record_nights(store, clock, RATIOS[2:], base="postgres@17.12")
    (contender,) = over_nights(store, base="postgres@17").contenders
    assert contender.nights is not None
    assert dict(contender.nights.bases) == {"postgres@17.11": 2, "postgres@17.12": 2}
    (older,) = over_nights(store, base="postgres@17.11").contenders
    assert older.nights is not None
    assert len(older.nights.started_at) == 2


def test_values_stay_when_runs_are_pruned(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, RATIOS)
    with store.database.writing() as connection:
        for table in ("measurements", "runs"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    assert exit_code(over_nights(store)) == 1
    with pytest.raises(ComparisonError, match="the rounds of session"):
        compare(store, parse_version(BASE), [parse_version(NEW)])


def test_nothing_since_then(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, RATIOS)
    with pytest.raises(ComparisonError, match="no night since 2026-03-01 holds both"):
        over_nights(store, new="postgres@18.6")
    with pytest.raises(ComparisonError, match="compares nights, not one session"):
        over_nights(store, session="x")


# --- by branch and machine, in one session


def test_a_branch_stands_for_what_was_measured_last(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, [1.0], base="postgres@17.11", new="postgres@18.5")
    record_nights(store, clock, [0.9], base="postgres@17.12", new="postgres@18.6")
    base, line = parse_version("postgres@17"), parse_version("postgres@18")
    (contender,) = compare(store, base, [], branches=[line]).contenders
    assert (str(contender.base), str(contender.contender)) == ("postgres@17.12", "postgres@18.6")
    (older,) = compare(store, parse_version("postgres@17.11"), [], branches=[line]).contenders
    assert str(older.contender) == "postgres@18.5"
    assert [str(compared.contender) for compared in compare(store, base, [line]).contenders] == [
        "postgres@18.6"
    ]


def test_the_machine_that_was_asked_for(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, [0.9], box="db1")
    record_nights(store, clock, [1.0], box="db2")
    for box in ("db1", "db2"):
        options = CompareOptions(machine=box)
        (contender,) = compare(store, parse_version(BASE), [parse_version(NEW)], options).contenders
        assert contender.session.machine.hostname == box
    with pytest.raises(ComparisonError, match="machine db3"):
        compare(store, parse_version(BASE), [parse_version(NEW)], CompareOptions(machine="db3"))


def test_a_session_that_runs_is_found_too(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, [1.0])
    clock.next_day()
    record_steps(store, session_start("now"), {"insert": {BASE: [1.0] * 3, NEW: [1.0] * 3}}, None)
    (contender,) = compare(store, parse_version(BASE), [parse_version(NEW)]).contenders
    assert contender.session.status is SessionStatus.RUNNING
    assert not contender.steps[0].trend


# --- the last nights beside a session


@pytest.mark.deep("hundreds of simulated sessions")
def test_a_trend_ends_with_the_session_that_is_shown(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, [0.5] * 3 + [1.0] * (LAST_NIGHTS - 1) + [0.9])
    (contender,) = compare(store, parse_version(BASE), [parse_version(NEW)]).contenders
    assert contender.steps[0].trend == pytest.approx([1.0] * (LAST_NIGHTS - 1) + [0.9])
    third = CompareOptions(session=f"db1-{BASE}-0304")
    (old,) = compare(store, parse_version(BASE), [parse_version(NEW)], third).contenders
    assert old.steps[0].trend == pytest.approx([0.5] * 3)


def test_two_nights_are_no_trend(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, [1.0, 0.0, 1.0])
    (contender,) = compare(store, parse_version(BASE), [parse_version(NEW)]).contenders
    assert contender.steps[0].trend == ()


# --- groups


def test_groups_have_means_of_their_own(store: Store, clock: Calendar) -> None:
    record_nights(store, clock, [1.0], moved={"update-index": 0.5, "update-one": 0.98, "insert": 4.0})
    (contender,) = compare(store, parse_version(BASE), [parse_version(NEW)]).contenders
    (updates,) = contender.group_means()
    assert (updates.group, updates.steps) == ("updates", 2)
    assert updates.ratios["qps"] == pytest.approx(0.7)
    assert contender.geometric_means()[1]["qps"] == pytest.approx((0.49 * 4) ** (1 / 3))
