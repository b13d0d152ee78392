"""Kinds of transactions: what the threads of a script print about them, merged."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from suites.generators.load import COUNT, NUMBER, KindLoad, LoadError, histogram_percentiles

BUCKET_WIDTH = 1.02
"""How much wider a bucket of latencies is than the one before, as in suites/generators/transactions.lua."""

BUCKETS = 1600
"""The buckets of a histogram, from 1 µs up."""

CAUSES = ("serialisation", "deadlock", "duplicate-key")
"""Why a server rolls a transaction back that an application begins again."""

_RETRIED = " ".join(f"{cause} ({COUNT})" for cause in CAUSES)
_KIND = re.compile(
    rf"tidemark: kind ([a-z][a-z0-9-]*) of thread {COUNT} done ({COUNT}) failed {COUNT} {_RETRIED}"
    rf" refused ({COUNT}) all ({COUNT}) sum_ms ({NUMBER}) max_ms ({NUMBER}):((?: {COUNT}:{COUNT})*) ?$"
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

    def add(self, other: "KindTally") -> None:
        """Add what another thread, or another kind, has done."""
        self.done += other.done
        self.retried.update(other.retried)
        self.refused += other.refused
        self.committed += other.committed
        self.sum_ms += other.sum_ms
        self.longest_ms = max(self.longest_ms, other.longest_ms)
        self.buckets.update(other.buckets)

    def latency_ms(self) -> Mapping[str, float]:
        """Return the latency in milliseconds as that of a Load; empty without a transaction."""
        if not self.done:
            return {}
        places = sorted(self.buckets)
        # The middle of a bucket, and never more than the longest that was seen.
        values = [min(BUCKET_WIDTH ** (place + 0.5) / 1000, self.longest_ms) for place in places]
        percentiles = histogram_percentiles(values, [self.buckets[place] for place in places])
        return {"mean": self.sum_ms / self.done, "max": self.longest_ms, **percentiles}

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
        return KindLoad(self.done, retried, self.refused, self.committed, self.latency_ms())


def kind_in(line: str) -> tuple[str, KindTally] | None:
    """Return the kind that a line of output is about, and what one thread did of it; None for other lines."""
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
