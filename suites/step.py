"""Running one step on servers that take turns: the load, its costs, and the reset afterwards."""

import contextlib
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from build.errors import TidemarkError
from suites.accounting.costs import Meter
from suites.accounting.counters import instructions_of
from suites.accounting.work_curve import READINGS, ReadMeanwhile, TotalsReader, WorkCurve, curve_of
from suites.additions.held_transaction import held_transaction
from suites.checking.data_checks import DataChecks
from suites.generators.load import Generator, KindLoad, Load, LoadError, OverLimitError, Share, committed_in
from suites.keys.check import CheckOccasion
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metric import QPS
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


class CensoredError(ServerError):
    """A query took longer than its limit of `limit` seconds, so that its time is known on no server for sure.

    `seconds` are those of one execution by the index of the server, None where it was over the limit.
    """

    def __init__(self, what: str, limit: float, seconds: Mapping[int, float | None]) -> None:
        super().__init__(what)
        self.limit = limit
        self.seconds = seconds

    @property
    def values(self) -> Mapping[str, float]:
        """The only metric of a run that was ended at its limit."""
        return {"censored_seconds": self.limit}


def run_slices(
    servers: Sequence[Server],
    generator: Generator,
    step: Step,
    share: Share,
    settle_seconds: float,
    *,
    resets: bool = True,
    profiling: Profiling | None = None,
    checks: DataChecks | None = None,
    committed: Sequence[Counter[str]] = (),
) -> list[Measurement]:
    """Run the load of `step` on servers that take turns, profile it, then reset one server after the other.

    `profiling` says how profiles are taken, or is None. With `resets=False` no server is reset or checked.
    `committed` has, for each server, the transactions by kind since its data were loaded; those of the step
    are added. Return one measurement per server. Raises ServerDiedError if a server or its load generator
    failed, or if its data are not as `checks` say, and CensoredError if a query was over its limit.
    """
    before = [_blaming(place, server.counters) for place, server in enumerate(servers)]
    pids = [server.pid for server in servers]
    with contextlib.ExitStack() as beside, instructions_of(pids) as counters:
        for place, server in enumerate(servers if step.held_transaction else ()):
            _blaming(place, partial(beside.enter_context, held_transaction(server)))
        meters = [Meter(pid, len(servers) > 1, counter) for pid, counter in zip(pids, counters, strict=True)]
        with _curves_read(servers, share) as curves:
            loads, profiled = _under_load(servers, generator, step, share, meters, profiling)
        # All are read before any reset, because work during the reset of another server is no query's, and
        # before a held transaction ends, after which what it held back is removed.
        after = [_blaming(place, server.counters) for place, server in enumerate(servers)]
        debts = [_blaming(place, server.debt) if resets else {} for place, server in enumerate(servers)]
    values = [
        {**_values(meters[place], load, before[place], after[place]), **debts[place], **_timed(step, load)}
        for place, load in enumerate(loads)
    ]
    if profiling is not None and not profiling.during:
        profiled = _profiled_after(servers, generator, step, share, profiling)
    for total, load, profile in zip(committed, loads, profiled, strict=False):
        total.update(committed_in(load))
        total.update(profile.committed)
    cleaned = _reset_in_turn(servers, share.round) if resets else [({}, [])] * len(servers)
    checked = _check_all(servers, step, checks, committed) if checks and resets else [{}] * len(servers)
    time.sleep(settle_seconds)
    return [
        Measurement(
            {**costs, **metrics, **seconds},
            load.per_second,
            [*profile.warnings, *warnings, *overload(load)],
            profile.profile,
            kind_values(load),
            curve,
        )
        for costs, load, profile, (metrics, warnings), seconds, curve in zip(
            values, loads, profiled, cleaned, checked, curves(loads), strict=True
        )
    ]


@contextlib.contextmanager
def _curves_read(
    servers: Sequence[Server], share: Share
) -> Iterator[Callable[[Sequence[Load]], list[WorkCurve | None]]]:
    """Read totals while the load runs in the block; yield what makes a curve of each load afterwards."""
    with contextlib.ExitStack() as opened:
        readers = [
            TotalsReader(server.pid, _blaming(place, partial(opened.enter_context, server.open_counters())))
            for place, server in enumerate(servers)
        ]
        with ReadMeanwhile(readers, share.schedule.seconds / READINGS) as watched:
            yield lambda loads: [
                curve_of(readings, load.progress)
                for readings, load in zip(watched.readings, loads, strict=True)
            ]
    if watched.failed is not None:
        place, error = watched.failed
        raise ServerDiedError(str(error), place) from error


