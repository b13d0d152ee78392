"""Hardware counters of a server's processes, by perf_event_open(2).

Psutil does not support counters, and `perf stat` reports a total only once, at its end.
"""

import contextlib
import ctypes
import errno
import math
import os
import platform
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from build.errors import TidemarkError
from suites.processes import tree_of

PROC = Path("/proc")


class CounterError(TidemarkError):
    """A counter is not available on this machine, or may not be read."""


@dataclass(frozen=True)
class CounterEvent:
    """The type and the number of an event (linux/perf_event.h)."""

    kind: int
    number: int
    user_only: bool = False
    """Whether the kernel's work for the process is left out."""


INSTRUCTIONS = CounterEvent(0, 1, user_only=True)
"""PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS: retired instructions in user code, which perf calls
`instructions:u`."""

TASK_CLOCK = CounterEvent(1, 1)
"""PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK: nanoseconds of CPU time, available on every machine."""

_NUMBERS = {"x86_64": 298, "aarch64": 241}
"""Architecture -> number of the system call perf_event_open."""

_ENABLED_AND_RUNNING = 3
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING, by which shared hardware counters are scaled."""

_INHERIT = 1 << 1
"""The flag for counting children that are started later; their counts remain when they end."""


_EXCLUDE_KERNEL = 1 << 5 | 1 << 6
"""The flags exclude_kernel and exclude_hv."""


class _Attributes(ctypes.Structure):
    """struct perf_event_attr of PERF_ATTR_SIZE_VER5, which newer kernels accept."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("rest", ctypes.c_uint8 * 64),
    )


@dataclass(frozen=True)
class CounterReading:
    """What the kernel says of one counter, see perf_event_open(2)."""

    value: int
    enabled: int
    """Nanoseconds for which the event was to be counted."""

    running: int
    """Nanoseconds for which it was: hardware counters are shared if there are too few."""


CounterReadings = Sequence[CounterReading]
"""The counters of the threads of a TreeCounter, in its order."""


def counted_between(begin: CounterReadings, end: CounterReadings) -> float:
    """Return how much was counted between two readings, scaled up if counters were shared with other events.

    It is scaled by the time between the readings, since a total that is scaled may go down. The result is NaN
    if a thread ran, but its turn at the counter never came.
    """
    total = 0.0
    for before, after in zip(begin, end, strict=True):
        running = after.running - before.running
        if running:
            total += (after.value - before.value) * (after.enabled - before.enabled) / running
        elif after.enabled > before.enabled:
            return math.nan
    return total


class TreeCounter:
    """Counts one event in a process, its threads and all their descendants, from its creation on."""

    def __init__(self, pid: int, event: CounterEvent) -> None:
        """Start counting. Raises CounterError if the event is not available or may not be counted."""
        self._files: list[int] = []
        for thread in _threads(pid):
            try:
                self._files.append(_open(thread, event))
            except ProcessLookupError:
                continue  # The thread has ended meanwhile.
            except OSError as error:
                self.close()
                raise CounterError(
                    f"the kernel does not count this event: {os.strerror(error.errno or 0)}"
                ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def counts(self) -> bool:
        """Whether any thread is counted."""
        return bool(self._files)

    def read(self) -> "CounterReadings":
        """Return what every thread's counter says now."""
        return [CounterReading(*struct.unpack("=QQQ", os.read(file, 24))) for file in self._files]

    def close(self) -> None:
        """Stop counting."""
        while self._files:
            os.close(self._files.pop())


@contextlib.contextmanager
def instructions_of(pids: Sequence[int]) -> Iterator[list[TreeCounter | None]]:
    """Yield an instruction counter per process tree; all are None on a machine without counters."""
    with contextlib.ExitStack() as stack:
        counters: list[TreeCounter | None] = [None] * len(pids)
        with contextlib.suppress(CounterError):
            opened = [stack.enter_context(TreeCounter(pid, INSTRUCTIONS)) for pid in pids]
            counters = [counter if counter.counts else None for counter in opened]
        yield counters


def _threads(pid: int) -> list[int]:
    """Return the thread ids of a process and all its descendants."""
    threads: list[int] = []
    for process in tree_of(pid):
        with contextlib.suppress(OSError):
            threads += [int(folder.name) for folder in (PROC / str(process) / "task").iterdir()]
    return threads


def _open(thread: int, event: CounterEvent) -> int:
    """Return the file descriptor of a counter of one thread on all cores. Raises OSError."""
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    attributes = _Attributes(
        type=event.kind,
        size=ctypes.sizeof(_Attributes),
        config=event.number,
        read_format=_ENABLED_AND_RUNNING,
        flags=_INHERIT | (_EXCLUDE_KERNEL if event.user_only else 0),
    )
    libc = ctypes.CDLL(None, use_errno=True)
    file: int = libc.syscall(number, ctypes.byref(attributes), thread, -1, -1, _CLOSE_ON_EXEC)
    if file < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return file


_CLOSE_ON_EXEC = 8
"""PERF_FLAG_FD_CLOEXEC."""
