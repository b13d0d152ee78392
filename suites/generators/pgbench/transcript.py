"""What pgbench prints and logs of its work, parsed line by line."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from build.files import open_checked
from suites.generators.kinds import BUCKET_WIDTH
from suites.generators.load import COUNT, NUMBER, PERCENTILES, KindLoad, Load, LoadError
from suites.generators.plausibility import require_plausible
from suites.generators.separate_runs.slices import least_due

_TICK = re.compile(rf"progress: ({NUMBER}) s, ({NUMBER}) tps")
_WHOLE = re.compile(COUNT)
_CAUSES = ("serialisation", "deadlock")
_SUMMARY = {
    "transactions": re.compile(rf"number of transactions actually processed: ({COUNT})"),
    "failed": re.compile(rf"number of failed transactions: ({COUNT})"),
    "serialisation": re.compile(rf"number of serialization failures: ({COUNT})"),
    "deadlock": re.compile(rf"number of deadlock failures: ({COUNT})"),
    "latency": re.compile(rf"latency average = ({NUMBER}) ms"),
    "late_ms": re.compile(rf"rate limit schedule lag: avg {NUMBER} \(max ({NUMBER})\) ms"),
    # The second wording is that of pgbench 13, the last one that with a connection for each transaction.
    "tps": re.compile(
        rf"tps = ({NUMBER}) \((?:without initial connection time|excluding connections establishing"
        r"|including reconnection times)\)"
    ),
}


@dataclass
class PgbenchTranscript:
    """The parsed output of one run of pgbench so far."""

    ticks: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and transactions/s since the previous progress report."""
    summary: dict[str, float] = field(default_factory=dict)

    def read(self, line: str) -> bool:
        """Parse one line of output; return whether it was a progress report."""
        if match := _TICK.match(line):
            self.ticks.append((float(match[1]), float(match[2])))
            return True
        for name, pattern in _SUMMARY.items():
            if match := pattern.match(line):
                self.summary[name] = float(match[1])
        return False

    def load(
        self, queries: float, logged: NDArray[np.float64] | None = None, arrivals: float | None = None
    ) -> Load:
        """Return the result.

        Raises LoadError if the report is incomplete, no transaction finished, or a number is impossible.
        `queries` is the number of queries per transaction; `logged` are all
        transactions, or a random sample, as of `logged_transactions`; `arrivals` is how many transactions a
        rate lets expect.
        """
        missing = {"transactions", "latency", "tps"} - self.summary.keys()
        if missing:
            raise LoadError("pgbench's report is incomplete", where=f"missing: {', '.join(sorted(missing))}")
        if not self.summary["transactions"] or not self.summary["tps"]:
            raise LoadError("pgbench finished no transaction", hint="check the server's log")
        # The first interval includes connecting; work is steady from the second on.
        steady = list(zip(self.ticks, self.ticks[1:], strict=False))
        watched = sum((late[0] - early[0]) * late[1] for early, late in steady)
        latency = {"mean": self.summary["latency"]}
        if logged is not None and logged.size:
            latency |= _percentiles(logged)
        load = Load(
            transactions=int(self.summary["transactions"]),
            queries=self.summary["transactions"] * queries,
            seconds=self.summary["transactions"] / self.summary["tps"],
            errors=int(self.summary.get("failed", 0)),
            failed={cause: int(self.summary[cause]) for cause in _CAUSES if cause in self.summary},
            longest_ms=() if logged is None else _longest_ms(logged),
            per_second=tuple(tps * queries for _, tps in self.ticks),
            latency_ms=latency,
            watched_queries=watched * queries,
            watched_seconds=self.ticks[-1][0] - self.ticks[0][0] if self.ticks else 0.0,
            due=None if arrivals is None else least_due(arrivals, int(self.summary["transactions"])),
            late_seconds=self.summary.get("late_ms", 0.0) / 1000,
        )
        return require_plausible(load, "pgbench")


def logged_transactions(folder: Path) -> NDArray[np.float64]:
    """Return the logged transactions of pgbench's log files.

    In columns: the latency in µs, the second of its end, and the number of its script from 0.
    Failed transactions, which have a word instead of a latency, are omitted. Raises LoadError for what is no
    log.
    """
    logged: list[tuple[float, float, float]] = []
    for path in sorted(folder.glob("log.*")):
        try:
            file = os.fdopen(open_checked(path), encoding="utf-8", errors="replace")
        except OSError as error:
            raise LoadError(f"pgbench's log cannot be read: {error.strerror}", where=str(path)) from error
        with file:
            for line in file:
                words = line.split(maxsplit=6)[2:6]
                if len(words) == 4 and all(map(_WHOLE.fullmatch, words)):
                    latency, script, second, microseconds = map(float, words)
                    logged.append((latency, second + microseconds / 1e6, script))
    return np.array(logged, dtype=np.float64).reshape(-1, 3)


def kinds_in(
    logged: NDArray[np.float64], scripts: Sequence[str], transactions: int
) -> Mapping[str, KindLoad]:
    """Return what was done of each of several scripts, in their order; {} of a single one.

    `logged` are all of so many transactions, or a random sample. Latencies are of those after the first
    second, in which clients fill their caches, if there are such.
    """
    names = dict.fromkeys(scripts) if len(logged) else {}
    kinds = {}
    for name in names if len(names) > 1 else ():
        own = logged[
            np.isin(logged[:, 2], [number for number, script in enumerate(scripts) if script == name])
        ]
        warm = own[own[:, 1] >= logged[:, 1].min() + 1]
        done = round(transactions * len(own) / len(logged))
        kinds[name] = KindLoad(done, {}, 0, done, _latency_ms(warm if len(warm) else own))
    return kinds


def _latency_ms(logged: NDArray[np.float64]) -> Mapping[str, float]:
    """Return the latency of logged transactions as that of a KindLoad; empty without one."""
    if not len(logged):
        return {}
    return {
        "mean": float(logged[:, 0].mean()) / 1000,
        "second": float(np.median(_longest_ms(logged))),
        **_percentiles(logged),
    }


def _percentiles(logged: NDArray[np.float64]) -> Mapping[str, float]:
    shares = np.percentile(logged[:, 0], [*PERCENTILES.values(), 100.0]) / 1000
    return dict(zip([*PERCENTILES, "max"], map(float, shares), strict=True))


def histogram_of(logged: NDArray[np.float64]) -> Mapping[float, int]:
    """Return Load.histogram of logged transactions, if all were logged: in buckets that differ by 2 %."""
    buckets = np.floor(np.log(np.maximum(logged[:, 0], 1.0)) / np.log(BUCKET_WIDTH))
    places, counts = np.unique(buckets, return_counts=True)
    middles = np.exp((places + 0.5) * np.log(BUCKET_WIDTH)) / 1000
    return dict(zip(middles.tolist(), counts.tolist(), strict=True))


def _longest_ms(logged: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the slowest transaction of each second in which one ended, in milliseconds."""
    seconds, places = np.unique(np.floor(logged[:, 1]), return_inverse=True)
    longest = np.zeros(seconds.size)
    np.maximum.at(longest, places, logged[:, 0])
    return tuple((longest / 1000).tolist())
