"""One execution of a query or a refresh function within its limit."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from suites.generators.queries.scripts import with_key
from suites.generators.queries.sessions import ERRORS, QuerySession, Rows


@dataclass(frozen=True)
class Execution:
    """One execution of a query."""

    seconds: float
    rows: Rows
    """The rows of its last statement."""
    is_over: bool
    """Whether it took longer than its limit, or was ended there."""


def execute(
    session: QuerySession, statements: Sequence[str], limit: float, keys: Sequence[int] = ()
) -> Execution:
    """Carry a query out, or a refresh function with one transaction for each of `keys`.

    At `limit` seconds the running statement is cancelled. Raises one of ERRORS for any other failure.
    """
    cancelled = threading.Event()

    def cancel() -> None:
        cancelled.set()
        session.cancel()

    rows: Rows = ()
    began = time.perf_counter()
    timer = threading.Timer(limit, cancel)
    timer.daemon = True
    timer.start()
    try:
        if keys:
            _refresh(session, statements, keys, began + limit)
        else:
            for text in statements:
                rows = session.execute(text)
    except ERRORS:
        if not cancelled.is_set() and time.perf_counter() - began < limit:
            raise
    seconds = time.perf_counter() - began
    timer.cancel()
    return Execution(seconds, rows, cancelled.is_set() or seconds >= limit)


def _refresh(session: QuerySession, statements: Sequence[str], keys: Sequence[int], deadline: float) -> None:
    for key in keys:
        session.execute("BEGIN")
        for text in statements:
            session.execute(with_key(text, key))
        session.execute("COMMIT")
        if time.perf_counter() >= deadline:
            return
