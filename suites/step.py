"""Running one step on servers that take turns: the load, its costs, and the reset afterwards."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from build.errors import TidemarkError
from suites.accounting.costs import Meter
from suites.accounting.counters import instructions_of
from suites.definition import Step
from suites.generators.load import Generator, Load, LoadError, Share
from suites.measurement import Measurement
from suites.metrics import QPS
from suites.profiling.profiler import ObserverPair, Profiled, Profiling, profile_after, profilers
from suites.server import ResetError, Server, ServerError
from suites.sizing import Sizes


def most_transactions(step: Step, sizes: Sizes) -> int | None:
    """Return the maximum number of transactions of a step on its data; None if it does not use rows up."""
    share = step.most_work_to_rows
    return None if share is None else max(1, int(sizes.data.walked(step.rows_of).rows * share))


Answer = TypeVar("Answer")


class ServerDiedError(ServerError):
    """A server died during a step, or its load generator failed; `place` is its index among the servers."""

    def __init__(self, what: str, place: int | None) -> None:
        super().__init__(what)
        self.place = place


def run_slices(
    servers: Sequence[Server],
    generator: Generator,
    step: Step,
    share: Share,
    settle_seconds: float,
    *,
    resets: bool = True,
    profiling: Profiling | None = None,
) -> list[Measurement]:
    """Run the load of `step` on servers that take turns, profile it, then reset one server after the other.

    `profiling` says how profiles are taken, or is None. With `resets=False` no server is reset. Return one
    measurement per server. Raises ServerDiedError if a server or its load generator failed.
    """
    before = [_blaming(place, server.counters) for place, server in enumerate(servers)]
    pids = [server.pid for server in servers]
    with instructions_of(pids) as counters:
        meters = [Meter(pid, len(servers) > 1, counter) for pid, counter in zip(pids, counters, strict=True)]
        loads, profiled = _under_load(servers, generator, step, share, meters, profiling)
    # All counters are read before any reset, because work during the reset of another server is no query's.
    after = [_blaming(place, server.counters) for place, server in enumerate(servers)]
    values = [_values(meters[place], load, before[place], after[place]) for place, load in enumerate(loads)]
    if profiling is not None and not profiling.during:
        profiled = _profiled_after(servers, generator, step, share, profiling)
    cleaned = _reset_in_turn(servers, share.round) if resets else [({}, [])] * len(servers)
    time.sleep(settle_seconds)
    return [
        Measurement({**costs, **metrics}, load.per_second, [*profile.warnings, *warnings], profile.profile)
        for costs, load, profile, (metrics, warnings) in zip(values, loads, profiled, cleaned, strict=True)
    ]


def _under_load(
    servers: Sequence[Server],
    generator: Generator,
    step: Step,
    share: Share,
    meters: Sequence[Meter],
    profiling: Profiling | None,
) -> tuple[list[Load], list[Profiled]]:
    """Run the measured slices; return their loads, and their profiles if `profiling.during`."""
    addresses = [server.address for server in servers]
    try:
        if profiling is None or not profiling.during:
            return generator.alternate(addresses, step, share, meters), [Profiled()] * len(servers)
        with profilers(servers, profiling, share.schedule.seconds) as watching:
            observers = [
                ObserverPair(meter, profiler) for meter, profiler in zip(meters, watching, strict=True)
            ]
            loads = generator.alternate(addresses, step, share, observers)
            return loads, [profiler.result(load) for profiler, load in zip(watching, loads, strict=True)]
    except LoadError as error:
        raise blame(servers, step, error) from error


def _profiled_after(
    servers: Sequence[Server], generator: Generator, step: Step, share: Share, profiling: Profiling
) -> list[Profiled]:
    """Profile further slices. If their load fails, only the profiles are lost, not the measurement."""
    try:
        return profile_after(servers, generator, step, share, profiling)
    except LoadError as error:
        blamed = blame(servers, step, error)
        if any(server.death() is not None for server in servers):
            raise blamed from error
        return [Profiled(None, f"no profile: {error}")] * len(servers)


def _reset_in_turn(servers: Sequence[Server], round_: int) -> list[tuple[Mapping[str, float], list[str]]]:
    """Reset one server after the other; return the metrics and warnings of every server's reset.

    The order is reversed in every other round, because servers that wait already clean up in the background:
    otherwise, the last one would always have the least work left.
    """
    places = range(len(servers)) if round_ % 2 else reversed(range(len(servers)))
    by_place = {place: _blaming(place, partial(_reset, servers[place])) for place in places}
    return [by_place[place] for place in range(len(servers))]


def _blaming(place: int, question: Callable[[], Answer]) -> Answer:
    """Return the result of `question`; a TidemarkError becomes a ServerDiedError of the server at `place`."""
    try:
        return question()
    except TidemarkError as error:
        raise ServerDiedError(str(error), place) from error


def _values(
    meter: Meter, load: Load, before: Mapping[str, float], after: Mapping[str, float]
) -> dict[str, float]:
    """Return the metrics of one load; `before` and `after` are the server's counters."""
    values = dict(load_values(load)) | dict(meter.per_query(load.watched_queries))
    # Both the observed queries and the server's counters include the warm-up.
    queries = max(load.watched_queries, load.queries)
    return values | {name: (after[name] - total) / queries for name, total in before.items()}


def _reset(server: Server) -> tuple[Mapping[str, float], list[str]]:
    """Reset a server; return metrics and warnings. A failed reset is only a warning."""
    try:
        return server.reset(), []
    except ResetError as error:
        return error.metrics, [f"not reset: {error}"]


def blame(servers: Sequence[Server], step: Step, error: LoadError) -> ServerDiedError:
    """Return the error for the server that died, else for the one whose load generator failed first."""
    dead = {place: ended for place, server in enumerate(servers) if (ended := server.death()) is not None}
    if not dead and error.place is not None:
        ended = _death(servers[error.place])
        dead = {error.place: ended} if ended is not None else {}
    for place, ended in dead.items():
        return ServerDiedError(f"{servers[place].build.version} died during {step.name}: {ended}", place)
    return ServerDiedError(str(error), error.place)


def _death(server: Server) -> str | None:
    """Return how the server ended, or None; wait, as clients may notice before it has ended."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        ended = server.death()
        if ended is not None:
            return ended
        time.sleep(0.05)
    return None


LATENCY = {
    "mean": "latency_mean_ms",
    "p50": "latency_p50_ms",
    "p95": "latency_p95_ms",
    "p99": "latency_p99_ms",
    "p999": "latency_p999_ms",
    "max": "latency_max_ms",
}
"""Name in Load.latency_ms -> metric."""


def load_values(load: Load) -> Mapping[str, float]:
    """Return throughput, latency and the variation of throughput as metrics."""
    values = {
        QPS: load.queries / load.seconds,
        "tps": load.transactions / load.seconds,
        "transactions": float(load.transactions),
        "seconds": load.seconds,
        "errors": float(load.errors),
    }
    values |= {LATENCY[name]: value for name, value in load.latency_ms.items()}
    return values | spread(load.per_second)


def spread(per_second: Sequence[float]) -> dict[str, float]:
    """Return the variation of throughput from second to second as metrics; empty for fewer than two seconds.

    The coefficient of variation is the sample standard deviation divided by the mean.
    """
    if len(per_second) < 2 or not any(per_second):
        return {}
    median = statistics.median(per_second)
    values = {"qps_cv": statistics.stdev(per_second) / statistics.mean(per_second)}
    if median > 0:
        values["qps_p1_over_median"] = float(np.percentile(per_second, 1)) / median
    return values
