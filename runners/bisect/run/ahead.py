"""Compiling what is measured next while instructions of what is measured now are counted.

Counts do not depend on what else the machine does, so that a compile may have whatever the passes leave idle.
The compile is a process of its own, which is ended before anything is timed. What it has not finished then is
compiled again when its turn comes, from the objects that it has left in ccache.
"""

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Hashable
from contextlib import suppress
from multiprocessing.context import ForkProcess
from types import FrameType

from build.errors import TidemarkError
from build.host import usable_cores

NICENESS = 10
"""Passes go first. A compile that is waited for has all cores, because nothing else wants them then."""

END_SECONDS = 30.0
"""How long a compile that is ended may take to end its programs, before it is killed."""

_PR_SET_PDEATHSIG = 1


class CompilingAhead:
    """At most one compile at a time in another process, until it is done or is ended."""

    def __init__(self) -> None:
        self._process: ForkProcess | None = None
        self._what: Hashable = None

    def start(self, what: Hashable, compile_next: Callable[[], object]) -> None:
        """Have `compile_next` called, unless a compile is still going on, or there is one core only.

        `what` names that compile. What it raises is not told: whoever needs its result does the work again,
        and tells it then.
        """
        if len(usable_cores()) < 2 or (self._process is not None and self._process.is_alive()):
            return
        fork = multiprocessing.get_context("fork")
        self._process, self._what = fork.Process(target=_work, args=(compile_next,), daemon=True), what
        self._process.start()

    def taken(self, what: Hashable) -> None:
        """Say that the result of the compile of `what` is there, so that the next one can begin.

        Its process gives its lock back shortly before it ends, and until then there would be no next one.
        """
        if self._process is not None and self._what == what:
            self._process.join(END_SECONDS)

    def end(self, *, but: Hashable = None) -> None:
        """End the compile that is going on, if there is one, with all its programs; not that of `but`."""
        if self._process is None or (but is not None and self._what == but):
            return
        self._process.terminate()
        self._process.join(END_SECONDS)
        self._process.kill()
        self._process.join()
        self._process = None


def _work(compile_next: Callable[[], object]) -> None:
    signal.signal(signal.SIGTERM, _end)
    # Ctrl-C reaches both processes, and the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    os.nice(NICENESS)
    with suppress(TidemarkError, OSError):
        compile_next()


def _end(number: int, frame: FrameType | None) -> None:
    # As an exception, so that the programs of the compile are ended, and its lock is released.
    raise SystemExit(128 + number)
