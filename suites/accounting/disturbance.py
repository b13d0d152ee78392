"""Disturbances of a measured window: stolen time, foreign processes and throttled processors.

They are the difference of two snapshots, at begin and end, so that the window itself is not disturbed.
"""

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from suites.accounting.proc import TICKS_PER_SECOND, MachineTicks, ProcessTicks, machine_ticks, processes
from suites.accounting.throttling import ThrottleCounters, ThrottleReading, Throttling, throttled_between

MAX_CULPRITS = 3

MIN_CULPRIT_SHARE = 0.01
"""The smallest share of a core for which a process is named."""


@dataclass(frozen=True)
class DisturbanceLimits:
    """The limits up to which a window counts as undisturbed."""

    steal_share: float = 0.02
    """Stolen share of the wanted CPU time: not above the smallest change of practical relevance."""

    others_share: float = 0.10
    """CPU time of foreign processes, in cores: above the usage of the services of an idle system."""

    throttled: int = 0
    """Throttling events: a single one may have slowed down the rest of the window."""


@dataclass(frozen=True)
class Disturbance:
    """The disturbances of one window."""

    seconds: float
    """Length of the window."""

    steal_share: float
    """The share of the CPU time wanted by this machine that its host gave to others, from 0 to 1.

    It is not a share of the machine's total time, because only wanted time can be stolen: with one busy core
    out of 48, the share would always look small. If less than one core was wanted, it is a share of one core,
    so that a few ticks do not become a large share.
    """

    others_share: float
    """CPU time of foreign processes divided by `seconds`: 1.0 is one core. Kernel threads do not count."""

    throttled: int
    """Number of times that processors were too hot, plus periods in which the CPU quota was exhausted."""

    culprits: tuple[str, ...]
    """Names of the processes that used most of `others_share`, in descending order; may be empty."""

    throttling: Throttling = field(default_factory=Throttling)
    """The totals that `throttled` is the sum of."""

    def metrics(self) -> dict[str, float]:
        """Return the shares by name of suites.metrics.METRICS."""
        return {"machine_steal_share": self.steal_share, "others_cpu_share": self.others_share}

    def reasons(self, limits: DisturbanceLimits) -> tuple[str, ...]:
        """Return why the window counts as disturbed, as sentences with figures; empty if it does not."""
        reasons = []
        if self.steal_share > limits.steal_share:
            reasons.append(
                f"the host withheld {100 * self.steal_share:.1f} % of the CPU time that was wanted"
                f" (limit {100 * limits.steal_share:.1f} %)"
            )
        if self.others_share > limits.others_share:
            most = f": most of it {', '.join(self.culprits)}" if self.culprits else ""
            reasons.append(
                f"other processes used {self.others_share:.2f} cores (limit {limits.others_share:.2f}){most}"
            )
        if self.throttled > limits.throttled:
            reasons.append(f"processors were throttled: {_throttled_by(self.throttled, self.throttling)}")
        return tuple(reasons)


@dataclass(frozen=True)
class _Snapshot:
    at: float
    machine: MachineTicks
    processes: Mapping[int, ProcessTicks]
    ours: frozenset[tuple[int, int]]
    """Keys of the processes that belong to the measurement."""

    throttling: ThrottleReading


