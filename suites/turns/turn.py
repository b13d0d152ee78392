"""One server's turn at a step: what is read before, during and after its load, and what is made of it."""

import contextlib
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from build.errors import TidemarkError
from suites.accounting.activity import ACTIVITIES_PER_SECOND, activities
from suites.accounting.costs import Meter
from suites.accounting.counters import TreeCounter
from suites.accounting.memory_growth import memory_values
from suites.accounting.pressure import disk_limit_reader, pressure_reader
from suites.accounting.sampling import RepeatedQuestion
from suites.accounting.throttling import quota_reader
from suites.accounting.work_curve import TotalsReader, TotalsReading, WorkCurve, curve_of, readings_per_second
from suites.checking.data_checks import DataChecks
from suites.checking.queries import connected
from suites.engines import engine_of
from suites.generators.load import KindLoad, Load, Observer, committed_in, rate_of
from suites.keys.check import CheckOccasion
from suites.keys.step import Step
from suites.measurement import Measurement
from suites.metrics import (
    ERRORS,
    FAILED,
    FIRST_THIRD,
    LAST_THIRD,
    MEAN_LATENCY,
    METRICS,
    OVERLOADED,
    QPS,
    REFUSED,
    RETRIED,
    SECOND_LATENCY,
    SECONDS,
    SLOWEST,
    SLOWEST_SECOND,
    STALL_LIMITS,
    STALL_LIMITS_MS,
    STATEMENT_SECONDS,
    TAIL_LATENCY,
    TAIL_LIMITS,
    TAIL_LIMITS_US,
    TAIL_SHARE,
    TPS,
    TRANSACTIONS,
    VARIATION,
)
from suites.profiling.profiler import ObserverPair, Profiled, WaitObserver
from suites.server import ResetError, Server
from suites.slices import Schedule
from suites.turns.detrended import detrended
from suites.turns.failures import ServerDiedError


@contextlib.contextmanager
def held_transaction(server: Server) -> Iterator[None]:
    """Hold a transaction open in the block. Raises QueryError if the server refuses it.

    When the block ends the connection is closed, which rolls it back; a server that has died meanwhile is the
    business of others.
    """
    with connected(server.address) as connection:
        cursor = connection.cursor()
        for statement in engine_of(server.build.version.engine).held_transaction:
            cursor.execute(statement)
        yield


LATENCY = {
    "mean": MEAN_LATENCY,
    "p50": "latency_p50_ms",
    "p95": "latency_p95_ms",
    "p99": TAIL_LATENCY,
    "p999": "latency_p999_ms",
    "max": SLOWEST,
    "second": SECOND_LATENCY,
}
"""Name in Load.latency_ms -> metric."""


def load_values(load: Load) -> Mapping[str, float]:
    """Return throughput, latency and the variation of throughput as metrics."""
    rate = rate_of(load)
    values = {
        QPS: rate,
        TPS: rate * load.transactions / load.queries,
        TRANSACTIONS: float(load.transactions),
        SECONDS: load.seconds,
        ERRORS: float(load.errors),
    }
    values |= {LATENCY[name]: value for name, value in load.latency_ms.items()}
    values |= {FAILURE_METRICS[cause]: float(count) for cause, count in load.failed.items()}
    if load.longest_ms:
        values |= _stalled_seconds(load.longest_ms)
        values[SLOWEST_SECOND] = 1.0 + load.longest_ms.index(max(load.longest_ms))
    values |= slow_transactions(load.histogram)
    if load.kinds:
        values |= _retries([*load.kinds.values()])
    if load.due is not None:
        values |= {"late_seconds": load.late_seconds, OVERLOADED: float(bool(overload(load)))}
    varies = spread(load.per_second) | detrended(load.per_second)
    return values | _background_values(load) | varies | thirds(load.per_second)


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
        values[OVERLOADED] = float(bool(overload(load)))
    return values


FAILURE_METRICS = dict(zip(("serialisation", "deadlock"), FAILED, strict=True))
"""Cause in Load.failed -> metric."""


def _stalled_seconds(longest_ms: Sequence[float]) -> dict[str, float]:
    """Return in how many seconds the slowest transaction was beyond each limit, as metrics."""
    limits = zip(STALL_LIMITS, STALL_LIMITS_MS, strict=True)
    return {name: float(sum(longest > limit for longest in longest_ms)) for name, limit in limits}


