"""The watchdog: what is late is cancelled, once, and nothing else is."""

import threading
import time
from functools import partial

from suites.generators.queries.watchdog import Watchdog


def test_work_in_time_is_not_cancelled_and_no_thread_is_started_for_each() -> None:
    watchdog, cancelled = Watchdog(), list[int]()
    threads = threading.active_count()
    for number in range(100):
        assert not watchdog.end(watchdog.begin(0.05, partial(cancelled.append, number)))
    assert threading.active_count() == threads + 1
    time.sleep(0.1)
    assert not cancelled


def test_late_work_is_cancelled_at_its_limit_and_before_its_end_returns() -> None:
    watchdog, ended, done = Watchdog(), threading.Event(), list[float]()

    def cancel() -> None:
        ended.set()
        time.sleep(0.1)
        done.append(time.monotonic())

    began = time.monotonic()
    watched = watchdog.begin(0.05, cancel)
    assert ended.wait(5)
    assert time.monotonic() - began >= 0.05
    assert watchdog.end(watched)
    assert done, "a cancel that came later would end the next query"


def test_a_shorter_limit_is_kept_beside_a_longer_one() -> None:
    watchdog, cancelled, ended = Watchdog(), list[str](), threading.Event()
    long = watchdog.begin(60, partial(cancelled.append, "long"))
    time.sleep(0.05)
    short = watchdog.begin(0.05, ended.set)
    assert ended.wait(5)
    assert (watchdog.end(long), watchdog.end(short)) == (False, True)
    assert not cancelled


def test_a_cancel_that_fails_does_not_end_the_watch() -> None:
    watchdog, ended = Watchdog(), threading.Event()

    def fail() -> None:
        ended.set()
        raise OSError("no connection")

    for _ in range(2):
        watched = watchdog.begin(0.01, fail)
        assert ended.wait(5)
        assert watchdog.end(watched)
        ended.clear()


def test_each_of_many_that_race_with_their_limit_is_either_late_or_not_cancelled() -> None:
    watchdog, cancelled = Watchdog(), set[int]()

    def work(first: int) -> None:
        for number in range(first, first + 300):
            watched = watchdog.begin(0.001, partial(cancelled.add, number))
            time.sleep(0.0005 if number % 2 else 0.0011)
            late[number] = watchdog.end(watched)

    late: dict[int, bool] = {}
    threads = [threading.Thread(target=work, args=(1000 * place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(late) == 1200
    assert cancelled == {number for number, is_late in late.items() if is_late}
    assert cancelled
