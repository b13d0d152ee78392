"""The client program: loads a server's tables, or runs the queries that it is told of, one at a time.

It is started by Python, with a JSON object as its only argument. With the command `serve` it reads one JSON
object a line, and answers each by one. It is a process of its own so that its costs are known apart.
"""

import json
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from build.version import Engine
from suites.generators.queries.scripts import statements_of, with_key
from suites.generators.queries.sessions import ERRORS, SESSIONS, QuerySession, Rows, RowsError
from suites.server import Address


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
    timer = threading.Timer(limit, session.cancel)
    timer.daemon = True
    timer.start()
    rows: Rows = ()
    began = time.perf_counter()
    try:
        if keys:
            _refresh(session, statements, keys, began + limit)
        else:
            for text in statements:
                rows = session.execute(text)
    except ERRORS:
        if time.perf_counter() - began < limit:
            raise
    seconds = time.perf_counter() - began
    timer.cancel()
    return Execution(seconds, rows, seconds >= limit)


def _refresh(session: QuerySession, statements: Sequence[str], keys: Sequence[int], deadline: float) -> None:
    for key in keys:
        session.execute("BEGIN")
        for text in statements:
            session.execute(with_key(text, key))
        session.execute("COMMIT")
        if time.perf_counter() >= deadline:
            return


def serve(session: QuerySession) -> None:
    """Answer each line of standard input: run a query until its slice is over, at least once."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        session.set_limit(asked["limit"])
        runs: list[float] = []
        rows: Rows = ()
        is_over = False
        while not is_over and (not runs or (not asked["keys"] and sum(runs) < asked["seconds"])):
            done = execute(session, asked["statements"], asked["limit"], asked["keys"])
            runs.append(done.seconds)
            rows, is_over = done.rows, done.is_over
        answer: dict[str, Any] = {"runs": runs, "is_over": is_over}
        if asked["rows"]:
            answer["rows"] = [[text_of(cell) for cell in row] for row in rows]
        print(json.dumps(answer), flush=True)


def load(session: QuerySession, asked: Mapping[str, Any]) -> None:
    """Create the tables, fill them, then build the indexes and gather statistics."""
    folder, scale = Path(asked["folder"]), int(asked["scale"])
    session.prepare_load()
    for text in statements_of(folder / "schema.sql", scale):
        session.execute(text)
    for table in asked["tables"]:
        session.fill(table, Path(asked["rows"]) / f"{table}.csv")
    for text in statements_of(folder / "indexes.sql", scale):
        session.execute(text)


def text_of(cell: object) -> str | None:
    """Return a cell of a result as text that is the same on every engine: no padding, dates as ISO 8601."""
    if cell is None:
        return None
    if isinstance(cell, Decimal):
        return f"{cell:f}"
    if isinstance(cell, date):
        return cell.isoformat()
    return str(cell).rstrip(" ")


def main() -> int:
    """Carry out the command of the first argument; a failure is one line, and status 1."""
    asked = json.loads(sys.argv[1])
    place = asked["address"]
    address = Address(
        Engine(place["engine"]), Path(place["socket"]), place["user"], place["database"], place["password"]
    )
    try:
        session = SESSIONS[address.engine](address)
        if asked["command"] == "load":
            load(session, asked)
        else:
            serve(session)
        session.close()
    except (*ERRORS, RowsError, OSError) as error:
        print(json.dumps({"error": " ".join(str(error).split()) or repr(error)}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
