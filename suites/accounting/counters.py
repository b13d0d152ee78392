"""Hardware counters of a server's processes, from the kernel: perf_event_open(2).

Psutil knows no counters, and `perf stat` can be asked for a total only once, at its end.
"""

import contextlib
import ctypes
import errno
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
    """A counter that this machine does not have, or that may not be read."""


@dataclass(frozen=True)
class CounterEvent:
    """What is counted, as the kernel numbers it (linux/perf_event.h)."""

    kind: int
    number: int


INSTRUCTIONS = CounterEvent(0, 1)
"""PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS: retired, in user and kernel code."""

TASK_CLOCK = CounterEvent(1, 1)
"""PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK: nanoseconds of CPU time; every machine has it."""

_NUMBERS = {"x86_64": 298, "aarch64": 241}
"""Of the system call perf_event_open."""

_ENABLED_AND_RUNNING = 3
"""PERF_FORMAT_TOTAL_TIME_ENABLED and _RUNNING: for when more is counted than there are counters."""

_INHERIT = 1 << 1
"""Children that are born later count too, and their counts stay when they end."""


class _Attributes(ctypes.Structure):
    """struct perf_event_attr as of PERF_ATTR_SIZE_VER5; newer kernels take it as it is."""

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


class TreeCounter:
    """One event, counted over a process, its threads and all their descendants from now on."""

    def __init__(self, pid: int, event: CounterEvent) -> None:
        """Raises CounterError when the machine does not have it, or it may not be read."""
        self._files: list[int] = []
        for thread in _threads(pid):
            try:
                self._files.append(_open(thread, event))
            except ProcessLookupError:
                continue  # it has ended meanwhile
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
        """Whether there was any thread to count."""
        return bool(self._files)

    def read(self) -> float:
        """The count so far; scaled up where the counter was shared with other events."""
        total = 0.0
        for file in self._files:
            value, enabled, running = struct.unpack("=QQQ", os.read(file, 24))
            total += value * enabled / running if running else 0.0
        return total

    def close(self) -> None:
        """Count no more."""
        while self._files:
            os.close(self._files.pop())


@contextlib.contextmanager
def instructions_of(pids: Sequence[int]) -> Iterator[list[TreeCounter | None]]:
    """A counter of instructions for each process tree; None everywhere on a machine without counters."""
    with contextlib.ExitStack() as stack:
        counters: list[TreeCounter | None] = [None] * len(pids)
        with contextlib.suppress(CounterError):
            opened = [stack.enter_context(TreeCounter(pid, INSTRUCTIONS)) for pid in pids]
            counters = [each if each.counts else None for each in opened]
        yield counters


def _threads(pid: int) -> list[int]:
    """The threads of a process and of all its descendants."""
    found: list[int] = []
    for process in tree_of(pid):
        with contextlib.suppress(OSError):
            found += [int(each.name) for each in (PROC / str(process) / "task").iterdir()]
    return found


def _open(thread: int, event: CounterEvent) -> int:
    """The file of a counter of one thread on whatever core. Raises OSError."""
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    attributes = _Attributes(
        type=event.kind,
        size=ctypes.sizeof(_Attributes),
        config=event.number,
        read_format=_ENABLED_AND_RUNNING,
        flags=_INHERIT,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    file: int = libc.syscall(number, ctypes.byref(attributes), thread, -1, -1, _CLOSE_ON_EXEC)
    if file < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return file


_CLOSE_ON_EXEC = 8
"""PERF_FLAG_FD_CLOEXEC."""
