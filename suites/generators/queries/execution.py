"""One execution of a query within its limit."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
import pymysql
from pymysql.constants import ER

from suites.engine import QuerySession, Rows

ERRORS = (psycopg.Error, pymysql.err.Error)
"""What a statement raises in a session of any engine."""


def is_limit(error: Exception) -> bool:
    """Return whether an error of ERRORS is that a server has ended a statement at its limit."""
    if isinstance(error, pymysql.err.Error):
        return error.args[0] in (ER.QUERY_TIMEOUT, ER.STATEMENT_TIMEOUT)
    return isinstance(error, psycopg.errors.QueryCanceled)


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
    """Carry a query out, whose statements the server ends at the limit of the session, `limit` seconds.

    None is begun beyond it. Raises one of ERRORS for any other failure.
    """
    rows: Rows = ()
    seconds, is_ended = 0.0, False
    began = time.perf_counter()
    for text in statements:
        try:
            if wants_rows:
                rows = session.execute(text)
            else:
                session.discard(text)
        except ERRORS as error:
            if not is_limit(error):
                raise
            is_ended = True
        seconds = time.perf_counter() - began
        if is_ended or seconds >= limit:
            return Execution(seconds, rows, is_over=True)
    return Execution(seconds, rows, is_over=False)
