"""Running one step on a server: the load, its costs, and the reset after it."""

import statistics
import time
from collections.abc import Mapping, Sequence

import numpy as np

from suites.costs import Meter
from suites.definition import Profile, Step
from suites.generators.load import Generator, Load, LoadError, Work
from suites.measurement import Measurement
from suites.server import ResetError, Server, ServerError
from suites.sizing import Sizes

FIXED_WORK_PATIENCE = 3.0
"""A run with fixed work may take this many times the profile's seconds. sysbench ends there, with a warning;
pgbench cannot be told both limits, and fails."""

WORK_TOLERANCE = 0.01
"""Share of the work that may be missing: generators hand out whole shares to their threads."""


def first_work(suite_step: Step, seconds: float, sizes: Sizes) -> Work:
    """The work of the first run of a step in a session: as much as gets done in `seconds`.

    A step that uses rows up ends before it runs out of them.
    """
    share = suite_step.most_work_to_rows
    limit = None if share is None else max(1, int(sizes.rows_per_table * sizes.tables * share))
    return Work(seconds, limit)


def fixed_work(transactions: int, seconds: float) -> Work:
    """The work of all later runs of the step: the transactions of the first.

    With fixed time instead, a faster version would leave more bloat to its next step (docs/method.md).
    """
    return Work(seconds * FIXED_WORK_PATIENCE, transactions, whole=True)


def run_step(server: Server, generator: Generator, step: Step, work: Work, profile: Profile) -> Measurement:
    """Put the load of `step` on `server`, then reset it and let it settle as `profile` says.

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
    after = server.counters()
    values = dict(load_values(load)) | dict(meter.per_query(load.watched_queries))
    values |= {f"{name}_per_op": (after[name] - total) / load.queries for name, total in before.items()}
    warnings = _shortfall(work, load)
    try:
        values |= server.reset()
    except ResetError as error:
        values |= error.metrics
        warnings.append(f"not reset: {error}")
    time.sleep(profile.settle_seconds)
    return Measurement(values, load.per_second, warnings)


def _shortfall(work: Work, load: Load) -> list[str]:
    wanted = work.transactions or 0
    if not work.whole or load.transactions >= wanted * (1 - WORK_TOLERANCE):
        return []
    return [
        f"only {load.transactions} of {wanted} transactions were done in {load.seconds:.0f} s: "
        "less work than the other runs, and less left to the next step"
    ]


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
