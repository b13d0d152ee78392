"""What ends a query at its limit."""

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress


class Watched:
    """Work with a deadline, which the watchdog began to watch."""

    __slots__ = ("cancel", "cancelled", "deadline")

    def __init__(self, deadline: float, cancel: Callable[[], None]) -> None:
        self.deadline = deadline
        self.cancel = cancel
        self.cancelled: threading.Event | None = None


class Watchdog:
    """One thread that cancels all work that is late.

    A query pays for what is done for each one: a thread of its own took up to 6 % of the time of one of 10 ms
    and locks another per cent. So work is begun and ended by one step each, which Python does not interrupt:
    either the end finds the work in the dictionary, or the watchdog has taken it out before.
    """

    def __init__(self) -> None:
        self._watched: dict[Watched, None] = {}
        self._changed = threading.Condition()
        self._wakes = math.inf
        """When the thread looks again. While it looks: always later, so that all work begun now wakes it."""
        self._thread: threading.Thread | None = None

    def begin(self, seconds: float, cancel: Callable[[], None]) -> Watched:
        """Call `cancel` from another thread unless `end` is called within so many seconds."""
        watched = Watched(time.monotonic() + seconds, cancel)
        self._watched[watched] = None
        if watched.deadline < self._wakes:
            with self._changed:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
                    self._thread.start()
                self._changed.notify()
        return watched

    def end(self, watched: Watched) -> bool:
        """Watch no longer; return whether the work was late. If so, `cancel` has returned."""
        if self._watched.pop(watched, self) is None:
            return False
        assert watched.cancelled is not None
        watched.cancelled.wait()
        return True

    def _watch(self) -> None:
        while True:
            for watched in self._late():
                # What cannot be cancelled takes its time; the thread has to live for what comes later.
                with suppress(Exception):
                    watched.cancel()
                assert watched.cancelled is not None
                watched.cancelled.set()

    def _late(self) -> list[Watched]:
        """Wait until some work is late, and return it."""
        with self._changed:
            while True:
                self._wakes = math.inf
                now = time.monotonic()
                watched = list(self._watched)
                late = [task for task in watched if task.deadline <= now and self._taken(task)]
                if late:
                    return late
                # Work that is done in time does not wake it: it looks again when that would have been late.
                self._wakes = min((task.deadline for task in watched), default=math.inf)
                self._changed.wait(min(max(0.0, self._wakes - now), threading.TIMEOUT_MAX))

    def _taken(self, watched: Watched) -> bool:
        """Take late work out, and return whether it had not ended."""
        watched.cancelled = threading.Event()
        return self._watched.pop(watched, self) is None
