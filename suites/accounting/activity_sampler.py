"""Asking servers once a second what they do beside queries, each through a connection of its own."""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from build.errors import TidemarkError
from suites.accounting.activity import THROTTLING
from suites.accounting.throttling import ThrottleCounters, throttled_between
from suites.processes import prefer

SECONDS_BETWEEN = 1.0
"""Between two questions to a server, at least."""

PATIENCE_SECONDS = 10.0
"""How long the last answer is waited for once the load has ended."""


@dataclass
class ActivityReader:
    """Asks one server what goes on; `read` returns names of CAUSES, and raises TidemarkError."""

    read: Callable[[], Collection[str]]
    answers: list[tuple[float, Collection[str]]] = field(default_factory=list)
    """The moment of each question, and what was going on."""
    failure: str = ""
    """Why the server could not be asked, which ends the questions; the load goes on."""

    def ask(self, beside: Collection[str]) -> None:
        """Ask once; `beside` is what is known otherwise to go on."""
        if not self.failure:
            try:
                self.answers.append((time.monotonic(), {*self.read(), *beside}))
            except TidemarkError as error:
                self.failure = f"checkpoints and vacuums are not known: {error}"


class ActivitySampler:
    """Asks several servers in a thread, from entering its context until its end."""

    def __init__(self, readers: Sequence[ActivityReader]) -> None:
        self._readers = readers
        self._throttling = ThrottleCounters(Path("/proc"), Path("/sys"))
        self._throttled = self._throttling.read()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask_on, daemon=True)

    def __enter__(self) -> Self:
        if self._readers:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._readers:
            self._thread.join(PATIENCE_SECONDS)

    def _ask_on(self) -> None:
        prefer(threading.get_native_id())
        while True:
            now = self._throttling.read()
            quota = throttled_between(self._throttled, now).quota
            self._throttled = now
            for reader in self._readers:
                reader.ask([THROTTLING] if quota else ())
            if self._ended.wait(SECONDS_BETWEEN):
                return
