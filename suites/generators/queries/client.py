"""The client program: loads a server's tables, or runs the queries that it is told of, one at a time.

It is started by Python, with a JSON object as its only argument. With the command `serve` it reads one JSON
object a line, and answers each by one: first what it is to run, by how many sessions at once, then each
slice. It is a process of its own so that its costs are known apart.
"""

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import Template
from typing import Any

import psycopg
import pymysql
from pymysql.constants import ER

from build.errors import TidemarkError
from build.version import Engine
from suites.engine import QuerySession, Rows, RowsError
from suites.engines import engine_of
from suites.keys.sql_statements import statements_in
from suites.server import Address

HUNDREDTHS = 100
"""The units of the scale in a scale factor of 1."""


def statements_of(file: Path, scale: int) -> list[str]:
    """Return the statements of a file of SQL, in which `$scale_factor` becomes that of `scale` hundredths."""
    text = Template(file.read_text(encoding="utf-8")).safe_substitute(
        scale_factor=f"{scale / HUNDREDTHS:.2f}"
    )
    return [statement.text for statement in statements_in(text, Engine.POSTGRES)]


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


@dataclass(frozen=True)
class StreamRuns:
    """What sessions did that carried out the same queries at once."""

    runs: Sequence[tuple[str, float]]
    """The name of each query that was finished, and its seconds."""
    seconds: float
    """Those of the queries of the session that was busy for longest."""
    over: str | None
    """The query that took longer than its limit, which ended the streams; None if all were finished."""
    rows: Rows
    """The rows of the last query of a session, if they were wanted."""


class QueryFailure(Exception):
    """A query failed; `name` is its name, and the text what the server said."""

    def __init__(self, name: str, error: Exception) -> None:
        said = error.diag.message_primary if isinstance(error, psycopg.Error) else error.args[-1]
        super().__init__(str(said or error))
        self.name = name


def run_streams(
    sessions: Sequence[QuerySession],
    queries: Sequence[Mapping[str, Any]],
    limit: float,
    seconds: float,
    *,
    wants_rows: bool = False,
) -> StreamRuns:
    """Carry all queries out in all sessions at once: once, and again until so many seconds are over.

    A query has `name` and `statements`. When one fails or takes longer than `limit` seconds, which is that of
    the sessions, the others end after the query that they are at. Raises QueryFailure.
    """
    ended = threading.Event()

    def one(session: QuerySession) -> StreamRuns:
        runs: list[tuple[str, float]] = []
        name, busy = "", 0.0
        rows: Rows = ()
        try:
            while not (ended.is_set() or (runs and busy >= seconds)):
                for query in queries:
                    name = str(query["name"])
                    if ended.is_set():
                        break
                    done = execute(session, query["statements"], limit, wants_rows=wants_rows)
                    if done.is_over:
                        ended.set()
                        return StreamRuns(runs, busy, name, ())
                    runs.append((name, done.seconds))
                    busy, rows = busy + done.seconds, done.rows
        except BaseException as error:
            ended.set()
            if isinstance(error, ERRORS):
                raise QueryFailure(name, error) from error
            raise
        return StreamRuns(runs, busy, None, rows)

    with ThreadPoolExecutor(len(sessions)) as pool:
        results = list(pool.map(one, sessions))
    return StreamRuns(
        [run for result in results for run in result.runs],
        max(result.seconds for result in results),
        next((result.over for result in results if result.over is not None), None),
        results[0].rows,
    )


def serve(connect: Callable[[], QuerySession]) -> None:
    """Answer each line of standard input but the first, which says what is to be run in a slice."""
    task = json.loads(sys.stdin.readline())
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(contextlib.closing(connect())) for _ in range(task["clients"])]
        for session in sessions:
            session.set_limit(task["limit"])
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            done = run_streams(
                sessions, task["queries"], task["limit"], asked["seconds"], wants_rows=asked["rows"]
            )
            # Columns of a fixed length are padded by one engine and not by the others.
            rows = [[None if cell is None else cell.rstrip(" ") for cell in row] for row in done.rows]
            answer = {"runs": done.runs, "seconds": done.seconds, "over": done.over, "rows": rows}
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


def main() -> int:
    """Carry out the command of the first argument; a failure is one line, and status 1."""
    asked = json.loads(sys.argv[1])
    place = asked["address"]
    address = Address(
        Engine(place["engine"]),
        Path(place["socket"]),
        place["user"],
        place["database"],
        os.environ.get("PGPASSWORD", ""),  # as Address.password_variables has it for every engine
    )
    try:
        connect = partial(engine_of(address.engine).session, address)
        if asked["command"] == "load":
            with contextlib.closing(connect()) as session:
                load(session, asked)
        else:
            serve(connect)
    except QueryFailure as failure:
        print(json.dumps({"error": str(failure), "query": failure.name}), flush=True)
        return 1
    except (*ERRORS, RowsError, OSError, TidemarkError) as error:
        said = " ".join(str(error).split()) or repr(error)
        # A load has no answers in JSON; what it says is read by suites.generators.complaints.
        print(f"error: {said}" if asked["command"] == "load" else json.dumps({"error": said}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
