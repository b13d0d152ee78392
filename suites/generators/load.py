"""The interface of load generators, and functions for running their programs."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from build.errors import TidemarkError
from suites.keys.step import Step
from suites.server import Address
from suites.slices import Schedule

COUNT = r"[0-9]{1,15}(?![0-9])"
"""Regular expression of an integer in a report: more digits are damage, and int() refuses thousands."""

NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?![0-9.])"
"""Regular expression of a decimal number in a report, which float() accepts."""


class LoadError(TidemarkError):
    """A load generator failed, was killed, or printed something that cannot be parsed.

    `place` is the index of its server among those that take turns; None if it is not known.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "", place: int | None = None) -> None:
        super().__init__(what, where=where, hint=hint)
        self.place = place


class LongPassError(LoadError):
    """A counted pass was ended at its time limit."""


class OverLimitError(LoadError):
    """A query took longer than its limit of `limit` seconds on at least one server.

    `seconds` are those of one execution by the index of the server, None where it was over the limit.
    """

    def __init__(self, step: str, limit: float, seconds: Mapping[int, float | None]) -> None:
        super().__init__(f"{step} took longer than its limit of {limit:g} s")
        self.limit = limit
        self.seconds = seconds


@dataclass(frozen=True)
class WorkLimit:
    """The limits of a step, which ends when the first one is reached."""

    seconds: float
    """Time limit in seconds."""
    transactions: int | None
    """Maximum number of transactions over all threads; None if there is only a time limit."""


@dataclass(frozen=True)
class Share:
    """The work of servers that take turns in one round of a step."""

    schedule: Schedule
    """The slices in which the servers work."""
    round: int
    """Number of the round, from 1; every round draws different ids."""
    transactions: int | None = None
    """Maximum number of transactions per server; None if there is only a time limit."""
    done_before: int = 0
    """Earlier transactions of the step on the same data, after which a step that uses rows up continues."""
    limit_seconds: float | None = None
    """The most that one query may take; only for generators of long queries."""
    begins: Callable[[float], None] = field(default=lambda moment: None, compare=False)
    """Called with the moment of the monotonic clock at which the first slice begins, by a generator whose
    servers keep to the slices of the schedule."""
    works: Callable[[int], None] = field(default=lambda place: None, compare=False)
    """Called with the index of the server that is to work next, by a generator whose slices take as long as
    they take."""


def whole_seconds(work: WorkLimit) -> int:
    """Return the time limit in whole seconds, at least 1, because 0 means no limit to load generators."""
    return max(1, round(work.seconds))


@dataclass(frozen=True)
class KindLoad:
    """The transactions of one kind, over all clients."""

    transactions: int
    """Those that committed."""
    retried: Mapping[str, int]
    """How often the server rolled one back, which was then begun again, by cause; empty if not known."""
    refused: int
    """Those that the application itself ended without committing."""
    committed: int
    """All that committed since the clients connected, in the warm-up too."""
    latency_ms: Mapping[str, float]
    """As that of a Load, of all tries together."""
    longest_ms: tuple[float, ...] = ()
    """The slowest in each second of the server's own work; 0 where none ended."""

    def __add__(self, other: "KindLoad") -> "KindLoad":
        """Return both together, of programs that do not say what was retried and refused."""
        done, committed = self.transactions + other.transactions, self.committed + other.committed
        return KindLoad(done, {}, 0, committed, _latency_of(self, other))


@dataclass(frozen=True)
class BackgroundLoad:
    """What the connections beside the measured clients did of one kind of transactions."""

    due: int
    """Those that were to begin in the counted slices; 0 of a kind without a rate."""
    done: int
    """Those that were carried out."""
    late_seconds: float
    """The most that one began too late."""
    most_apart: int
    """The most transactions by which a kind was ahead of the one that keeps pace with it."""


