"""What servers do beside queries while a load runs: which background work is going on in which second."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

STALL = "stall"
"""Seconds in which a transaction was under way that took longer than suites.metrics.STALL_MS."""

THROTTLING, MEMORY, LOG_WAIT, FULL_LOG, FLUSH, CHECKPOINT, VACUUM, PURGE, DATA_WAIT, DISK_LIMIT, DISK = (
    "throttling",
    "memory pressure",
    "wait for the log",
    "full redo log",
    "wait for free pages",
    "checkpoint",
    "autovacuum",
    "purge",
    "wait for data files",
    "disk limit",
    "disk pressure",
)
CAUSES: Mapping[str, str] = {
    THROTTLING: "while the control group was throttled",
    MEMORY: "while the machine was short of memory",
    LOG_WAIT: "while clients waited for the log",
    FULL_LOG: "while the redo log was nearly full",
    FLUSH: "while clients waited for free pages",
    CHECKPOINT: "during a checkpoint",
    VACUUM: "during autovacuum",
    PURGE: "during purge",
    DATA_WAIT: "while clients waited for data files",
    DISK_LIMIT: "while the disk was at its declared limit",
    DISK: "while everything waited for the disk",
}
"""What may be going on -> how it is told of a stall; of several, the first is its cause."""

BURSTS = (VACUUM,)
"""What comes seldom, and then takes most of a server for seconds; checkpoints and purge go on and on."""

ACTIVITIES_PER_SECOND = 1.0
"""How often a server is asked, on average, the slices of others included: as fine as throughput is known."""

Window = tuple[float, float]
"""Begin and end, in seconds of the monotonic clock."""


@dataclass(frozen=True)
class Activity:
    """What went on in consecutive seconds of a run."""

    name: str
    """STALL, or one of CAUSES."""
    first: int
    """The first of its seconds, from 1, as the throughput of a run has them."""
    last: int

    def overlaps(self, other: "Activity") -> bool:
        """Whether both have a second in common."""
        return self.first <= other.last and other.first <= self.last


def activities(
    answers: Sequence[tuple[float, Collection[str]]], stalls: Sequence[Window], seconds: Sequence[Window]
) -> tuple[Activity, ...]:
    """Return what went on in the seconds of a run, whose windows are given in order, by name and second.

    An answer holds from the question before on.
    """
    windows = [(name, begin, end) for (begin, _), (end, found) in pairwise(answers) for name in found]
    windows += [(STALL, *stall) for stall in stalls]
    marked: dict[str, set[int]] = {}
    for name, begin, end in windows:
        inside = (
            place for place, second in enumerate(seconds, start=1) if second[0] < end and begin < second[1]
        )
        marked.setdefault(name, set()).update(inside)
    return tuple(
        Activity(name, first, last)
        for name in (STALL, *CAUSES)
        for first, last in _ranges(marked.get(name, ()))
    )


def _ranges(seconds: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of consecutive seconds."""
    ordered = sorted(seconds)
    for place, second in enumerate(ordered):
        if place == 0 or ordered[place - 1] < second - 1:
            first = second
        if place == len(ordered) - 1 or ordered[place + 1] > second + 1:
            yield first, second


def causes_of(found: Collection[Activity]) -> list[str]:
    """Return the cause of each stall of a run, in order: a name of CAUSES, or empty if none is known."""
    stalls = sorted((activity for activity in found if activity.name == STALL), key=lambda stall: stall.first)
    meanwhile = ({activity.name for activity in found if activity.overlaps(stall)} for stall in stalls)
    return [next((name for name in CAUSES if name in names), "") for names in meanwhile]
