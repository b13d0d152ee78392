"""Asking servers again and again while a load runs."""

import time
from collections.abc import Callable

from build.errors import TidemarkError
from suites.accounting.sampling import RepeatedQuestion, ServerSampler
from suites.slices import Schedule


def asked(schedule: Schedule, tell: Callable[[ServerSampler], None], *per_second: float) -> list[list[float]]:
    """Return when each of two servers was asked in the 0.6 s after a sampler was told something."""
    samples = [RepeatedQuestion(time.monotonic, rate) for rate in per_second or (100, 100)]
    with ServerSampler(samples, schedule) as sampler:
        began = time.monotonic()
        tell(sampler)
        time.sleep(0.6)
    return [[moment - began for moment, _ in one.answers[1:-1]] for one in samples]


def test_only_the_server_whose_slice_it_is_is_asked() -> None:
    """An answer takes time from whoever works."""
    first, second = asked(Schedule(0.2, (0, 1)), lambda sampler: sampler.slices_begin(time.monotonic()))
    assert first
    assert second
    assert max(first) < 0.25 < 0.35 < 0.15 + min(second), "and nobody when the slices are over"
    assert max(second) < 0.45


def test_before_the_first_slice_all_are_asked() -> None:
    first, second = asked(Schedule(0.2, (0, 1)), lambda sampler: sampler.slices_begin(time.monotonic() + 0.2))
    assert min(*first, *second) < 0.1
    assert 0.4 < max(second) < 0.65


def test_a_generator_says_whose_slice_it_is() -> None:
    first, second = asked(Schedule(60, (0, 1)), lambda sampler: sampler.slice_of(1))
    assert len(second) > 10 > 3 > len(first)


def test_each_is_asked_as_often_as_it_may() -> None:
    often, seldom = asked(Schedule(60, (0, 1)), lambda sampler: None, 100, 10)
    assert len(often) > 20
    assert 0 < len(seldom) < len(often) / 2


def test_a_server_that_fails_is_not_asked_again_and_the_others_are() -> None:
    numbers = iter(range(3))

    def fails() -> int:
        try:
            return next(numbers)
        except StopIteration:
            raise TidemarkError("it does not answer") from None

    failing, other = RepeatedQuestion(fails, 200), RepeatedQuestion(time.monotonic, 200)
    with ServerSampler([failing, other], Schedule(60, (0, 1))):
        deadline = time.monotonic() + 10
        while failing.failure is None and time.monotonic() < deadline:
            time.sleep(0.01)
        failed = len(other.answers)
        time.sleep(0.1)
    assert str(failing.failure) == "it does not answer"
    assert [answer for _, answer in failing.answers] == [0, 1, 2]
    assert len(other.answers) > failed + 1


def test_a_server_is_asked_when_sampling_begins_and_when_it_ends_without_an_error() -> None:
    def ended(*, fails: bool) -> int:
        samples = RepeatedQuestion(time.monotonic, 0.001)
        try:
            with ServerSampler([samples], Schedule(60, (0,))):
                assert len(samples.answers) == 1
                if fails:
                    raise TidemarkError("the load failed")
        except TidemarkError:
            pass
        return len(samples.answers)

    assert (ended(fails=False), ended(fails=True)) == (2, 1)
    with ServerSampler([], Schedule(60, (0,))):
        pass
