"""What went on beside queries, second by second, and the causes of stalls."""

from suites.accounting.activity import CHECKPOINT, PURGE, STALL, VACUUM, Activity, activities, causes_of
from suites.generators.transcript import Slice, seconds_of_work, stalls_of
from suites.innodb.activities import going_on

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
    assert len(seconds_of_work([threads])) == 10


def test_short_slices_have_the_seconds_of_their_rates() -> None:
    slices = [[Slice(place, 100 + place, 100.25 + place, (5,))] for place in range(8)]
    assert seconds_of_work(slices) == [(100, 103.25), (104, 107.25)]
    assert stalls_of(slices, {3: (1200.0,)}) == [(103, 103.25)]


def test_purge_works_off_a_long_history() -> None:
    long = {"log_waits": 0, "buffer_pool_wait_free": 0, "trx_rseg_history_len": 5000}
    assert going_on(long, {**long, "trx_rseg_history_len": 4000}) == [PURGE]
    assert going_on(long, {**long, "trx_rseg_history_len": 6000}) == []
    assert going_on({**long, "trx_rseg_history_len": 20}, {**long, "trx_rseg_history_len": 0}) == []
