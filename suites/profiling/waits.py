"""What the clients of servers wait for while a load runs, sampled by a question to each server.

A sample says of every client what it does at that moment. However short a wait is, the share of the samples
that it is in is the share of the clients' time that it takes.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from build.errors import TidemarkError
from suites.processes import prefer
from suites.profiling.folding import Window
from suites.profiling.stacks import CLIENT_STATES, StepProfile
from suites.server import MAX_STATES_PER_SECOND, ClientStates
from suites.slices import Schedule

PATIENCE_SECONDS = 10.0
"""How long the last question may take once the load has ended; a server that hangs is not waited for."""


class WaitObserver:
    """An observer of a load (suites.generators.load.Observer) that samples the clients of a server."""

    def __init__(self, states: ClientStates) -> None:
        self.per_second = states.per_second
        self.failure = ""
        """Why the server could not be asked, which ends sampling; the load goes on."""

        self._read = states.read
        self._windows: list[Window] = []
        self._samples: list[tuple[float, Mapping[str, int]]] = []

    def begin(self, pid: int) -> None:
        """Begin a window whose samples count."""
        del pid
        now = time.monotonic()
        self._windows.append((now, now))

    def end(self, pid: int) -> None:
        """End the window; if called again, the last call counts."""
        del pid
        self._windows[-1] = (self._windows[-1][0], time.monotonic())

    def sample(self) -> None:
        """Ask the server what its clients do, once the load has begun."""
        if self._windows and not self.failure:
            try:
                self._samples.append((time.monotonic(), self._read()))
            except TidemarkError as error:
                self.failure = f"no wait events: {error}"

    def profile(self, queries: float) -> StepProfile | None:
        """Return the samples of the windows, in which so many queries finished; None without any."""
        stacks: Counter[str] = Counter()
        for moment, states in self._samples:
            if any(begin <= moment < end for begin, end in self._windows):
                stacks.update(states)
        usable = stacks and queries > 0 and not self.failure
        return StepProfile(CLIENT_STATES, self.per_second, queries, 0, stacks) if usable else None


class WaitSampler:
    """Samples servers that take turns, in a thread, from entering its context until its end."""

    def __init__(self, observers: Sequence[WaitObserver], schedule: Schedule) -> None:
        self._observers, self._schedule = observers, schedule
        self._origin: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample_on, daemon=True)

    def slices_begin(self, moment: float) -> None:
        """Ask from now on only the server whose slice it is; `moment` is when the first slice begins."""
        self._origin = moment

    def __enter__(self) -> Self:
        if self._observers:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._observers:
            self._thread.join(PATIENCE_SECONDS)

    def _sample_on(self) -> None:
        prefer(threading.get_native_id())
        # At a random moment of each period: equal distances would keep step with the slices of the servers.
        draw, began, period = random.Random(0), time.monotonic(), 0
        while not self._ended.wait(
            max(0.0, began + (period + draw.random()) / MAX_STATES_PER_SECOND - time.monotonic())
        ):
            for observer in self._working():
                if draw.random() < observer.per_second / MAX_STATES_PER_SECOND:
                    observer.sample()
            period = max(period, int((time.monotonic() - began) * MAX_STATES_PER_SECOND)) + 1

    def _working(self) -> Sequence[WaitObserver]:
        if self._origin is None:
            return self._observers
        place = self._schedule.worker(time.monotonic() - self._origin)
        return [] if place is None else [self._observers[place]]
