"""Kinds of transactions: what the threads of a script print about them, merged."""

import re
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from suites.generators.load import COUNT, NUMBER, BackgroundLoad, KindLoad, LoadError, histogram_percentiles

BUCKET_WIDTH = 1.02
"""How much wider a bucket is than the one before, as in suites/generators/tidemark/transactions.lua."""

BUCKETS = 1600
"""The buckets of a histogram, from 1 µs up."""

CAUSES = ("serialisation", "deadlock", "duplicate-key")
"""Why a server rolls a transaction back that an application begins again."""

_RETRIED = " ".join(f"{cause} ({COUNT})" for cause in CAUSES)
_KIND = re.compile(
    rf"tidemark: kind ([a-z][a-z0-9-]*) of thread {COUNT} done ({COUNT}) failed {COUNT} {_RETRIED}"
    rf" refused ({COUNT}) all ({COUNT}) sum_ms ({NUMBER}) max_ms ({NUMBER}):((?: {COUNT}:{COUNT})*) ?$"
)
_LONGEST = re.compile(rf"tidemark: longest ([a-z][a-z0-9-]*) of thread {COUNT}:((?: {NUMBER})*) ?$")
_BACKGROUND = re.compile(
    rf"tidemark: background ([a-z][a-z0-9-]*) of thread {COUNT} due ({COUNT}) done ({COUNT})"
    rf" late_ms ({NUMBER}) apart ({COUNT})$"
)


@dataclass
class KindTally:
    """The transactions of one kind so far."""

    done: int = 0
    retried: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    committed: int = 0
    sum_ms: float = 0.0
    longest_ms: float = 0.0
    buckets: Counter[int] = field(default_factory=Counter)
    """Transactions by bucket."""
    longest: tuple[float, ...] = ()
    """The slowest in each second, in milliseconds."""

    def add(self, other: "KindTally") -> None:
        """Add what another thread, or another kind, has done."""
        self.done += other.done
        self.retried.update(other.retried)
        self.refused += other.refused
        self.committed += other.committed
        self.sum_ms += other.sum_ms
        self.longest_ms = max(self.longest_ms, other.longest_ms)
        self.buckets.update(other.buckets)
        pairs = zip_longest(self.longest, other.longest, fillvalue=0.0)
        self.longest = tuple(max(pair) for pair in pairs)

    def latency_ms(self) -> Mapping[str, float]:
        """Return the latency in milliseconds as that of a Load; empty without a transaction."""
        if not self.done:
            return {}
        histogram = self.histogram()
        percentiles = histogram_percentiles([*histogram], [*histogram.values()])
        seconds = [longest for longest in self.longest if longest]
        second = {"second": statistics.median(seconds)} if seconds else {}
        return {"mean": self.sum_ms / self.done, "max": self.longest_ms, **second, **percentiles}

    def histogram(self) -> Mapping[float, int]:
        """Return the transactions by latency in milliseconds, in ascending order."""
        counts: Counter[float] = Counter()
        for place in sorted(self.buckets):
            # The middle of a bucket, and never more than the longest that was seen.
            counts[min(BUCKET_WIDTH ** (place + 0.5) / 1000, self.longest_ms)] += self.buckets[place]
        return counts

    def load(self) -> KindLoad:
        """Return the result. Raises LoadError if a transaction is in no bucket, or in one that is none."""
        wrong = self.buckets and max(self.buckets) >= BUCKETS
        if wrong or sum(self.buckets.values()) != self.done or self.committed < self.done:
            raise LoadError(
                f"sysbench reports what cannot be: {self.done} transactions of a kind, "
                f"{self.buckets.total()} with a latency, {self.committed} altogether",
                hint="its output is damaged: measure again",
            )
        retried = {cause: self.retried[cause] for cause in CAUSES}
        return KindLoad(self.done, retried, self.refused, self.committed, self.latency_ms(), self.longest)


def kind_in(line: str) -> tuple[str, KindTally] | None:
    """Return the kind that a line of output is about, and what one thread did of it; None for other lines."""
    if match := _LONGEST.match(line):
        return match[1], KindTally(longest=tuple(map(float, match[2].split())))
    match = _KIND.match(line)
    if match is None:
        return None
    name, done, *retried, refused, committed, total, longest, buckets = match.groups()
    pairs = (part.split(":") for part in buckets.split())
    return name, KindTally(
        int(done),
        Counter(dict(zip(CAUSES, map(int, retried), strict=True))),
        int(refused),
        int(committed),
        float(total),
        float(longest),
        Counter({int(place): int(count) for place, count in pairs}),
    )


def background_in(line: str) -> tuple[str, BackgroundLoad] | None:
    """Return the kind in the background that a line is about, and what one thread did; None for others."""
    match = _BACKGROUND.match(line)
    if match is None:
        return None
    due, done, late, apart = int(match[2]), int(match[3]), float(match[4]), int(match[5])
    return match[1], BackgroundLoad(due, done, late / 1000, apart)


def merged(first: BackgroundLoad | None, second: BackgroundLoad) -> BackgroundLoad:
    """Return what two threads did of one kind in the background."""
    if first is None:
        return second
    return BackgroundLoad(
        first.due + second.due,
        first.done + second.done,
        max(first.late_seconds, second.late_seconds),
        max(first.most_apart, second.most_apart),
    )
