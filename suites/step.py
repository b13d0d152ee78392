"""Running one step on a server: the load, its costs, and the reset after it."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from build.errors import TidemarkError
from suites.costs import Meter
from suites.definition import Profile, Step
from suites.generators.load import Generator, Load, LoadError, Share, Work
from suites.measurement import Measurement
from suites.server import ResetError, Server, ServerError
from suites.sizing import Sizes


def most_transactions(step: Step, sizes: Sizes) -> int | None:
    """The most transactions a step may do on one data set; None for steps that use no rows up."""
    share = step.most_work_to_rows
    return None if share is None else max(1, int(sizes.rows_per_table * sizes.tables * share))


Answer = TypeVar("Answer")


class ServerDiedError(ServerError):
    """One of several servers died during a step, or its load generator failed; `place` says which."""

    def __init__(self, what: str, place: int | None) -> None:
        super().__init__(what)
        self.place = place


def run_step(server: Server, generator: Generator, step: Step, work: Work, profile: Profile) -> Measurement:
    """Put the load of `step` on one server, then reset it and let it settle as `profile` says.

    Raises ServerError when the server died, LoadError when the load generator did. A reset that could not be
    finished is a warning: the load before it was measured all the same.
    """
    meter = Meter(server.pid)
    before = server.counters()
    try:
        load = generator.run(server.address, step, work, meter)
    except LoadError as error:
        ended = _death(server)
        if ended is None:
            raise
        raise ServerError(f"{server.build.version} died during {step.name}: {ended}") from error
    measured = _measurement(server, meter, before, load)
    time.sleep(profile.settle_seconds)
    return measured


def run_slices(
    servers: Sequence[Server],
    generator: Generator,
    step: Step,
    share: Share,
    settle_seconds: float,
    *,
    resets: bool = True,
) -> list[Measurement]:
    """Put the load of `step` on servers that take turns, then reset one after the other unless told not to.

    Raises ServerDiedError when one of them, or its load generator, failed.
    """
    meters = [Meter(server.pid, shared=len(servers) > 1) for server in servers]
    before = [_asked(place, server.counters) for place, server in enumerate(servers)]
    try:
        loads = generator.alternate([server.address for server in servers], step, share, meters)
    except LoadError as error:
        raise _blame(servers, step, error) from error
    measured = [
        _asked(place, partial(_measurement, server, meters[place], before[place], loads[place], resets))
        for place, server in enumerate(servers)
    ]
    time.sleep(settle_seconds)
    return measured


def _asked(place: int, question: Callable[[], Answer]) -> Answer:
    """The answer of the server at `place`; whatever goes wrong is its fault."""
    try:
        return question()
    except TidemarkError as error:
        raise ServerDiedError(str(error), place) from error


def _measurement(
    server: Server, meter: Meter, before: Mapping[str, float], load: Load, resets: bool = True
) -> Measurement:
    """Everything of one load, and the reset after it."""
    after = server.counters()
    values = dict(load_values(load)) | dict(meter.per_query(load.watched_queries))
    # What warmed up is among the watched queries, as it is in the server's counters.
    queries = max(load.watched_queries, load.queries)
    values |= {f"{name}_per_op": (after[name] - total) / queries for name, total in before.items()}
    warnings = []
    try:
        values |= server.reset() if resets else {}
    except ResetError as error:
        values |= error.metrics
        warnings.append(f"not reset: {error}")
    return Measurement(values, load.per_second, warnings)


def _blame(servers: Sequence[Server], step: Step, error: LoadError) -> ServerDiedError:
    """Who is at fault: the server that is dead, else the one whose load generator failed first."""
    dead = {place: ended for place, server in enumerate(servers) if (ended := server.death()) is not None}
    if not dead and error.place is not None:
        ended = _death(servers[error.place])
        dead = {error.place: ended} if ended is not None else {}
    for place, ended in dead.items():
        return ServerDiedError(f"{servers[place].build.version} died during {step.name}: {ended}", place)
    return ServerDiedError(str(error), error.place)


def _death(server: Server) -> str | None:
    """How the server ended, if it did: clients notice a moment before it is gone."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        ended = server.death()
        if ended is not None:
            return ended
        time.sleep(0.05)
    return None


def load_values(load: Load) -> Mapping[str, float]:
    """Throughput, latency and the spread of throughput, as metrics."""
    values = {
        "qps": load.queries / load.seconds,
        "tps": load.transactions / load.seconds,
        "transactions": float(load.transactions),
        "seconds": load.seconds,
        "errors": float(load.errors),
    }
    values |= {f"latency_{name}_ms": value for name, value in load.latency_ms.items()}
    return values | spread(load.per_second)


def spread(per_second: Sequence[float]) -> dict[str, float]:
    """How much throughput varied from second to second; empty for fewer than two seconds.

    The coefficient of variation is the sample's standard deviation over its mean.
    """
    if len(per_second) < 2 or not any(per_second):
        return {}
    median = statistics.median(per_second)
    values = {"qps_cv": statistics.stdev(per_second) / statistics.mean(per_second)}
    if median > 0:
        values["qps_p1_over_median"] = float(np.percentile(per_second, 1)) / median
    return values
