"""What went on beside queries, second by second, and the causes of stalls."""

import pytest

from suites.accounting.activity import (
    CHECKPOINT,
    FLUSH,
    FULL_LOG,
    LOG_WAIT,
    PURGE,
    STALL,
    VACUUM,
    Activity,
    activities,
    causes_of,
)
from suites.generators.transcript import Slice, seconds_in, stalls_of
from suites.innodb.server import LogFill, capacity_of, going_on

SECONDS = [(100.0 + second, 101.0 + second) for second in range(10)]


def test_an_answer_holds_from_the_question_before_on() -> None:
    answers = [
        (100.5, ()),
        (101.5, [CHECKPOINT]),
        (102.5, [CHECKPOINT, VACUUM]),
        (103.5, ()),
        (108.2, [VACUUM]),
    ]
    assert activities(answers, [], SECONDS) == (
        Activity(CHECKPOINT, 1, 3),
        Activity(VACUUM, 2, 9),
    )


def test_each_stall_has_its_own_cause() -> None:
    answers = [(100.0, ()), (102.0, [CHECKPOINT, VACUUM]), (103.5, ()), (106.0, ())]
    found = activities(answers, [(101.2, 102.9), (105.1, 107.0)], SECONDS)
    assert [one for one in found if one.name == STALL] == [Activity(STALL, 2, 3), Activity(STALL, 6, 7)]
    assert causes_of(found) == [CHECKPOINT, ""]


def test_stalls_of_clients_that_meet_are_one() -> None:
    threads = [Slice(1, 100.0, 109.9, (5,) * 10), Slice(1, 100.0, 109.9, (5,) * 10)]
    longest = {1: (3.0, 3.0, 1500.0, 2200.0, 3.0, 3.0, 3.0, 1001.0, 3.0, 3.0)}
    assert stalls_of([threads], longest) == [(100.5, 104.0), (105.999, 108.0)]
    assert len(seconds_in([threads], longest)) == 10


def test_short_slices_have_the_seconds_of_their_rates() -> None:
    slices = [[Slice(place, 100 + place, 100.25 + place, (5,))] for place in range(8)]
    found = [(second.began, second.ended) for second in seconds_in(slices, {})]
    assert found == [(100, 103.25), (104, 107.25)]
    assert stalls_of(slices, {3: (1200.0,)}) == [(103, 103.25)]


QUIET = {"log_waits": 3, "os_log_fsyncs": 40, "os_log_pending_fsyncs": 0, "buffer_pool_wait_free": 2}
EMPTY = LogFill(100, 1000)


def test_purge_works_off_a_long_history() -> None:
    long = {**QUIET, "trx_rseg_history_len": 5000}
    assert going_on(long, {**long, "trx_rseg_history_len": 4000}, EMPTY) == [PURGE]
    assert going_on(long, {**long, "trx_rseg_history_len": 6000}, EMPTY) == []
    assert going_on({**long, "trx_rseg_history_len": 20}, {**long, "trx_rseg_history_len": 0}, EMPTY) == []


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ({}, {}, []),
        ({}, {"log_waits": 4}, [LOG_WAIT]),
        ({}, {"buffer_pool_wait_free": 9}, [FLUSH]),
        ({"os_log_pending_fsyncs": 1}, {"os_log_pending_fsyncs": 1}, [LOG_WAIT]),
        ({"os_log_pending_fsyncs": 1}, {"os_log_pending_fsyncs": 1, "os_log_fsyncs": 41}, []),
        ({}, {"os_log_pending_fsyncs": 1}, []),
    ],
    ids=["nothing", "buffer", "pages", "one long flush", "two flushes", "a flush that has just begun"],
)
def test_what_clients_of_innodb_waited_for(
    before: dict[str, int], now: dict[str, int], found: list[str]
) -> None:
    assert going_on({**QUIET, **before}, {**QUIET, **now}, EMPTY) == found
    old = {name: count for name, count in QUIET.items() if not name.startswith("os_")}
    assert going_on(old, old, EMPTY) == [], "MariaDB does not count flushes"


def test_a_redo_log_is_full_before_the_second_question_too() -> None:
    assert going_on({}, QUIET, LogFill(860, 1000)) == going_on(QUIET, QUIET, LogFill(860, 1000)) == [FULL_LOG]
    assert going_on({}, QUIET, LogFill(840, 1000)) == going_on({}, QUIET, LogFill(5, 0)) == []


@pytest.mark.parametrize(
    ("variables", "capacity"),
    [
        ({"innodb_redo_log_capacity": 800, "innodb_log_file_size": 48, "innodb_log_files_in_group": 2}, 800),
        ({"innodb_log_file_size": 48, "innodb_log_files_in_group": 2}, 96),
        ({"innodb_log_file_size": 96}, 96),
        ({}, 0),
    ],
    ids=["MySQL 8.0.30", "MySQL 5.7", "MariaDB", "neither"],
)
def test_the_capacity_of_redo(variables: dict[str, int], capacity: int) -> None:
    assert capacity_of(variables) == capacity