class DisturbanceWatch:
    """Measures the disturbances of one window after another.

    `ours` returns the process ids at the roots of the trees that currently belong to the measurement:
    servers, load generators and Tidemark itself. `clock` returns seconds.
    """

    def __init__(
        self,
        ours: Callable[[], Iterable[int]],
        proc: Path = Path("/proc"),
        sys: Path = Path("/sys"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ours = ours
        self._proc = proc
        self._clock = clock
        self._throttling = ThrottleCounters(proc, sys)
        self._begin: _Snapshot | None = None

    def begin(self) -> None:
        """Begin a window. Raises OSError or ValueError if there is no Linux /proc."""
        self._begin = self._snapshot()

    def end(self) -> Disturbance:
        """Return the disturbances since the begin of the window. Raises ValueError without a begin."""
        if self._begin is None:
            raise ValueError("end() of a window without begin()")
        return _between(self._begin, self._snapshot())

    def _snapshot(self) -> _Snapshot:
        by_pid = processes(self._proc)
        return _Snapshot(
            at=self._clock(),
            machine=machine_ticks((self._proc / "stat").read_text()),
            processes=by_pid,
            ours=_trees(by_pid, self._ours()),
            throttling=self._throttling.read(),
        )


def _between(begin: _Snapshot, end: _Snapshot) -> Disturbance:
    seconds = max(end.at - begin.at, 1 / TICKS_PER_SECOND)
    # The counters may go backwards if a hypervisor migrates the machine.
    stolen = max(end.machine.stolen - begin.machine.stolen, 0) / TICKS_PER_SECOND
    busy = max(end.machine.busy - begin.machine.busy, 0) / TICKS_PER_SECOND
    window = seconds * TICKS_PER_SECOND
    most = math.ceil(window) * (os.cpu_count() or 1)
    used = _used_by_others(begin, end, most)
    worst = [name for name, ticks in used.most_common() if ticks / window >= MIN_CULPRIT_SHARE]
    throttling = throttled_between(begin.throttling, end.throttling)
    return Disturbance(
        seconds=seconds,
        steal_share=stolen / max(stolen + busy, seconds),
        # None of them used more than all processes together, whatever a snapshot has missed.
        others_share=min(used.total(), most, busy * TICKS_PER_SECOND or most) / window,
        throttled=throttling.heat + throttling.quota,
        culprits=tuple(worst[:MAX_CULPRITS]),
        throttling=throttling,
    )


_ByKey = Mapping[tuple[int, int], ProcessTicks]


def _used_by_others(begin: _Snapshot, end: _Snapshot, most: int) -> Counter[str]:
    """Return the ticks that foreign processes used in the window, by process name.

    All time of a process that started in the window counts. A process that also ended in it is counted in its
    parent, which has waited for it: a compile consists of hundreds of processes that no snapshot sees. Kernel
    threads are omitted, as they mostly work for us.

    No process can have used more than `most` ticks, those of all cores. What exceeds that was used before the
    window by one that the first snapshot has missed, and is left out.
    """
    before = {process.key: process for process in begin.processes.values()}
    now = {process.key: process for process in end.processes.values()}
    latest = max((started for _, started in before), default=0)
    waited = _waited(before, now, begin.processes)
    ours = begin.ours | end.ours
    used: Counter[str] = Counter()
    for key, process in now.items():
        # One that is older than the first snapshot and not in it has been missed there.
        is_known = key in before or process.started >= latest
        if key in ours or process.is_kernel or not is_known:
            continue
        for ticks in (process.own - before.get(key, _NOTHING).own, waited[key]):
            if 0 < ticks <= most:
                used[process.name] += ticks
    return used


def _waited(before: _ByKey, now: _ByKey, by_pid: Mapping[int, ProcessTicks]) -> dict[tuple[int, int], int]:
    """Return the ticks in the window of the ended children that each process has waited for.

    When a process ends, its time before the window is added to its parent as well, and is subtracted here:
    also that of our own processes, of which init may have to wait for some.
    """
    waited = {key: process.waited - before.get(key, _NOTHING).waited for key, process in now.items()}
    for key, process in before.items():
        if key not in now:
            total = process.own + process.waited
            reapers = _possible_reapers(process, by_pid)
            reaper = next((candidate for candidate in reapers if waited.get(candidate, -1) >= total), None)
            # Without a reaper, no process waited for this one, and the kernel dropped its time.
            if reaper is not None:
                waited[reaper] -= total
    return waited


_NOTHING = ProcessTicks(pid=0, name="", parent=0, is_kernel=False, own=0, waited=0, started=0)


def _possible_reapers(ended: ProcessTicks, before: Mapping[int, ProcessTicks]) -> list[tuple[int, int]]:
    """Return the keys of the processes that may have waited for an ended one: its ancestors, and init."""
    reapers: list[tuple[int, int]] = []
    ancestor = before.get(ended.parent)
    while ancestor is not None and ancestor.key not in reapers:
        reapers.append(ancestor.key)
        ancestor = before.get(ancestor.parent)
    if 1 in before:
        reapers.append(before[1].key)
    return reapers


def _trees(by_pid: Mapping[int, ProcessTicks], roots: Iterable[int]) -> frozenset[tuple[int, int]]:
    """Return the keys of the processes `roots` and all their descendants."""
    children: dict[int, list[int]] = {}
    for process in by_pid.values():
        children.setdefault(process.parent, []).append(process.pid)
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in seen:
            seen.add(pid)
            waiting += children.get(pid, [])
    return frozenset(by_pid[pid].key for pid in seen if pid in by_pid)


def _throttled_by(times: int, throttling: Throttling) -> str:
    parts = []
    if throttling.heat > 0:
        parts.append(f"by heat {throttling.heat} times")
    if throttling.quota > 0:
        parts.append(
            f"by the CPU quota of our control group in {throttling.quota} periods,"
            f" {throttling.quota_seconds:.2f} s"
        )
    return " and ".join(parts) or f"{times} times"
