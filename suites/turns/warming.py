"""Warming up before the first block of a step, until counters say that servers are as they stay."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from suites.control_groups.declared import MemoryUse, memory_text
from suites.generators.load import Generator, LoadError, Share, committed_in
from suites.keys.step import Step
from suites.server import Server
from suites.turns.failures import blame, blaming
from suites.turns.warmth import Warmth

FULL_SHARE = 0.95
"""The share of its limit from which on a cache counts as full: kernel and InnoDB keep some of it free."""

STILL_SHARE, STILL_SLICES = 0.005, 2
"""In so many slices in a row a cache grows by less than this share of its limit, once a step has read all it
reads."""


PACE_SHARE = 0.2
"""The share of the limit after which the pace of a log tells whether it can be written around within it."""


ROUNDING = 1e-9
"""Of sums of shares."""


class Unwatched:
    """Observes nothing; an Observer."""

    def begin(self, pid: int) -> None:
        """Do nothing."""

    def end(self, pid: int) -> None:
        """Do nothing."""


class _WarmingServer:
    """What one server has reached since it was made."""

    def __init__(self, server: Server, step: Step) -> None:
        """Raises TidemarkError. A step that only reads has no checkpoint."""
        self.server = server
        self._meter: Callable[[], float] = (lambda: 1.0) if step.reads_only else server.checkpoint_meter()
        self._checkpoint = 1.0 if step.reads_only else 0.0
        self._most_written = 0.0  # of a log, in a slice that began with a full cache
        self._uses: list[MemoryUse] = [server.cache_use()]

    def look(self) -> None:
        """Read the counters after a slice. Raises TidemarkError."""
        was_full = self.is_full
        self._uses.append(self.server.cache_use())
        if self._checkpoint < 1:
            before, self._checkpoint = self._checkpoint, self._meter()
            if was_full:
                self._most_written = max(self._most_written, self._checkpoint - before)

    def gets_warmer(self, seconds: float, limit: float) -> bool:
        """Whether it lacks something that it can have by `limit`, after so many seconds of work.

        A log is written at most as fast as in its best slice with a full cache.
        """
        slices_left = (limit - seconds) / seconds * (len(self._uses) - 1)
        is_known = self._most_written > 0 and seconds >= PACE_SHARE * limit
        can_end = not is_known or self._checkpoint + slices_left * self._most_written > 1 - ROUNDING
        return not self.is_full or (self._checkpoint < 1 and can_end)

    @property
    def is_full(self) -> bool:
        """Whether its cache is full, or holds all that the step reads."""
        last = self._uses[-1]
        grown = [after.used_bytes - before.used_bytes for before, after in pairwise(self._uses)]
        is_still = all(growth < STILL_SHARE * last.limit_bytes for growth in grown[-STILL_SLICES:])
        return last.used_bytes >= FULL_SHARE * last.limit_bytes or (
            len(grown) >= STILL_SLICES and is_still and last.used_bytes > 0
        )

    @property
    def lacking(self) -> list[str]:
        """What it has not reached."""
        use, name = self._uses[-1], self.server.build.version
        found = []
        if not self.is_full:
            used, limit = memory_text(use.used_bytes), memory_text(use.limit_bytes)
            found.append(f"the cache of {name} is not full ({used} of {limit})")
        if self._checkpoint < 1:
            known = f" ({int(100 * self._checkpoint)} % of its log is written)" if self._checkpoint else ""
            found.append(f"no checkpoint of {name} is over{known}")
        return found


def warm_up(
    servers: Sequence[Server],
    generator: Generator,
    step: Step,
    shares: Iterable[Share],
    committed: Sequence[Counter[str]],
    limit_seconds: float,
) -> Warmth:
    """Let servers work in the slices of one share after the other until all are warm, at most for all shares.

    A server is warm when its cache is full or no longer grows, and a checkpoint has begun and ended since.
    One that writes its log too slowly for that within `limit_seconds`, of all shares, is not waited for. All
    work until the last one is warm, so that they have done so for equally long. `committed` is that of
    `run_slices`. Raises ServerDiedError.
    """
    warming: list[_WarmingServer] = []
    for place, server in enumerate(servers):
        with blaming(place):
            warming.append(_WarmingServer(server, step))
    seconds = 0.0
    for share in shares:
        try:
            addresses = [server.address for server in servers]
            loads = generator.alternate(addresses, step, share, [Unwatched() for _ in servers])
        except LoadError as error:
            raise blame(servers, step, error) from error
        for place, load in enumerate(loads):
            committed[place].update(committed_in(load))
            with blaming(place):
                warming[place].look()
        seconds += share.schedule.seconds / len(servers)
        if not any(server.gets_warmer(seconds, limit_seconds) for server in warming):
            break
    lacking = tuple(text for server in warming for text in server.lacking)
    return Warmth(seconds, checkpoint=not step.reads_only, lacking=lacking)
