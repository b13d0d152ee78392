"""The output of sysbench 0.4, 0.5, 1.0 and 1.1, one run after the other.

Number of threads: 8
    transactions:                        24000  (400.00 per sec.)
    queries:                             480000 (8000.00 per sec.)

Versions before 1.0 count `read/write requests` and `other operations` instead of queries. Of a run at a
limited rate (`--rate`) the latencies are taken.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from history.transfer.foreign.document import Document
from history.transfer.foreign.results import LinesAbove, Result, ToolFormat, aborted, elsewhere
from history.transfer.foreign.values import PROFILE, Given, Location
from suites.metrics import ERRORS, MEAN_LATENCY, QPS, SECONDS, SLOWEST, TAIL_LATENCY, TPS, TRANSACTIONS

_BEGINS = re.compile(r"sysbench \d+\.\d+|Number of threads: (\d+)")
_RATE = re.compile(
    r"(transactions|queries|read/write requests|other operations|ignored errors|deadlocks):"
    r"\s+(\d+)\s+\(\s*(\d+(?:\.\d+)?) per sec\.\)"
)
_LIMIT = re.compile(r"Target transaction rate: (\d+)/sec")
_RECONNECTS = re.compile(r"reconnects:\s+[1-9]")
_ENDS = re.compile(r"execution time \(avg/stddev\):")
_ABORTED = re.compile(r"FATAL: ")
_OTHER_LINES = re.compile(r"(?:sysbench |Running the test|(?i:warning): |Creating |Inserting |Dropping )")
"""Lines of sysbench outside of a run."""

_HEAD = re.compile(r"^\s*sysbench \d+\.\d+|\btransactions:\s+\d+\s+\(\s*[\d.]+ per sec", re.MULTILINE)
_LATENCY = re.compile(
    r"(min|avg|max|(?:approx\.\s+)?\d+(?:st|nd|rd|th)? percentile):\s+(\d+(?:\.\d+)?)(?:ms)?"
)
_TIME = re.compile(r"(?:total time|time elapsed):\s+(\d+(?:\.\d+)?)s")

_LATENCIES = {"avg": MEAN_LATENCY, "max": SLOWEST}
_PERCENTILES = {50: "latency_p50_ms", 95: "latency_p95_ms", 99: TAIL_LATENCY}


def _recognises(document: Document) -> bool:
    return _HEAD.search(document.head) is not None


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    for run in _runs(documents[0]):
        rates = run.rates
        if "transactions" not in rates:
            notes.append(
                f"{run.place} begins a run without the line 'transactions: N (X per sec.)', which the tests "
                f"of a database end with{elsewhere(documents[0], _RATE)}"
            )
            continue
        values = {TRANSACTIONS: rates["transactions"][0]}
        values[ERRORS] = sum(rates[name][0] for name in _ERRORS if name in rates)
        if run.limit:
            values = {**run.rest, **values}
            notes.append(f"{run.place} begins a run at a rate of {run.limit}/s: its latencies are taken")
        else:
            queries = [rates[name][1] for name in _QUERIES if name in rates]
            speeds = {TPS: rates["transactions"][1], **({QPS: sum(queries)} if queries else {})}
            values = {**speeds, **values, **run.rest}
        ways = [*(["reconnect"] if run.reconnects else []), *([f"rate{run.limit}"] if run.limit else [])]
        yield Result(
            values, run.place, clients=run.threads, profile="-".join([PROFILE, *ways]), below=run.below
        )


_QUERIES = ("queries", "read/write requests", "other operations")
_ERRORS = ("ignored errors", "deadlocks")


@dataclass
class _Run:
    place: Location
    below: Mapping[str, str]
    threads: int | None = None
    rates: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Counts, and counts per second."""

    rest: dict[str, float] = field(default_factory=dict)
    """Other values, by metric."""

    limit: str = ""
    """The rate that it was limited to, in transactions per second."""

    reconnects: bool = False


def _runs(document: Document) -> Iterator[_Run]:
    """Yield each run. Raises TransferError for one that was aborted."""
    run: _Run | None = None
    ended, above = True, LinesAbove()
    for number, line in document.lines():
        if _ABORTED.match(line):
            raise aborted(document.place(number), line[:80])
        if match := _BEGINS.match(line):
            threads = int(match[1]) if match[1] and len(match[1]) < 6 else None
            if run and run.threads is None and not run.rates:
                run.threads, run.below, ended = threads, above.now, False
                continue
            if run:
                yield run
            run, ended = _Run(document.place(number), above.now, threads), False
        run = run or _Run(document.place(number), above.now)
        if _ENDS.match(line):
            ended = True
        elif _read_line(line, run):
            ended = False
        elif ended and not _OTHER_LINES.match(line):
            above.add(line)
    if run:
        yield run


def _read_line(line: str, run: _Run) -> bool:
    """Read a line of a run; return whether it says something of it."""
    if match := _RATE.match(line):
        run.rates[match[1]] = float(match[2]), float(match[3])
    elif match := _LATENCY.match(line):
        if metric := _LATENCIES.get(match[1]) or _percentile(match[1]):
            run.rest[metric] = float(match[2])
    elif match := _TIME.match(line):
        run.rest[SECONDS] = float(match[1])
    elif match := _LIMIT.match(line):
        run.limit = match[1]
    elif _RECONNECTS.match(line):
        run.reconnects = True
    else:
        return False
    return True


def _percentile(name: str) -> str | None:
    digits = re.search(r"\d+", name)
    return _PERCENTILES.get(int(digits[0][:3])) if digits else None


SYSBENCH = ToolFormat(
    "the output of sysbench",
    "sysbench",
    _recognises,
    _read,
    """Number of threads: 8
    transactions:                        24000  (400.00 per sec.)
    queries:                             480000 (8000.00 per sec.)
         avg:                                   19.99
         95th percentile:                       25.30""",
)
