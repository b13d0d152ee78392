"""What the clients of servers wait for while a load runs, sampled by a question to each server.

A sample says of every client what it does at that moment. However short a wait is, the share of the samples
that it is in is the share of the clients' time that it takes.
"""

import time
from collections import Counter

from suites.accounting.sampling import RepeatedQuestion
from suites.profiling.folding import Window
from suites.profiling.stacks import CLIENT_STATES, StepProfile
from suites.server import ClientStates


class WaitObserver:
    """An observer of a load (suites.generators.load.Observer) that samples the clients of a server."""

    def __init__(self, states: ClientStates) -> None:
        self.question = RepeatedQuestion(states.read, states.per_second)
        """What the clients did at each of the moments, without a window too."""

        self._windows: list[Window] = []

    def begin(self, pid: int) -> None:
        """Begin a window whose samples count."""
        del pid
        now = time.monotonic()
        self._windows.append((now, now))

    def end(self, pid: int) -> None:
        """End the window; if called again, the last call counts."""
        del pid
        self._windows[-1] = (self._windows[-1][0], time.monotonic())

    def profile(self, queries: float) -> StepProfile | None:
        """Return the samples of the windows, in which so many queries finished; None without any."""
        stacks: Counter[str] = Counter()
        for moment, states in self.question.answers:
            if any(begin <= moment < end for begin, end in self._windows):
                stacks.update(states)
        usable = stacks and queries > 0 and self.question.failure is None
        return StepProfile(CLIENT_STATES, self.question.per_second, queries, 0, stacks) if usable else None