@dataclass(frozen=True)
class Load:
    """The result of a load generator."""

    transactions: int
    """Finished transactions."""
    queries: float
    """Queries of these transactions."""
    seconds: float
    """Time from the start of the first transaction to the end of the last, without waiting for turns."""
    errors: int
    """Errors that did not end the run, such as deadlocks, after which the transaction was restarted."""
    per_second: tuple[float, ...]
    """Queries/s in each whole second."""
    latency_ms: Mapping[str, float]
    """Latency in milliseconds by name: mean, p50, p95, p99, p999, max."""
    watched_queries: float
    """Queries finished between the observer's begin and end."""
    watched_seconds: float
    """Time between the observer's begin and end."""
    kinds: Mapping[str, KindLoad] = field(default_factory=dict)
    """The kinds of transactions by name, in the order of the script; empty if it tells none apart."""
    due: int | None = None
    """Transactions that were to begin in the counted slices; None unless they arrive at a rate."""
    late_seconds: float = 0.0
    """The most that one of these began too late."""
    background: Mapping[str, BackgroundLoad] = field(default_factory=dict)
    """The transactions beside those measured, by kind; empty if the step has none."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """The errors that ended a transaction, by cause; empty if the program does not say."""
    longest_ms: tuple[float, ...] = ()
    """The slowest transaction that ended in each second of work, in ms; empty if it is not known."""
    restarted: bool = False
    """Whether it is of several runs, in each of which clients connected anew before the observer began."""
    histogram: Mapping[float, int] = field(default_factory=dict)
    """The finished transactions by latency in ms, rounded to the middle of a bucket, in any order; empty
    unless that of each is known."""
    seconds_at: tuple[tuple[float, float], ...] = ()
    """Begin and end of each second of `per_second` by the monotonic clock; empty if they are not known."""
    stalls: tuple[tuple[float, float], ...] = ()
    """Begin and end of the times in which a transaction of more than STALL_MS was under way, ascending."""
    progress: tuple[tuple[float, float], ...] = ()
    """Seconds of the monotonic clock, and the queries finished by then, warm-up included, both ascending;
    empty if the work of a load is fixed in advance."""

    def __add__(self, other: "Load") -> "Load":
        """Return both runs together, as the result of one that was restarted."""
        failed = Counter(self.failed)
        failed.update(other.failed)  # unlike a sum, this keeps the causes that did not occur
        is_known = bool(self.histogram and other.histogram)
        kinds = dict(self.kinds)
        for name, kind in other.kinds.items():
            kinds[name] = kinds[name] + kind if name in kinds else kind
        return Load(
            transactions=self.transactions + other.transactions,
            queries=self.queries + other.queries,
            seconds=self.seconds + other.seconds,
            errors=self.errors + other.errors,
            failed=dict(failed),
            longest_ms=self.longest_ms + other.longest_ms,
            histogram=Counter(self.histogram) + Counter(other.histogram) if is_known else {},
            per_second=self.per_second + other.per_second,
            latency_ms=_latency_of(self, other),
            watched_queries=self.watched_queries + other.watched_queries,
            watched_seconds=self.watched_seconds + other.watched_seconds,
            due=None if self.due is other.due is None else (self.due or 0) + (other.due or 0),
            late_seconds=max(self.late_seconds, other.late_seconds),
            kinds=kinds,
            restarted=True,
        )


def _latency_of(one: Load | KindLoad, other: Load | KindLoad) -> Mapping[str, float]:
    """Return the latencies that two runs both have: means over their transactions, or the largest."""
    if not one.transactions or not other.transactions:
        return one.latency_ms or other.latency_ms
    share = other.transactions / (one.transactions + other.transactions)
    return {
        name: max(value, other.latency_ms[name])
        if name == "max"
        else value + share * (other.latency_ms[name] - value)
        for name, value in one.latency_ms.items()
        if name in other.latency_ms
    }


def rate_of(load: Load) -> float:
    """Return the throughput of a load in queries/s.

    Of one that was restarted only what the observer saw counts: clients that have just connected fill their
    caches, once for each slice, which an application does once a day.
    """
    if load.restarted and load.watched_seconds > 0 and load.watched_queries > 0:
        return load.watched_queries / load.watched_seconds
    return load.queries / load.seconds


def committed_in(load: Load) -> Mapping[str, int]:
    """Return the transactions by kind that the clients of a load saw committed, in the warm-up too."""
    return {name: kind.committed for name, kind in load.kinds.items()}


@contextlib.contextmanager
def blamed_on(place: int) -> Iterator[None]:
    """Set the index `place` of a server on a LoadError that is raised in the block."""
    try:
        yield
    except LoadError as error:
        error.place = place
        raise


@dataclass(frozen=True)
class PassLength:
    """The transactions of a counted pass, by one client."""

    warm: int
    """Those before the first mark, so that caches and cached plans are as they stay."""
    counted: int
    """Those between marks."""

    @property
    def transactions(self) -> int:
        """All of them."""
        return self.warm + self.counted


@dataclass(frozen=True)
class CountedWork:
    """The work of a counted pass, by one client: first transactions, whose cost decides how many follow."""

    mark: str
    """The SQL statement that is a mark."""
    seconds: float
    """Time limit."""
    choose: Callable[[float], PassLength]
    """Returns the length of the pass, the first transactions included, from the seconds of a transaction."""
    tell: Callable[[int, int, float], None] = lambda done, total, seconds: None
    """Called every few seconds with the transactions so far, all of them, and the seconds since the first."""


@dataclass(frozen=True)
class CountedLoad:
    """What a counted pass did."""

    transactions: int
    """Those between the marks."""
    queries: float
    """In a transaction."""
    notes: Sequence[str] = ()
    """What was counted otherwise than the step asks for, one sentence each."""


class Observer(Protocol):
    """Measures the costs of a load while it is steady."""

    def begin(self, pid: int) -> None:
        """Start measuring, when all connections are open; `pid` is that of the load generator."""

    def end(self, pid: int) -> None:
        """Stop measuring, while connections are still open; if called several times, the last call counts."""


class Generator(Protocol):
    """A program that loads data and puts a server under load.

    The model of its suites is in suites/definition.py, its constructor in suites/generators/registry.py.
    """

    def version(self) -> str:
        """Return the program's own name and version."""

    def load(self, address: Address) -> None:
        """Create the tables and fill them. Raises LoadError."""

    def alternate(
        self, addresses: Sequence[Address], step: Step, share: Share, observers: Sequence[Observer]
    ) -> list[Load]:
        """Run one step on servers that take turns; return one Load per server. Raises LoadError."""

    def statements(self, address: Address, step: Step) -> Sequence[str]:
        """Return the statements of a step, with usual parameters; only of suites with `plans`."""
        raise LoadError(f"the statements of {step.name} are not known", hint="omit plans in suite.toml")

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        """Run a counted pass of a step. Raises LoadError, and LongPassError at its time limit.

        Equal work on equal data sends the server the same statements with the same parameters.
        """
        raise LoadError(f"{step.name} has no counted passes", hint="use a suite for sysbench or pgbench")


PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
"""The recorded percentiles of latency: name -> percent."""


def histogram_percentiles(values: Sequence[float], counts: Sequence[int]) -> dict[str, float]:
    """Return PERCENTILES of a histogram: the lowest bucket up to which there is that share of the events.

    `values` are the buckets' values in ascending order, `counts` their events. Empty if there is no event.
    """
    if not any(counts):
        return {}
    # As floats, which whole numbers up to 2**53 are exactly: sums of damaged counts overflow integers.
    reached = np.cumsum(counts, dtype=np.float64) / np.sum(counts, dtype=np.float64) * 100
    places = {name: int(np.searchsorted(reached, share - 1e-9)) for name, share in PERCENTILES.items()}
    return {name: values[min(place, len(values) - 1)] for name, place in places.items()}
