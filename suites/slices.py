"""Several servers that take turns in short slices, so that they share whatever the machine does meanwhile."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

WARM = "w"
WORK = "1"
WAIT = "0"

MOST_GAP_SECONDS = 0.02
"""However long a slice is, it needs no more idle time at its end."""


@dataclass(frozen=True)
class Schedule:
    """Who works when: one server at a time, in slices of equal length."""

    slice_seconds: float
    order: tuple[int, ...]
    """The place of the server that works in each slice."""
    warming: int = 0
    """How many slices at the beginning are not counted."""
    gap_share: float = 0.1
    """Each slice's end is idle, up to MOST_GAP_SECONDS: a transaction that began before may end there."""

    @property
    def gap_seconds(self) -> float:
        """Idle time at the end of each slice."""
        return min(MOST_GAP_SECONDS, self.slice_seconds * self.gap_share)

    @property
    def seconds(self) -> float:
        """From the beginning of the first slice to the end of the last."""
        return self.slice_seconds * len(self.order)

    @property
    def servers(self) -> int:
        """How many take turns."""
        return 1 + max(self.order)

    def kinds(self, server: int) -> str:
        """What one server does in each slice: a letter of WAIT, WARM, WORK."""
        return "".join(
            WAIT if each != server else WARM if place < self.warming else WORK
            for place, each in enumerate(self.order)
        )

    def counted(self, server: int) -> tuple[int, ...]:
        """The places of the slices in which the work of one server counts."""
        return tuple(place for place, kind in enumerate(self.kinds(server)) if kind == WORK)


def mirrored(
    servers: Sequence[int], seconds: float, slice_seconds: float, seed: object, warm_seconds: float = 0.0
) -> Schedule:
    """Slices in blocks such as A B B A: an order drawn by `seed`, then the same backwards.

    Each server works for about `seconds`, in an even number of slices, so that a steady drift of the machine
    hits all alike (Finney 1960, experimental designs balanced for trend). Before that each warms up for about
    `warm_seconds`, in whole slices.
    """
    draw = random.Random(repr(seed))
    warm = [each for each in servers for _ in range(round(warm_seconds / slice_seconds + 0.49))]
    order: list[int] = []
    for _ in range(max(1, round(seconds / slice_seconds / 2))):
        block = draw.sample(list(servers), len(servers))
        order += [*block, *reversed(block)]
    return Schedule(slice_seconds, (*warm, *order), len(warm))
