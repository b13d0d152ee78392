"""Schedules of servers that take turns in short slices, so that a disturbance affects all of them alike."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from build.errors import TidemarkError

# What a server does in a slice; suites/generators/tidemark.lua reads the same letters.
WARM = "w"
WORK = "1"
WAIT = "0"

MAX_GAP_SECONDS = 0.02
"""The maximum idle time at the end of a slice, whatever its length."""

SHORTEST_SLICE = 0.001
"""Seconds."""

MAX_SLICES = 100_000
"""In a round, of all servers together. sysbench is told of them in one argument, of which Linux takes 128 KiB
(MAX_ARG_STRLEN, execve(2))."""

LONGEST_SECONDS = 86_400
"""The most that a version can be asked to work on a step in a round: a day."""

MAX_ROUNDS = 10_000
"""The most rounds of a step."""

LONGEST_BUDGET_MINUTES = 10_080
"""The longest budget of a session: a week."""


class ScheduleError(TidemarkError):
    """A round would have more slices than a load generator can be told of."""


@dataclass(frozen=True)
class Schedule:
    """The order in which servers work, one at a time, in slices of equal length."""

    slice_seconds: float
    """Length of a slice."""
    order: tuple[int, ...]
    """The index of the server that works in each slice."""
    warming: int = 0
    """Number of slices at the beginning that warm up and are not counted."""
    gap_share: float = 0.1
    """Idle share at the end of a slice, up to MAX_GAP_SECONDS, in which the last transaction ends."""

    @property
    def gap_seconds(self) -> float:
        """Idle time at the end of each slice."""
        return min(MAX_GAP_SECONDS, self.slice_seconds * self.gap_share)

    @property
    def seconds(self) -> float:
        """Time from the beginning of the first slice to the end of the last."""
        return self.slice_seconds * len(self.order)

    @property
    def servers(self) -> int:
        """Number of servers that take turns."""
        return 1 + max(self.order)

    def worker(self, seconds: float) -> int | None:
        """Return the server that works so many seconds after the first slice began; None before and after."""
        return self.order[int(seconds / self.slice_seconds)] if 0 <= seconds < self.seconds else None

    def kinds(self, server: int) -> str:
        """Return one character per slice for one server: WAIT, WARM or WORK."""
        return "".join(
            WAIT if worker != server else WARM if place < self.warming else WORK
            for place, worker in enumerate(self.order)
        )

    def counted(self, server: int) -> tuple[int, ...]:
        """Return the indexes of the slices in which the work of one server counts."""
        return tuple(place for place, kind in enumerate(self.kinds(server)) if kind == WORK)


def slices_in(seconds: float, slice_seconds: float) -> int:
    """Return in how many slices a server works for about `seconds`: an even number, at least 2."""
    return 2 * max(1, round(seconds / slice_seconds / 2))


def warm_slices(warm_seconds: float, slice_seconds: float) -> int:
    """Return in how many slices a server warms up for `warm_seconds`."""
    return round(warm_seconds / slice_seconds + 0.49)


def require_few_slices(servers: int, seconds: float, slice_seconds: float, warm_seconds: float = 0.0) -> None:
    """Raise ScheduleError when so many servers would work in more than MAX_SLICES slices."""
    wanted = servers * (slices_in(seconds, slice_seconds) + warm_slices(warm_seconds, slice_seconds))
    if wanted > MAX_SLICES:
        raise ScheduleError(
            f"a round of {servers} versions would have {wanted:,} slices, of at most {MAX_SLICES:,}",
            where=f"{seconds:g} s in slices of {slice_seconds:g} s",
            hint="take fewer seconds or versions, or a profile with longer slices",
        )


def balanced_block(number: int, servers: int, turns: int, slice_seconds: float, seed: object) -> Schedule:
    """Return the schedule of block `number`, from 1, of several that are each an observation of their own.

    It is `mirrored` with so many turns, whose orders are drawn for every two blocks; the second of these has
    each of them the other way round, such as B A A B after A B B A. So what is particular to the first and
    last slices of a block affects all servers equally in every two blocks, and no single one in all of them.
    """
    drawn = mirrored(range(servers), 2 * turns * slice_seconds, slice_seconds, (seed, (number + 1) // 2))
    if number % 2:
        return drawn
    order: list[int] = []
    for begin in range(0, len(drawn.order), 2 * servers):
        half = drawn.order[begin : begin + servers]
        order += [*reversed(half), *half]
    return Schedule(slice_seconds, tuple(order))


def mirrored(
    servers: Sequence[int], seconds: float, slice_seconds: float, seed: object, warm_seconds: float = 0.0
) -> Schedule:
    """Return a schedule of blocks such as A B B A: an order drawn with `seed`, then the same order reversed.

    Every server works for about `seconds`, in an even number of slices, so that a steady drift of the machine
    affects all of them alike (Finney 1960, experimental designs balanced for trend). Before that, every
    server warms up for about `warm_seconds`, in whole slices. Raises ScheduleError if slices are too many.
    """
    require_few_slices(len(servers), seconds, slice_seconds, warm_seconds)
    draw = random.Random(repr(seed))
    warm = [server for server in servers for _ in range(warm_slices(warm_seconds, slice_seconds))]
    order: list[int] = []
    for _ in range(slices_in(seconds, slice_seconds) // 2):
        block = draw.sample(list(servers), len(servers))
        order += [*block, *reversed(block)]
    return Schedule(slice_seconds, (*warm, *order), len(warm))
