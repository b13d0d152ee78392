"""What others did to a measured window: stolen time, foreign processes, throttled processors.

Two snapshots, at the begin and the end, and nothing in between: watching costs the window nothing.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from suites.accounting.proc import TICKS_PER_SECOND, MachineTicks, ProcessTicks, machine_ticks, processes
from suites.accounting.throttling import ThrottleCounters, Throttling

MOST_CULPRITS = 3

LEAST_CULPRIT_SHARE = 0.01
"""Of one core: what used less is not worth its name."""


@dataclass(frozen=True)
class DisturbanceLimits:
    """Up to where a window counts as undisturbed."""

    steal_share: float = 0.02
    """Of the CPU time that was wanted: no more than the smallest change that is worth a person's time."""

    others_share: float = 0.10
    """CPU of processes that are not ours, in cores: beyond what an idle system's services use."""

    throttled: int = 0
    """Throttling events: one may have slowed the rest of the window."""


@dataclass(frozen=True)
class Disturbance:
    """What others did in one window."""

    seconds: float
    """Length of the window."""

    steal_share: float
    """Of the CPU time that this machine's programs wanted, what its host gave to others; 0 to 1.

    Not of all the machine's time: the host can steal only what is wanted, so that one busy core of 48 would
    hide in that. When less than one core was wanted it is a share of one core: few ticks make no share.
    """

    others_share: float
    """CPU time of processes that are not ours over `seconds`: 1.0 is one core. No kernel threads."""

    throttled: int
    """Times that processors were too hot, and periods in which our control group was out of CPU quota."""

    culprits: tuple[str, ...]
    """Names of the processes that used most of `others_share`, the worst first; few, perhaps none."""

    throttling: Throttling = field(default_factory=Throttling)
    """What `throttled` is made of."""

    def metrics(self) -> dict[str, float]:
        """By name of suites.metrics.METRICS."""
        return {"machine_steal_share": self.steal_share, "others_cpu_share": self.others_share}

    def reasons(self, limits: DisturbanceLimits) -> tuple[str, ...]:
        """Why the window counts as disturbed, each a sentence with its figures; empty when it does not."""
        said = []
        if self.steal_share > limits.steal_share:
            said.append(
                f"the host withheld {self.steal_share:.1%} of the CPU time that was wanted"
                f" (limit {limits.steal_share:.1%})"
            )
        if self.others_share > limits.others_share:
            most = f": most of it {', '.join(self.culprits)}" if self.culprits else ""
            said.append(
                f"other processes used {self.others_share:.1%} of a core"
                f" (limit {limits.others_share:.1%}){most}"
            )
        if self.throttled > limits.throttled:
            said.append(f"processors were throttled: {_throttled_by(self.throttled, self.throttling)}")
        return tuple(said)


@dataclass(frozen=True)
class _Snapshot:
    at: float
    machine: MachineTicks
    processes: Mapping[int, ProcessTicks]
    ours: frozenset[tuple[int, int]]
    """Keys of the processes in our trees."""

    throttling: Throttling


class DisturbanceWatch:
    """Watches one window after another for what others do in it.

    `ours` names the roots of the process trees that belong to the measurement, as they are when it is asked:
    servers, load generators, Tidemark itself. `clock` is in seconds.
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
        """The window begins. Raises OSError or ValueError where there is no Linux /proc."""
        self._begin = self._snapshot()

    def end(self) -> Disturbance:
        """The window has ended, or has come this far. Raises ValueError when it never began."""
        if self._begin is None:
            raise ValueError("a window that never began")
        return _between(self._begin, self._snapshot())

    def _snapshot(self) -> _Snapshot:
        found = processes(self._proc)
        return _Snapshot(
            at=self._clock(),
            machine=machine_ticks((self._proc / "stat").read_text()),
            processes=found,
            ours=_trees(found, self._ours()),
            throttling=self._throttling.read(),
        )


def _between(begin: _Snapshot, end: _Snapshot) -> Disturbance:
    seconds = max(end.at - begin.at, 1 / TICKS_PER_SECOND)
    # A hypervisor that moves the machine may set the counters back.
    stolen = max(end.machine.stolen - begin.machine.stolen, 0) / TICKS_PER_SECOND
    busy = max(end.machine.busy - begin.machine.busy, 0) / TICKS_PER_SECOND
    used = _used(_others(begin, begin.ours), _others(end, begin.ours | end.ours), begin.processes)
    window = seconds * TICKS_PER_SECOND
    worst = [name for name, ticks in used.most_common() if ticks / window >= LEAST_CULPRIT_SHARE]
    throttling = end.throttling - begin.throttling
    return Disturbance(
        seconds=seconds,
        steal_share=stolen / max(stolen + busy, seconds),
        others_share=used.total() / window,
        throttled=max(throttling.heat, 0) + max(throttling.quota, 0),
        culprits=tuple(worst[:MOST_CULPRITS]),
        throttling=throttling,
    )


_Others = Mapping[tuple[int, int], ProcessTicks]


def _others(snapshot: _Snapshot, ours: frozenset[tuple[int, int]]) -> _Others:
    """Who is neither ours, nor was, nor a thread of the kernel: what that does is mostly done for us."""
    return {
        each.key: each for each in snapshot.processes.values() if not each.is_kernel and each.key not in ours
    }


def _used(begin: _Others, end: _Others, before: Mapping[int, ProcessTicks]) -> Counter[str]:
    """Ticks that others used in the window, by the name of the process.

    A process that was born in the window counts whole. One that came and went in it is counted through its
    parent, who has waited for it: a compile is hundreds of processes of which no snapshot sees one. What a
    process had used before the window comes to its parent too when it ends, and is taken away again there.
    """
    waited = {key: each.waited - _before(begin, key).waited for key, each in end.items()}
    for key, each in begin.items():
        if key not in end:
            whole = each.own + each.waited
            reaper = next((one for one in _heirs(each, before) if waited.get(one, -1) >= whole), None)
            # No heir that has got it: nobody waited for the process, and the kernel dropped its time.
            if reaper is not None:
                waited[reaper] -= whole
    used: Counter[str] = Counter()
    for key, each in end.items():
        used[each.name] += max(each.own - _before(begin, key).own, 0) + max(waited[key], 0)
    return +used


_NOTHING = ProcessTicks(pid=0, name="", parent=0, is_kernel=False, own=0, waited=0, started=0)


def _before(begin: _Others, key: tuple[int, int]) -> ProcessTicks:
    return begin.get(key, _NOTHING)


def _heirs(ended: ProcessTicks, before: Mapping[int, ProcessTicks]) -> list[tuple[int, int]]:
    """Who may have waited for a process: its parent, those above it, and in the end init."""
    heirs: list[tuple[int, int]] = []
    above = before.get(ended.parent)
    while above is not None and above.key not in heirs:
        heirs.append(above.key)
        above = before.get(above.parent)
    if 1 in before:
        heirs.append(before[1].key)
    return heirs


def _trees(found: Mapping[int, ProcessTicks], roots: Iterable[int]) -> frozenset[tuple[int, int]]:
    """Keys of the processes at and below `roots`."""
    children: dict[int, list[int]] = {}
    for each in found.values():
        children.setdefault(each.parent, []).append(each.pid)
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in seen:
            seen.add(pid)
            waiting += children.get(pid, [])
    return frozenset(found[pid].key for pid in seen if pid in found)


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
