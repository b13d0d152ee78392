"""Waiting for resources: pressure on memory and disk as the kernel counts it (PSI), and a disk at its limit.

The line `full` counts the time in which everything that had work to do waited for the resource
(Documentation/accounting/psi.rst).
"""

import contextlib
import re
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from build.control_groups import PROC
from suites.accounting.activity import ACTIVITIES_PER_SECOND, DISK, DISK_LIMIT, MEMORY
from suites.control_groups.declared import DiskUse
from suites.slices import Schedule

MIN_SHARE = 0.5
"""The share of the time between two questions from which on it is told that all waited."""

_FILES = {"memory": MEMORY, "io": DISK}
_FULL = re.compile(r"^full .*\btotal=([0-9]{1,18})$", re.MULTILINE)


def waited(text: str) -> float | None:
    """Return the seconds in which everything waited, from the text of a pressure file; None without them."""
    found = _FULL.search(text)
    return None if found is None else int(found[1]) / 1e6


def pressure_reader(
    proc: Path = PROC, clock: Callable[[], float] = time.monotonic
) -> Callable[[], Collection[str]]:
    """Return a function that returns which of MEMORY and DISK everything waited for since its last call.

    It returns nothing of a kernel that does not count it.
    """

    def totals() -> tuple[float, Mapping[str, float]]:
        found: dict[str, float] = {}
        for file, name in _FILES.items():
            with contextlib.suppress(OSError):
                seconds = waited((proc / "pressure" / file).read_text(encoding="ascii", errors="replace"))
                if seconds is not None:
                    found[name] = seconds
        return clock(), found

    before = totals()

    def read() -> Collection[str]:
        nonlocal before
        (began, old), before = before, totals()
        now, new = before
        least = MIN_SHARE * (now - began)
        return [name for name in old.keys() & new.keys() if new[name] - old[name] >= least > 0]

    return read


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
