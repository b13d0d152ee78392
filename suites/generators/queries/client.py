"""The client program: loads a server's tables, or runs the queries that it is told of, one at a time.

It is started by Python, with a JSON object as its only argument. With the command `serve` it reads one JSON
object a line, and answers each by one. It is a process of its own so that its costs are known apart.
"""

import json
import os
import statistics
import sys
import threading
import time
from collections import defaultdict
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
from suites.generators.load import KindLoad, Load, LoadError
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
    """What streams did."""

    runs: Sequence[tuple[str, float]]
    """The name of each query that was finished, and its seconds."""
    seconds: float
    """From the first query to the end of the last."""
    over: str | None
    """The query that took longer than its limit, which ended the streams; None if all were finished."""


class QueryFailure(Exception):
    """A query of a stream failed; `name` is its name, and the text what the server said."""

    def __init__(self, name: str, error: Exception) -> None:
        said = error.diag.message_primary if isinstance(error, psycopg.Error) else error.args[-1]
        super().__init__(str(said or error))
        self.name = name


def run_streams(
    connect: Callable[[], QuerySession],
    streams: Sequence[Sequence[Mapping[str, Any]]],
    limit: float,
    seconds: float,
) -> StreamRuns:
    """Carry out all streams at once, with a session each: once, and again until so many seconds are over.

    A query has `name` and `statements`. When one fails or takes longer than `limit` seconds, the
    others end after the query that they are at. Raises QueryFailure, and what connecting raises.
    """
    sessions = [connect() for _ in streams]
    ended = threading.Event()

    def one(place: int) -> tuple[list[tuple[str, float]], str | None]:
        runs: list[tuple[str, float]] = []
        name = ""
        try:
            while not (ended.is_set() or (runs and time.perf_counter() - began >= seconds)):
                for query in streams[place]:
                    name = str(query["name"])
                    if ended.is_set():
                        break
                    done = execute(sessions[place], query["statements"], limit)
                    if done.is_over:
                        ended.set()
                        return runs, name
                    runs.append((name, done.seconds))
        except BaseException as error:
            ended.set()
            if isinstance(error, ERRORS):
                raise QueryFailure(name, error) from error
            raise
        return runs, None

    try:
        for session in sessions:
            session.set_limit(limit)
        began = time.perf_counter()
        with ThreadPoolExecutor(len(streams)) as pool:
            results = list(pool.map(one, range(len(streams))))
        taken = time.perf_counter() - began
    finally:
        for session in sessions:
            session.close()
    over = next((name for _, name in results if name is not None), None)
    return StreamRuns([run for runs, _ in results for run in runs], taken, over)


def load_of_streams(runs: Sequence[tuple[str, float]], seconds: float, executions: int) -> Load:
    """Return the result of streams that took `seconds` in all; each query is a kind.

    `executions` are all queries of the session so far. Raises LoadError if no query was finished.
    """
    if not runs or seconds <= 0 or not all(taken > 0 for _, taken in runs):
        raise LoadError("no query was finished", hint="check the server's log")
    by_name: dict[str, list[float]] = defaultdict(list)
    for name, taken in runs:
        by_name[name].append(1000 * taken)
    latency = latency_of([1000 * taken for _, taken in runs])
    kinds = {
        name: KindLoad(len(taken), {}, 0, len(taken), latency_of(taken)) for name, taken in by_name.items()
    }
    return Load(len(runs), float(len(runs)), seconds, 0, (), latency, float(executions), seconds, kinds=kinds)


def latency_of(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return the latencies of a Load, by name, of executions that took so many milliseconds."""
    return {
        "mean": statistics.fmean(milliseconds),
        "p50": statistics.median(milliseconds),
        "max": max(milliseconds),
    }


def serve(session: QuerySession, connect: Callable[[], QuerySession]) -> None:
    """Answer each line of standard input: run a query until its slice is over, at least once, or streams."""
    print(json.dumps({"ready": True}), flush=True)
    limit: float | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if "streams" in asked:
            done = run_streams(connect, asked["streams"], asked["limit"], asked["again_seconds"])
            print(json.dumps({"runs": done.runs, "took": done.seconds, "is_over": done.over}), flush=True)
        else:
            if limit != asked["limit"]:
                limit = asked["limit"]
                session.set_limit(asked["limit"])
            print(json.dumps(_slice(session, asked)), flush=True)


def _slice(session: QuerySession, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run a query until its slice is over, at least once; return the answer."""
    runs: list[float] = []
    rows: Rows = ()
    is_over = False
    while not is_over and (not runs or sum(runs) < asked["seconds"]):
        done = execute(session, asked["statements"], asked["limit"], wants_rows=asked["rows"])
        runs.append(done.seconds)
        rows, is_over = done.rows, done.is_over
    answer: dict[str, Any] = {"runs": runs, "is_over": is_over}
    if asked["rows"]:
        # Columns of a fixed length are padded by one engine and not by the others.
        answer["rows"] = [[None if cell is None else cell.rstrip(" ") for cell in row] for row in rows]
    return answer


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
        session = connect()
        if asked["command"] == "load":
            load(session, asked)
        else:
            serve(session, connect)
        session.close()
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