def slow_transactions(histogram: Mapping[float, int]) -> dict[str, float]:
    """Return how many transactions took longer than each limit of TAIL_LIMITS, as metrics.

    They are from the lowest limit that at most TAIL_SHARE of them exceed up to the first that none does; {}
    without a histogram.
    """
    most = TAIL_SHARE * sum(histogram.values())
    values: dict[str, float] = {}
    for name, limit in zip(TAIL_LIMITS, TAIL_LIMITS_US, strict=True) if histogram else ():
        beyond = sum(count for latency, count in histogram.items() if latency * 1000 > limit)
        if beyond <= most:
            values[name] = float(beyond)
        if not beyond:
            break
    return values


RETRY_METRICS = dict(zip(("serialisation", "deadlock", "duplicate-key"), RETRIED, strict=True))
"""Cause in KindLoad.retried -> metric."""


def kind_values(load: Load) -> Mapping[str, Mapping[str, float]]:
    """Return throughput, latency, retries and refusals of each kind that occurred as metrics."""
    rate_of_one = rate_of(load) / load.queries
    return {
        name: {
            TPS: rate_of_one * kind.transactions,
            TRANSACTIONS: float(kind.transactions),
            **{LATENCY[part]: value for part, value in kind.latency_ms.items()},
            **_retries([kind]),
        }
        for name, kind in load.kinds.items()
        if kind.transactions or kind.refused or any(kind.retried.values())
    }


def _retries(kinds: Sequence[KindLoad]) -> dict[str, float]:
    """Return what was retried and refused, as metrics; {} where the load generator does not say."""
    if not any(kind.retried for kind in kinds):
        return {}
    retried = {
        metric: float(sum(kind.retried.get(cause, 0) for kind in kinds))
        for cause, metric in RETRY_METRICS.items()
    }
    return retried | {REFUSED: float(sum(kind.refused for kind in kinds))}


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


def thirds(per_second: Sequence[float]) -> dict[str, float]:
    """Return throughput in the first and the last third of at least three seconds as metrics, else {}."""
    length = len(per_second) // 3
    if not length:
        return {}
    ends = (per_second[:length], per_second[-length:])
    return {name: statistics.mean(part) for name, part in zip((FIRST_THIRD, LAST_THIRD), ends, strict=True)}


def spread(per_second: Sequence[float]) -> dict[str, float]:
    """Return the variation of throughput from second to second as metrics; empty for fewer than two seconds.

    The coefficient of variation is the sample standard deviation divided by the mean.
    """
    if len(per_second) < 2 or not any(per_second):
        return {}
    median = statistics.median(per_second)
    values = {VARIATION: statistics.stdev(per_second) / statistics.mean(per_second)}
    if median > 0:
        values["qps_p1_over_median"] = float(np.percentile(per_second, 1)) / median
    return values


Answer = TypeVar("Answer")


