"""Pressure on the memory and the disk of this machine, as the kernel counts it (PSI).

The line `full` counts the time in which everything that had work to do waited for the resource
(Documentation/accounting/psi.rst).
"""

import contextlib
import re
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from build.control_groups import PROC
from suites.accounting.activity import DISK, MEMORY

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
