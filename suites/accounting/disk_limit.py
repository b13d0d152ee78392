"""Whether a server's disk was at its declared limit."""

import time
from collections.abc import Callable, Collection

from suites.accounting.activity import ACTIVITIES_PER_SECOND, DISK_LIMIT
from suites.control_groups.declared import DiskUse
from suites.slices import Schedule

AT_LIMIT = 0.9
"""The share of what is declared from which on a disk counts as at its limit."""

SHORTEST_SECONDS = 0.2
"""The time below which nothing is said anew: the kernel lets requests through in portions of up to 0.1 s."""


def disk_limit_reader(
    read: Callable[[], DiskUse | None], schedule: Schedule, clock: Callable[[], float] = time.monotonic
) -> Callable[[], Collection[str]]:
    """Return a function that returns DISK_LIMIT if a disk was at its declared limit since its last call.

    `read` returns what the server has read and written so far, or None without a declared disk. Where slices
    are shorter than the time between two questions, the server works for its share of that time only.
    """
    is_short = schedule.slice_seconds * ACTIVITIES_PER_SECOND < 1
    working_share = 1 / schedule.servers if is_short else 1.0
    before, began, last = read(), clock(), list[str]()

    def at_limit() -> Collection[str]:
        nonlocal before, began, last
        seconds = (clock() - began) * working_share
        if before is None or seconds < SHORTEST_SECONDS:
            return last
        now = read()
        if now is not None:
            last = [DISK_LIMIT] if now.share_since(before, seconds) >= AT_LIMIT else []
            before, began = now, clock()
        return last

    return at_limit
