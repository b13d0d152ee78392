"""One execution of a query within its limit."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from suites.generators.queries.sessions import ERRORS, QuerySession, Rows
from suites.generators.queries.watchdog import Watchdog

_WATCHDOG = Watchdog()


@dataclass(frozen=True)
class Execution:
    """One execution of a query."""

    seconds: float
    rows: Rows
    """The rows of its last statement, if they were wanted."""
    is_over: bool
    """Whether it took longer than its limit, or was ended there."""


def execute(
    session: QuerySession, statements: Sequence[str], limit: float, *, wants_rows: bool = False
) -> Execution:
    """Carry a query out, whose running statement is cancelled at `limit` seconds.

    Raises one of ERRORS for any other failure.
    """
    rows: Rows = ()
    failure: Exception | None = None
    began = time.perf_counter()
    watched = _WATCHDOG.begin(limit, session.cancel)
    try:
        for text in statements:
            if wants_rows:
                rows = session.execute(text)
            else:
                session.discard(text)
    except ERRORS as error:
        failure = error
    finally:
        seconds = time.perf_counter() - began
        is_late = _WATCHDOG.end(watched)
    if failure is not None and not is_late and seconds < limit:
        raise failure
    return Execution(seconds, rows, is_late or seconds >= limit)
