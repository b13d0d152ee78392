"""Streams: several sessions at once, each of which carries out queries one after the other."""

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import psycopg

from suites.engine import QuerySession
from suites.generators.load import KindLoad, Load, LoadError
from suites.generators.queries.execution import ERRORS, execute


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
