"""The output of sysbench 0.4, 0.5, 1.0 and 1.1, one run after the other.

Number of threads: 8
    transactions:                        24000  (400.00 per sec.)
    queries:                             480000 (8000.00 per sec.)

Versions before 1.0 count `read/write requests` and `other operations` instead of queries.
"""

import re
from collections.abc import Iterator, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.values import Given, Location
from suites.metric import QPS
from suites.metric_names import TPS

_BEGINS = re.compile(r"sysbench \d+\.\d+|Number of threads: (\d+)")
_RATE = re.compile(
    r"(transactions|queries|read/write requests|other operations|ignored errors|deadlocks):"
    r"\s+(\d+)\s+\(\s*(\d+(?:\.\d+)?) per sec\.\)"
)
_HEAD = re.compile(r"^\s*(?:sysbench \d+\.\d+|transactions:\s+\d+\s+\()", re.MULTILINE)
_LATENCY = re.compile(
    r"(min|avg|max|(?:approx\.\s+)?\d+(?:st|nd|rd|th)? percentile):\s+(\d+(?:\.\d+)?)(?:ms)?"
)
_TIME = re.compile(r"(?:total time|time elapsed):\s+(\d+(?:\.\d+)?)s")

_LATENCIES = {"avg": "latency_mean_ms", "max": "latency_max_ms"}
_PERCENTILES = {50: "latency_p50_ms", 95: "latency_p95_ms", 99: "latency_p99_ms"}


def _recognises(document: Document) -> bool:
    return _HEAD.search(document.head) is not None


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    document = documents[0]
    for place, threads, rates, rest in _runs(document):
        if "transactions" not in rates:
            notes.append(
                f"{place} begins a run without the line 'transactions: N (X per sec.)', which the tests of a "
                "database end with"
            )
            continue
        values = {TPS: rates["transactions"][1]}
        if queries := [rates[name] for name in _QUERIES if name in rates]:
            values[QPS] = sum(rate for _, rate in queries)
        values["transactions"] = rates["transactions"][0]
        values["errors"] = sum(rates[name][0] for name in _ERRORS if name in rates)
        yield Result({**values, **rest}, place, clients=threads)


_QUERIES = ("queries", "read/write requests", "other operations")
_ERRORS = ("ignored errors", "deadlocks")

_Run = tuple[Location, int | None, dict[str, tuple[float, float]], dict[str, float]]


def _runs(document: Document) -> Iterator[_Run]:
    """Yield of each run where it begins, its threads, counts with rates, and other values by metric."""
    run: _Run | None = None
    for number, line in document.lines():
        if match := _BEGINS.match(line):
            threads = int(match[1]) if match[1] and len(match[1]) < 6 else None
            if run and run[1] is None and not run[2]:
                run = (run[0], threads, *run[2:])
                continue
            if run:
                yield run
            run = document.place(number), threads, {}, {}
        run = run or (document.place(number), None, {}, {})
        if match := _RATE.match(line):
            run[2][match[1]] = float(match[2]), float(match[3])
        elif match := _LATENCY.match(line):
            if metric := _LATENCIES.get(match[1]) or _percentile(match[1]):
                run[3][metric] = float(match[2])
        elif match := _TIME.match(line):
            run[3]["seconds"] = float(match[1])
    if run:
        yield run


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
