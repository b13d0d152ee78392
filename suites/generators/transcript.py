"""The output of sysbench 1.0 with a script of a suite: what is parsed of it, line by line."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from suites.generators.kinds import KindTally, background_in, kind_in, merged
from suites.generators.load import (
    COUNT,
    NUMBER,
    BackgroundLoad,
    Load,
    LoadError,
    histogram_percentiles,
)
from suites.generators.plausibility import require_plausible, require_seconds
from suites.metrics import STALL_MS

_TICK = re.compile(rf"\[ {COUNT}s \] .*?qps: ({NUMBER})")
_THREAD = re.compile(rf"tidemark: thread {COUNT} from ({NUMBER}) to ({NUMBER})")
_SLICE = re.compile(
    rf"tidemark: (slice|warm-up) ({COUNT}) of thread {COUNT} from ({NUMBER}) to ({NUMBER}):((?: {COUNT})*) ?$"
)
_LONGEST = re.compile(rf"tidemark: longest in slice ({COUNT}) of thread {COUNT}:((?: {NUMBER})*) ?$")
_ARRIVALS = re.compile(rf"tidemark: arrivals of thread {COUNT} due ({COUNT}) late_ms ({NUMBER})")
_HISTOGRAM = re.compile(rf"\s*({NUMBER}) \|\**\s+({COUNT})$")
_SUMMARY = re.compile(rf"\s*(transactions|queries|ignored errors|total time|avg|max|sum):\s+({NUMBER})")
_STATEMENT = re.compile(r"tidemark: statement [a-z_]+: (.+)")


@dataclass(frozen=True)
class Slice:
    """The work of one thread in one of its server's slices."""

    place: int
    """Number of the slice among those of its server, from 1."""
    began: float
    """Begin of the slice, in seconds of the monotonic clock."""
    ended: float
    """End of the last transaction, in seconds of the monotonic clock."""
    per_second: tuple[int, ...]
    """Transactions in each second since the begin; the last second is usually incomplete."""


