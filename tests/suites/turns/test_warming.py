"""Warming up: what counters of servers say, and when that is enough."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from suites.control_groups.declared import DiskUse, MemoryUse
from suites.generators.load import Load, LoadError, Share
from suites.keys.step import Step
from suites.slices import Schedule
from suites.turns.failures import ServerDiedError
from suites.turns.warming import warm_up
from suites.turns.warmth import Warmth
from tests.suites.turns.test_run_slices import FakeServer, as_servers
from tests.suites.turns.test_step import LOAD, STEP

LIMIT = 1000 * 2**20
SLICE_SECONDS = 10.0


class WarmingServer(FakeServer):
    """A server whose memory has so many MiB at each look, and whose checkpoint is over at one of them."""

    def __init__(
        self, release: str, mebibytes: Sequence[int], checkpoint_at: int, *, is_told: bool = False
    ) -> None:
        super().__init__(release, [])
        self.mebibytes, self.looks = mebibytes, 0
        self.checkpoint_at, self.is_told = checkpoint_at, is_told

    def cache_use(self) -> MemoryUse:
        self._note("memory")
        used = self.mebibytes[min(self.looks, len(self.mebibytes) - 1)] * 2**20
        self.looks += 1
        return MemoryUse(used, LIMIT)

    def disk_use(self) -> DiskUse | None:
        return None

    def checkpoint_meter(self) -> Callable[[], float]:
        self._note("checkpoint")
        return lambda: (
            min(1, (self.looks - 1) / self.checkpoint_at) if self.is_told else self.looks > self.checkpoint_at
        )


class WarmingGenerator:
    """Remembers the shares; fails in one of them."""

    def __init__(self, fails_in: int | None = None) -> None:
        self.shares: list[Share] = []
        self.fails_in = fails_in

    def alternate(self, addresses: Sequence[Any], step: Step, share: Share, observers: object) -> list[Load]:
        self.shares.append(share)
        if len(self.shares) == self.fails_in:
            raise LoadError("connection lost", place=1)
        return [LOAD for _ in addresses]


def shares(most: int) -> Iterator[Share]:
    return (Share(Schedule(SLICE_SECONDS, (0, 1)), number) for number in range(most))


def warmed(*servers: WarmingServer, most: int = 10, step: Step = STEP) -> Warmth:
    generator: Any = WarmingGenerator()
    counters: list[Counter[str]] = [Counter() for _ in servers]
    found = warm_up(as_servers(servers), generator, step, shares(most), counters, most * SLICE_SECONDS)
    assert found.seconds == SLICE_SECONDS * len(generator.shares)
    return found


@pytest.mark.parametrize(
    ("mebibytes", "checkpoint_at", "slices"),
    [
        ([100, 960], 1, 1),
        ([100, 500, 940, 960], 1, 3),
        # What no longer grows is all that the step reads.
        ([100, 300, 301, 302, 303], 1, 3),
        ([100, 960], 4, 4),
    ],
)
def test_it_ends_when_memory_is_full_and_a_checkpoint_over(
    mebibytes: Sequence[int], checkpoint_at: int, slices: int
) -> None:
    early = WarmingServer("17.11", [990], 1)
    late = WarmingServer("18.6", mebibytes, checkpoint_at)
    assert warmed(early, late) == Warmth(slices * SLICE_SECONDS, checkpoint=True)


def test_at_its_limit_it_says_what_no_server_has_reached() -> None:
    first, second = WarmingServer("17.11", [100, 200, 300, 400], 99), WarmingServer("18.6", [990], 1)
    lacking = (
        "the cache of postgres@17.11 is not full (400M of 1000M)",
        "no checkpoint of postgres@17.11 is over",
    )
    assert warmed(first, second, most=3) == Warmth(30.0, checkpoint=True, lacking=lacking)


@pytest.mark.parametrize(("checkpoint_at", "slices"), [(9, 9), (10, 10), (11, 2)])
def test_a_log_that_is_written_too_slowly_is_not_waited_for(checkpoint_at: int, slices: int) -> None:
    """Its pace is known after a fifth of the limit, of ten slices."""
    slow = WarmingServer("17.11", [100, 990], checkpoint_at, is_told=True)
    lacking = ("no checkpoint of postgres@17.11 is over (18 % of its log is written)",) if slices == 2 else ()
    found = warmed(slow, WarmingServer("18.6", [100, 990], 1))
    assert found == Warmth(slices * SLICE_SECONDS, checkpoint=True, lacking=lacking)


def test_the_pace_of_a_log_is_not_that_of_a_cold_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is full after three slices of ten, in which a twentieth of the log was written."""
    cold, written = WarmingServer("17.11", [100, 300, 600, 990], 1), [0.01, 0.03, 0.05, 0.25, 0.5, 0.75, 1.0]
    monkeypatch.setattr(cold, "checkpoint_meter", lambda: iter(written).__next__)
    assert warmed(cold, WarmingServer("18.6", [990], 1)) == Warmth(7 * SLICE_SECONDS, checkpoint=True)


def test_what_is_not_waited_for_is_told_at_the_end_of_what_is() -> None:
    slow = WarmingServer("17.11", [990], 40, is_told=True)
    filling = WarmingServer("18.6", [100, 200, 300, 400, 990], 1)
    told = "no checkpoint of postgres@17.11 is over (10 % of its log is written)"
    assert warmed(slow, filling) == Warmth(4 * SLICE_SECONDS, checkpoint=True, lacking=(told,))


def test_memory_that_nobody_counts_is_never_full() -> None:
    (told,) = warmed(WarmingServer("17.11", [0], 1), WarmingServer("18.6", [990], 1), most=4).lacking
    assert told == "the cache of postgres@17.11 is not full (0M of 1000M)"


def test_a_step_that_reads_has_no_checkpoint() -> None:
    first, second = WarmingServer("17.11", [990], 99), WarmingServer("18.6", [990], 99)
    reading = STEP.model_copy(update={"reads_only": True})
    assert warmed(first, second, step=reading) == Warmth(SLICE_SECONDS, checkpoint=False)
    assert "checkpoint 17.11" not in first.calls


def test_a_server_that_fails_is_named_by_its_place() -> None:
    servers = [WarmingServer("17.11", [100], 9), WarmingServer("18.6", [100], 9)]
    generator: Any = WarmingGenerator(fails_in=2)
    with pytest.raises(ServerDiedError) as caught:
        warm_up(as_servers(servers), generator, STEP, shares(5), [Counter(), Counter()], 50.0)
    assert caught.value.place == 1
    servers[1].fails = {"memory": LoadError("refused")}
    with pytest.raises(ServerDiedError, match="refused") as caught:
        warm_up(as_servers(servers), generator, STEP, shares(5), [Counter(), Counter()], 50.0)
    assert caught.value.place == 1
