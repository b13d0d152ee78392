"""Throttling of the processors: by heat, or by the CPU quota of a control group."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from build.control_groups import PROC, number_in, numbers_in, own_path
from suites.accounting.activity import THROTTLING


@dataclass(frozen=True)
class Throttling:
    """What happened between two readings."""

    heat: int = 0
    """Number of times that a processor or its package was too hot (thermal_throttle, sum over processors)."""

    quota: int = 0
    """Number of periods in which one of our control groups had exhausted its CPU quota."""

    quota_seconds: float = 0.0
    """Time for which it was throttled in those periods, sum over processors."""

    def __add__(self, other: "Throttling") -> "Throttling":
        return Throttling(
            self.heat + other.heat, self.quota + other.quota, self.quota_seconds + other.quota_seconds
        )


ThrottleReading = Mapping[Path, Throttling]
"""The running totals of each file that could be read, since boot or since its control group was created."""


class ThrottleCounters:
    """Reads the counters of this machine and of the control groups of this process."""

    def __init__(self, proc: Path, sys: Path) -> None:
        # The set of files does not change, and finding them is more expensive than reading them.
        self._heat = sorted(sys.glob("devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count"))
        self._quotas = list(_quota_files(proc, sys))

    def read(self) -> ThrottleReading:
        """Return the current totals; nothing of what the machine does not count."""
        found: dict[Path, Throttling] = {}
        for path in self._heat:
            if (times := number_in(path)) is not None:
                found[path] = Throttling(heat=times)
        for path in self._quotas:
            group = numbers_in(path)
            if "nr_throttled" in group:
                seconds = group.get("throttled_usec", 0) / 1e6
                found[path] = Throttling(quota=group["nr_throttled"], quota_seconds=seconds)
        return found


def throttled_between(begin: ThrottleReading, end: ThrottleReading) -> Throttling:
    """Return what happened between two readings.

    A processor that was switched off, or a control group that was removed, has no part in it, and neither has
    one that was set back.
    """
    total = Throttling()
    for path in begin.keys() & end.keys():
        before, after = begin[path], end[path]
        heat, quota = after.heat - before.heat, after.quota - before.quota
        seconds = after.quota_seconds - before.quota_seconds
        if min(heat, quota, seconds) >= 0:
            total += Throttling(heat, quota, seconds)
    return total


def quota_reader(proc: Path = PROC, sys: Path = Path("/sys")) -> Callable[[], Collection[str]]:
    """Return a function that returns THROTTLING if our control groups had exhausted their CPU quota since its
    last call.
    """
    counters = ThrottleCounters(proc, sys)
    before = counters.read()

    def read() -> Collection[str]:
        nonlocal before
        begin, before = before, counters.read()
        return [THROTTLING] if throttled_between(begin, before).quota else []

    return read


def _quota_files(proc: Path, sys: Path) -> Iterator[Path]:
    """Yield `cpu.stat` of our control group and of its ancestors, any of which may have a quota."""
    for folder in own_path(proc, sys.parent):
        with contextlib.suppress(OSError, ValueError):  # such as a name that is too long
            if (folder / "cpu.stat").is_file():
                yield folder / "cpu.stat"