class Turn:
    """What one of the servers that take turns did at a step.

    Every question to the server raises ServerDiedError, which has the server's index, if it fails.
    """

    load: Load
    """The load that it carried out; there once the load has ended."""

    def __init__(self, place: int, server: Server, step: Step, committed: Counter[str] | None) -> None:
        """Read the counters of the server, whose index is `place`, before anything else of the step begins.

        `committed` has its transactions by kind since its data were loaded, if anybody counts them; those of
        the step are added.
        """
        self.server = server
        self.profiled = Profiled()
        self._waits: WaitObserver | None = None
        self.curve: WorkCurve | None = None
        self._place, self._step, self._committed = place, step, committed
        self._memory: Mapping[str, float] = {}
        self._reset: Mapping[str, float] = {}
        self._checked: Mapping[str, float] = {}
        self._warnings: list[str] = []
        self._before = self._ask(server.counters)
        self._after = self._before
        self._debt: Mapping[str, float] = {}

    def hold_transaction(self, until: contextlib.ExitStack) -> None:
        """Begin the transaction, if the step has one, that stays open until the stack ends."""
        if self._step.held_transaction:
            self._ask(lambda: until.enter_context(held_transaction(self.server)))

    def watch(
        self, counter: TreeCounter | None, schedule: Schedule, until: contextlib.ExitStack
    ) -> RepeatedQuestion[TotalsReading]:
        """Make the meter of the load, and return its totals, which can be read until the stack ends."""
        self.meter = Meter(self.server.pid, schedule.servers > 1, counter)
        counters = self._ask(lambda: until.enter_context(self.server.open_counters()))
        self._totals = RepeatedQuestion(
            TotalsReader(self.server.pid, counters).read, readings_per_second(schedule)
        )
        return self._totals

    def watch_waits(self, until: contextlib.ExitStack) -> WaitObserver:
        """Make and return what observes the waits of the clients, who can be asked until the stack ends."""
        self._waits = WaitObserver(self._ask(lambda: until.enter_context(self.server.open_client_states())))
        return self._waits

    def watch_activities(
        self, schedule: Schedule, until: contextlib.ExitStack
    ) -> RepeatedQuestion[Collection[str]]:
        """Make and return the activities of the server, which can be asked until the stack ends."""
        of_server = self._ask(lambda: until.enter_context(self.server.open_activities()))
        throttled, under_pressure = quota_reader(), pressure_reader()
        at_limit = disk_limit_reader(self.server.disk_use, schedule)
        self._activities = RepeatedQuestion[Collection[str]](
            lambda: {*of_server(), *throttled(), *under_pressure(), *at_limit()},
            ACTIVITIES_PER_SECOND * schedule.servers,
        )
        return self._activities

    @property
    def observer(self) -> Observer:
        """What observes the load."""
        return self.meter if self._waits is None else ObserverPair(self.meter, self._waits)

    def end(self, *, may_reset: bool) -> None:
        """Make the curves of the load; read the counters, and what is left to clean up if it may be reset."""
        if self._totals.failure is not None:
            raise ServerDiedError(str(self._totals.failure), self._place) from self._totals.failure
        readings = [reading for _, reading in self._totals.answers]
        self.curve = curve_of(readings, self.load.progress)
        self._memory = memory_values(readings, self.load.progress, restarted=self.load.restarted)
        self._after = self._ask(self.server.counters)
        self._debt = self._ask(self.server.debt) if may_reset else {}

    def count_committed(self) -> None:
        """Add the transactions of the load, and of its profile, to those since the data were loaded."""
        if self._committed is not None:
            self._committed.update(committed_in(self.load))
            self._committed.update(self.profiled.committed)

    def reset(self) -> None:
        """Reset the server. A reset that fails is only a warning."""
        self._reset = {**self._debt, **self._ask(self._reset_or_warn)}

    def check(self, checks: DataChecks) -> None:
        """Ask the checks of the data."""
        address, name = self.server.address, self._step.plain_name
        seconds = self._ask(lambda: checks.require(address, CheckOccasion.STEP, name, self._committed))
        self._checked = {} if seconds is None else {"check_seconds": seconds}

    def measurement(self) -> Measurement:
        """Return all that is known of the turn so far."""
        warnings = [*self.profiled.warnings, *self._unknown(), *self._warnings, *overload(self.load)]
        return Measurement(
            {**self._costs(), **self._memory, **self._timed(), **self._reset, **self._checked},
            self.load.per_second,
            warnings,
            self.profiled.profile,
            kind_values(self.load),
            self.curve,
            waits=None if self._waits is None else self._waits.profile(self.load.watched_queries),
            activities=activities(self._activities.answers, self.load.stalls, self.load.seconds_at),
        )

    def _unknown(self) -> Iterator[str]:
        """Yield what is not known because the server could not be asked."""
        waits = None if self._waits is None else self._waits.question.failure
        if waits is not None:
            yield f"no wait events: {waits}"
        if self._activities.failure is not None:
            yield f"checkpoints and vacuums are not known: {self._activities.failure}"

    def _reset_or_warn(self) -> Mapping[str, float]:
        try:
            return self.server.reset()
        except ResetError as error:
            self._warnings = [f"not reset: {error}"]
            return error.metrics

    def _costs(self) -> dict[str, float]:
        values = dict(load_values(self.load)) | dict(self.meter.per_query(self.load.watched_queries))
        # Both the observed queries and the server's counters include the warm-up.
        queries = max(self.load.watched_queries, self.load.queries)
        grown = {name: self._after[name] - total for name, total in self._before.items()}
        counted = {name: value for name, value in grown.items() if METRICS[name].counted_in}
        return values | {name: value / queries for name, value in grown.items()} | counted

    def _timed(self) -> dict[str, float]:
        return {STATEMENT_SECONDS: self.load.seconds} if self._step.timed else {}

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except TidemarkError as error:
            raise ServerDiedError(str(error), self._place) from error