@dataclass
class SysbenchTranscript:
    """The parsed output of one run of sysbench so far."""

    queries: float | None = None
    """Queries in a transaction of the step; None if sysbench counts them, which it does over all threads."""
    per_second: list[float] = field(default_factory=list)
    threads: list[tuple[float, float]] = field(default_factory=list)
    """Start and end of each thread in seconds of the monotonic clock; empty if the script reports none."""
    slices: list[Slice] = field(default_factory=list)
    """Measured slices of all threads; empty unless servers take turns."""
    warm_up: list[Slice] = field(default_factory=list)
    """Slices of the warm-up, whose transactions the summary omits although it counts their queries."""
    longest_ms: dict[int, tuple[float, ...]] = field(default_factory=dict)
    """The slowest transaction of all threads in each second, by slice."""
    latencies_ms: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    summary: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, KindTally] = field(default_factory=dict)
    due: int | None = None
    """Transactions that were to begin in measured slices; None unless they arrive at a rate."""
    late_ms: float = 0.0
    background: dict[str, BackgroundLoad] = field(default_factory=dict)

    def read(self, line: str) -> None:
        """Parse one line of output; irrelevant lines are ignored."""
        if match := _TICK.match(line):
            self.per_second.append(float(match[1]))
        elif match := _THREAD.match(line):
            self.threads.append((float(match[1]), float(match[2])))
        elif match := _SLICE.match(line):
            counts = tuple(map(int, match[5].split()))
            slices = self.warm_up if match[1] == "warm-up" else self.slices
            slices.append(Slice(int(match[2]), float(match[3]), float(match[4]), counts))
        elif match := _LONGEST.match(line):
            place, longest = int(match[1]), map(float, match[2].split())
            pairs = zip_longest(self.longest_ms.get(place, ()), longest, fillvalue=0.0)
            self.longest_ms[place] = tuple(max(pair) for pair in pairs)
        elif found := kind_in(line):
            name, tally = found
            self.kinds.setdefault(name, KindTally()).add(tally)
        elif beside := background_in(line):
            kind, worked = beside
            self.background[kind] = merged(self.background.get(kind), worked)
        elif match := _ARRIVALS.match(line):
            self.due = (self.due or 0) + int(match[1])
            self.late_ms = max(self.late_ms, float(match[2]))
        elif match := _HISTOGRAM.fullmatch(line):
            self.latencies_ms.append(float(match[1]))
            self.counts.append(int(match[2]))
        elif match := _SUMMARY.match(line):
            self.summary[match[1]] = float(match[2])

    def load(self) -> Load:
        """Return the result.

        Raises LoadError if the report is incomplete, no transaction finished, or a number is impossible.
        """
        missing = {"transactions", "queries", "total time", "avg", "max"} - self.summary.keys()
        if missing:
            raise LoadError("sysbench's report is incomplete", where=f"missing: {', '.join(sorted(missing))}")
        if self.summary["transactions"] < 1 or (self.slices and not self._sliced_transactions()):
            raise LoadError("sysbench finished no transaction", hint="check the server's log")
        load = self._sliced() if self.slices else self._whole()
        whole = replace(self._with_kinds(load), background=dict(self.background))
        return require_plausible(whole, "sysbench")

    def _with_kinds(self, load: Load) -> Load:
        """Return the load with its kinds; at a rate, latency counts from when a transaction was due."""
        if not self.kinds:
            return load
        total = KindTally()
        for tally in self.kinds.values():
            total.add(tally)
        kinds = {name: tally.load() for name, tally in self.kinds.items()}
        if self.due is not None:
            load = replace(load, latency_ms=total.latency_ms(), histogram=total.histogram())
        return replace(
            load,
            kinds=kinds,
            errors=total.retried.total(),
            longest_ms=total.longest,
            due=self.due,
            late_seconds=self.late_ms / 1000,
        )

    def _whole(self) -> Load:
        """Return the result of a server that worked alone, without pauses."""
        seconds = self.summary["total time"]
        if self.threads:
            seconds = max(end for _, end in self.threads) - min(begin for begin, _ in self.threads)
        transactions = int(self.summary["transactions"])
        queries = self.summary["queries"] if self.queries is None else transactions * self.queries
        return Load(
            transactions=transactions,
            queries=queries,
            seconds=seconds,
            errors=int(self.summary.get("ignored errors", 0)),
            # The last report covers an incomplete second, or the linger.
            per_second=tuple(self.per_second[: max(1, int(seconds + 0.01))]),
            latency_ms=self._latency_ms(),
            histogram=self._histogram(),
            watched_queries=queries,
            watched_seconds=seconds,
        )

    @property
    def warming(self) -> int:
        """Transactions of the warm-up."""
        return _transactions(self.warm_up)

    def _sliced_transactions(self) -> int:
        return _transactions(self.slices)

    def _sliced(self) -> Load:
        """Return the result of a server that took turns with others, from its own slices."""
        transactions = self._sliced_transactions()
        # The driver also counts the queries of the warm-up.
        watched = self.summary["transactions"] + self.warming
        queries = self.summary["queries"] / watched if self.queries is None else self.queries
        by_place = _by_place(self.slices)
        _require_possible(by_place)
        seconds = seconds_in(by_place, self.longest_ms)
        rated = [(second, second.rate * queries) for second in seconds if second.rate is not None]
        return Load(
            transactions=transactions,
            queries=transactions * queries,
            seconds=sum(seconds_of(threads) for threads in by_place),
            errors=int(self.summary.get("ignored errors", 0)),
            per_second=tuple(rate for _, rate in rated),
            latency_ms=self._latency_ms(),
            histogram=self._histogram(),
            watched_queries=self.summary["queries"] if self.queries is None else watched * queries,
            watched_seconds=max(part.ended for part in self.slices) - min(part.began for part in self.slices),
            longest_ms=tuple(second.slowest_ms for second in seconds if second.slowest_ms is not None),
            seconds_at=tuple((second.began, second.ended) for second, _ in rated),
            stalls=tuple(stalls_of(by_place, self.longest_ms)),
            progress=progress_of([*_by_place(self.warm_up), *by_place], queries),
        )

    def _histogram(self) -> dict[float, int]:
        return dict(zip(self.latencies_ms, self.counts, strict=True))

    def _latency_ms(self) -> dict[str, float]:
        percentiles = histogram_percentiles(self.latencies_ms, self.counts)
        # sysbench rounds the mean to 0.01 ms, which may be a third of it; the sum is more precise.
        events = self.summary["transactions"]
        mean = self.summary["sum"] / events if "sum" in self.summary else self.summary["avg"]
        return {"mean": mean, "max": self.summary["max"], **percentiles}


def _by_place(slices: Sequence[Slice]) -> list[list[Slice]]:
    """Return the work of all threads in each slice, in the order of the slices."""
    parts: defaultdict[int, list[Slice]] = defaultdict(list)
    for part in slices:
        parts[part.place].append(part)
    return [parts[place] for place in sorted(parts)]


def _transactions(slices: Sequence[Slice]) -> int:
    return sum(sum(part.per_second) for part in slices)


def progress_of(slices: Sequence[Sequence[Slice]], queries: float) -> tuple[tuple[float, float], ...]:
    """Return Load.progress: two points for each slice; `queries` are those of a transaction."""
    points, done = [], 0.0
    for threads in slices:
        points.append((min(thread.began for thread in threads), done))
        done += _transactions(threads) * queries
        points.append((max(thread.ended for thread in threads), done))
    return tuple(points)


