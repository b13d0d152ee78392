"""One execution of a query or a refresh function within its limit."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from suites.generators.queries.scripts import with_key
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
    session: QuerySession,
    statements: Sequence[str],
    limit: float,
    keys: Sequence[int] = (),
    *,
    wants_rows: bool = False,
) -> Execution:
    """Carry a query out, or a refresh function with one transaction for each of `keys`.

    At `limit` seconds the running statement is cancelled. Raises one of ERRORS for any other failure.
    """
    rows: Rows = ()
    failure: Exception | None = None
    began = time.perf_counter()
    watched = _WATCHDOG.begin(limit, session.cancel)
    try:
        if keys:
            _refresh(session, statements, keys, began + limit)
        else:
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


def _refresh(session: QuerySession, statements: Sequence[str], keys: Sequence[int], deadline: float) -> None:
    for key in keys:
        session.discard("BEGIN")
        for text in statements:
            session.discard(with_key(text, key))
        session.discard("COMMIT")
        if time.perf_counter() >= deadline:
            return
