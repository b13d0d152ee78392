"""The client program: loads a server's tables, or runs the queries that it is told of, one at a time.

It is started by Python, with a JSON object as its only argument. With the command `serve` it reads one JSON
object a line, and answers each by one. It is a process of its own so that its costs are known apart.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from build.errors import TidemarkError
from build.version import Engine
from suites.engine import QuerySession, Rows, RowsError
from suites.engines import engine_of
from suites.generators.queries.execution import ERRORS, execute
from suites.generators.queries.scripts import statements_of
from suites.generators.queries.streams import QueryFailure, run_streams
from suites.server import Address


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