def _require_possible(slices: Sequence[Sequence[Slice]]) -> None:
    """Raise LoadError when a thread's seconds are not those it counted, or all slices are too long together.

    Rates have an entry for each second, so that this also bounds the time that they take.
    """
    for thread in (thread for threads in slices for thread in threads):
        # The script counts in every second that has begun; times are printed to the microsecond.
        if not 0 <= thread.ended - thread.began <= len(thread.per_second) + 0.001:
            raise LoadError(
                f"sysbench reports what cannot be: slice {thread.place} from {thread.began:g} to "
                f"{thread.ended:g} with {len(thread.per_second)} seconds of transactions",
                hint="its output is damaged: measure again",
            )
    require_seconds(sum(map(seconds_of, slices)))


def seconds_of(threads: Sequence[Slice]) -> float:
    """Return the length of one slice in seconds, from the first begin of a thread to the last end."""
    return max(thread.ended for thread in threads) - min(thread.began for thread in threads)


@dataclass(frozen=True)
class Second:
    """About a second of a server's work: one of a long slice, or several short slices together."""

    began: float
    """By the monotonic clock."""
    ended: float
    rate: float | None
    """Transactions/s; None for a remainder of less than half a second."""
    slowest_ms: float | None
    """The slowest transaction that ended in it; None if it is not known."""


def seconds_in(slices: Sequence[Sequence[Slice]], longest: Mapping[int, Sequence[float]]) -> list[Second]:
    """Return the seconds of work; `slices` are lists of the threads' work per slice.

    `longest` is the slowest transaction of each second, by slice. Slices shorter than a second are combined
    to about one second. A remainder has a rate if it is at least half a second, or all there is: a slice of a
    minute ends a few milliseconds before its last second is over.
    """
    seconds: list[Second] = []
    short: list[Sequence[Slice]] = []
    worked = 0.0
    for threads in slices:
        length = seconds_of(threads)
        if length >= 1:
            seconds += _in_slice(threads, length, longest.get(threads[0].place, ()))
            continue
        short = [*short, threads] if worked else [threads]
        worked += length
        if worked > 1 - length / 2:
            seconds.append(_joined(short, worked, longest))
            short, worked = [], 0.0
    if worked > 0:
        last = _joined(short, worked, longest)
        seconds.append(last if worked >= 0.5 or not seconds else replace(last, rate=None))
    return seconds


def _joined(
    short: Sequence[Sequence[Slice]], worked: float, longest: Mapping[int, Sequence[float]]
) -> Second:
    """Return slices that are shorter than a second as one, in which the server worked for so many seconds."""
    slowest = max((ms for threads in short for ms in longest.get(threads[0].place, ())), default=0.0)
    return Second(
        min(thread.began for thread in short[0]),
        max(thread.ended for thread in short[-1]),
        sum(map(_transactions, short)) / worked,
        slowest if longest else None,
    )


def _in_slice(threads: Sequence[Slice], length: float, longest: Sequence[float]) -> list[Second]:
    """Return the seconds of all threads in a slice of at least one, which is so many seconds long."""
    began, whole = min(thread.began for thread in threads), int(length)
    counted = [0.0] * (whole + 1)
    for thread in threads:
        for second, count in enumerate(thread.per_second[: whole + 1]):
            counted[second] += count
    rest = length - whole
    rates = [*counted[:whole], *([counted[whole] / rest] if rest >= 0.5 else [])]
    return [
        Second(began + second, began + second + 1, rate, slowest)
        for second, (rate, slowest) in enumerate(zip_longest(rates, longest))
    ]


def stalls_of(
    slices: Sequence[Sequence[Slice]], longest: Mapping[int, Sequence[float]]
) -> list[tuple[float, float]]:
    """Return the times in which a transaction of more than STALL_MS was under way, those that meet as one.

    `longest` is the slowest transaction of each second, by slice. It began in its slice.
    """
    found: list[tuple[float, float]] = []
    for threads in slices:
        first, last = min(thread.began for thread in threads), max(thread.ended for thread in threads)
        for second, slowest in enumerate(longest.get(threads[0].place, ())):
            if slowest > STALL_MS:
                began, ended = max(first, first + second - slowest / 1000), min(last, first + second + 1)
                if found and began <= found[-1][1]:
                    began = min(began, found.pop()[0])
                found.append((began, max(began, ended)))
    return found


def statements_in(output: str) -> Sequence[str]:
    """Return the statements in the output of a script's command `statements`."""
    return [match[1] for line in output.splitlines() if (match := _STATEMENT.fullmatch(line))]