def _check_all(
    servers: Sequence[Server], step: Step, checks: DataChecks, committed: Sequence[Counter[str]]
) -> list[Mapping[str, float]]:
    """Ask the checks of one server after the other; return how long that took, as metrics."""
    taken: list[Mapping[str, float]] = []
    for place, server in enumerate(servers):
        own = committed[place] if committed else None
        ask = partial(checks.require, server.address, CheckOccasion.STEP, step.plain_name, own)
        seconds = _blaming(place, ask)
        taken.append({} if seconds is None else {"check_seconds": seconds})
    return taken


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
    except OverLimitError as error:
        raise CensoredError(str(error), error.limit, error.seconds) from error
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


def _timed(step: Step, load: Load) -> dict[str, float]:
    return {"statement_seconds": load.seconds} if step.timed else {}


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
        ended = death_soon(servers[error.place])
        dead = {error.place: ended} if ended is not None else {}
    for place, ended in dead.items():
        return ServerDiedError(f"{servers[place].build.version} died during {step.name}: {ended}", place)
    if error.place is None:
        return ServerDiedError(str(error), None)
    return ServerDiedError(with_logged(servers[error.place], error), error.place)


_LOST = re.compile(r"terminating connection|conflict with recovery|connection to client lost")
"""What Postgres logs when it ends a connection."""


def with_logged(server: Server, error: LoadError) -> str:
    """Return the text of an error of a load generator, with the error that the server has logged last.

    sysbench does not say why Postgres ended a connection: it crashes.
    """
    text, logged = str(error), server.errors_logged()
    lost = next((line for line in logged if _LOST.search(line)), None)
    if lost is not None:
        return f"the load generator lost its connection to {server.build.version}: {lost} ({text})"
    if not logged or any(line in text for line in logged):
        return text
    return f"{text}\n  the server's log: {logged[-1]}"


def loading_failure(server: Server, error: TidemarkError) -> str:
    """Return why a version could not be loaded: how its server died, if it did, or the error."""
    if not isinstance(error, LoadError):
        return str(error)
    ended = death_soon(server)
    if ended is not None:
        return f"{server.build.version} died while it was loaded: {ended}"
    return with_logged(server, error)


def death_soon(server: Server) -> str | None:
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
    "second": "latency_second_ms",
    "geometric": "latency_geometric_mean_ms",
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
    if load.kinds:
        values |= _retries([*load.kinds.values()])
    if load.due is not None:
        values |= {"late_seconds": load.late_seconds, "overload": float(bool(overload(load)))}
    return values | _background_values(load) | spread(load.per_second)


def _background_values(load: Load) -> dict[str, float]:
    """Return how the connections beside the measured ones kept their rates and their pace; {} without any."""
    if not load.background:
        return {}
    kinds = load.background.values()
    values = {"most_apart": float(max(kind.most_apart for kind in kinds))}
    shares = [kind.done / kind.due for kind in kinds if kind.due]
    if shares:
        late = max(kind.late_seconds for kind in kinds)
        values |= {"background_share": min(shares), "late_seconds": late}
        values["overload"] = float(bool(overload(load)))
    return values


RETRIED = {
    "serialisation": "retried_serialisation",
    "deadlock": "retried_deadlock",
    "duplicate-key": "retried_duplicate_key",
}
"""Cause in KindLoad.retried -> metric."""


def kind_values(load: Load) -> Mapping[str, Mapping[str, float]]:
    """Return throughput, latency, retries and refusals of each kind that occurred as metrics."""
    return {
        name: {
            "tps": kind.transactions / load.seconds,
            "transactions": float(kind.transactions),
            **{LATENCY[part]: value for part, value in kind.latency_ms.items()},
            **_retries([kind]),
        }
        for name, kind in load.kinds.items()
        if kind.transactions or kind.refused or any(kind.retried.values())
    }


def _retries(kinds: Sequence[KindLoad]) -> dict[str, float]:
    retried = {
        metric: float(sum(kind.retried.get(cause, 0) for kind in kinds)) for cause, metric in RETRIED.items()
    }
    return retried | {"refused_transactions": float(sum(kind.refused for kind in kinds))}


MAX_LATE_SECONDS = 1.0
"""At a rate, how late a transaction may begin; beyond it the server does not keep up."""

MIN_ACHIEVED = 0.95
"""At a rate, the least share of the transactions that were due that a server which keeps up has finished."""


def overload(load: Load) -> list[str]:
    """Return why a server did not keep up with the rates of its step; empty if it did, or without a rate."""
    rates = [
        (name, kind.done, kind.due, kind.late_seconds) for name, kind in load.background.items() if kind.due
    ]
    if load.due is not None:
        rates.append(("transaction", load.transactions, load.due, load.late_seconds))
    reasons = []
    for name, done, due, late in rates:
        if late > MAX_LATE_SECONDS:
            reasons.append(f"overloaded: a {name} began {late:.1f} s later than it was due")
        if done < MIN_ACHIEVED * due:
            reasons.append(f"overloaded: {done} of {due} {name}s that were due")
    return reasons


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
