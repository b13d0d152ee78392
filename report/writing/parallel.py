"""Work of a renewal that another process does beside it."""

import ctypes
import multiprocessing
import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

from history.store.database import Database

Value = TypeVar("Value")

_PR_SET_PDEATHSIG = 1
"""Of prctl(2): the signal that a process gets when its parent ends."""


class InParallel(Generic[Value]):
    """A function of the history that runs in a process of its own, which is forked when this is made.

    What it returns must be what pickle takes. The process ends with the context, and with this process: it
    has the file of the site's lock open, which would otherwise stay locked.
    """

    def __init__(self, database: Database, work: Callable[[], Value]) -> None:
        self._work = work
        fork = multiprocessing.get_context("fork")
        self._answer, answer = fork.Pipe(duplex=False)
        self._process = fork.Process(target=_answer, args=(database, work, answer), daemon=True)
        self._process.start()
        answer.close()
        self._found: list[Value] = []

    def __enter__(self) -> "InParallel[Value]":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._answer.close()

    def value(self) -> Value:
        """Wait for the function, and return what it returned.

        If the process has failed, the function runs again in this one: what it raises is raised from here.
        """
        if not self._found:
            with suppress(EOFError):
                self._found = self._answer.recv()
            self._process.join()
        if not self._found:
            self._found = [self._work()]
        return self._found[0]


def _answer(database: Database, work: Callable[[], Value], answer: Connection) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Ctrl-C reaches both processes, and the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    database.forget_connections()
    with suppress(Exception):  # the parent does the work again, and reports what it raises
        answer.send([work()])
    answer.close()
