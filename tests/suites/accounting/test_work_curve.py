"""Costs at equal work: servers whose totals are known as functions of their queries."""

import math
from dataclasses import replace

import pytest

from suites.accounting.work_curve import (
    MIN_READINGS,
    READINGS,
    TotalsReading,
    WorkCurve,
    curve_of,
    readings_per_second,
)
from suites.measurement import Measurement, at_equal_work
from suites.metrics import EQUAL_WORK
from suites.slices import Schedule

WAL, WRITTEN = "wal_bytes_per_op", "server_written_kb_per_op"
PAGES = 2000


def wal(queries: float) -> float:
    """100 bytes for each query, and 8 KiB for the first change of each page."""
    return 1e9 + 100 * queries + 8192 * PAGES * -math.expm1(-queries / PAGES)


def measured(qps: float, *, begins: float = 0.6, seconds: float = 3.0) -> Measurement:
    """A server that works for some seconds, and is read before and after that, too."""
    progress = ((begins, 0.0), (begins + seconds, qps * seconds))
    moments = [place * 3 / READINGS for place in range(round(1.5 * READINGS))]
    done = [qps * min(max(moment - begins, 0), seconds) for moment in moments]
    readings = [
        TotalsReading(moment, {WAL: wal(queries), WRITTEN: 0.0})
        for moment, queries in zip(moments, done, strict=True)
    ]
    whole = (wal(done[-1]) - wal(0)) / done[-1]
    return Measurement({"qps": qps, WAL: whole, "errors": 0.0}, (), curve=curve_of(readings, progress))


@pytest.mark.parametrize("slowdown", [1.05, 1.6, 4.0])
def test_a_server_that_is_slower_alone_costs_the_same(slowdown: float) -> None:
    before = [measured(2000), measured(2000 / slowdown)]
    assert before[1].values[WAL] > slowdown**0.3 * before[0].values[WAL], "the same images for fewer queries"
    fast, slow = at_equal_work(before)
    assert slow.values[WAL] == pytest.approx(fast.values[WAL], rel=0.005)
    assert fast.values[EQUAL_WORK] == slow.values[EQUAL_WORK]
    assert 0.9 * 6000 / slowdown < slow.values[EQUAL_WORK] <= 6000 / slowdown
    assert (fast.values["qps"], fast.values["errors"]) == (2000, 0)


def test_a_server_that_writes_more_is_told_as_that() -> None:
    fast, slow = measured(2000), measured(1000)
    assert slow.curve is not None
    more = {name: [2 * total for total in totals] for name, totals in slow.curve.totals.items()}
    fast, slow = at_equal_work([fast, replace(slow, curve=replace(slow.curve, totals=more))])
    assert slow.values[WAL] == pytest.approx(2 * fast.values[WAL], rel=0.005)


def test_work_that_is_too_short_for_a_curve_keeps_its_values() -> None:
    """The load of the second one ended after a moment, as of a step that runs out of rows."""
    before = [measured(2000), measured(2000, seconds=0.1)]
    readings = [TotalsReading(place, {WAL: wal(place)}) for place in range(MIN_READINGS + 1)]
    for count in (MIN_READINGS, MIN_READINGS + 1):
        curve = curve_of(readings[:count], ((0.0, 0.0), (100.0, 100.0)))
        assert (curve is None) is (count == MIN_READINGS)
    assert curve_of(readings, ()) is None
    none = replace(before[1], curve=None)
    assert at_equal_work([before[0], none]) == [before[0], none]


def test_what_is_written_after_the_work_is_no_part_of_it() -> None:
    """A server that rests catches up with what it has put off; one that still works has not."""
    readings = [TotalsReading(float(second), {WRITTEN: min(second, 19) * 5.0}) for second in range(20)]
    late = [TotalsReading(25.0, {WRITTEN: 5000.0}), TotalsReading(30.0, {WRITTEN: 9000.0})]
    curve = curve_of([*readings, *late], ((0.0, 0.0), (20.0, 400.0)))
    assert curve == WorkCurve(
        [20.0 * second for second in range(20)], {WRITTEN: [5.0 * second for second in range(20)]}
    )


@pytest.mark.parametrize(
    ("seconds", "servers", "expected"), [(3, 2, 24), (60, 2, 32), (60, 5, 32), (3, 1, 12)]
)
def test_each_server_is_read_as_often_in_its_slices(seconds: int, servers: int, expected: int) -> None:
    schedule = Schedule(0.5, tuple(range(servers)) * (2 * seconds))
    assert readings_per_second(schedule) * seconds == pytest.approx(expected)
