"""The summary that BenchBase writes of a run, `tpcc_2026-11-25_12-00-00.summary.json`.

Goodput is taken for throughput: what was rolled back is no work. Latencies are in microseconds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from build.engines import EngineRegistry
from build.version import Engine
from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import date_of_milliseconds, number, parts, scaled, text
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.values import PROFILE, Given, Location
from suites.metric_names import TPS

_GOODPUT, _THROUGHPUT = "Goodput (requests/second)", "Throughput (requests/second)"
_ENDED, _BEGAN = "Current Timestamp (milliseconds)", "Start timestamp (milliseconds)"
_LATENCIES = {
    "Average Latency (microseconds)": "latency_mean_ms",
    "Median Latency (microseconds)": "latency_p50_ms",
    "95th Percentile Latency (microseconds)": "latency_p95_ms",
    "99th Percentile Latency (microseconds)": "latency_p99_ms",
    "Maximum Latency (microseconds)": "latency_max_ms",
}
_RELEASE = re.compile(r"(?:[A-Za-z]+ )?(\d{1,9}(?:\.\d{1,9}){1,2})(?!\w)")
"""At the beginning of what the server says of itself, which goes on with that of its compiler."""

_TYPES: EngineRegistry[str] = EngineRegistry(
    "type of BenchBase",
    __name__,
    {Engine.POSTGRES: "POSTGRES", Engine.MYSQL: "MYSQL", Engine.MARIADB: "MARIADB"},
)
_ENGINES = {name: engine for engine, name in _TYPES.items()}


def _recognises(document: Document) -> bool:
    return {"Benchmark Type", "Latency Distribution", _THROUGHPUT, _GOODPUT} & parts(
        document.json
    ).keys() != set()


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    summary = parts(document.json)
    rates = (number(summary.get(name)) for name in (_GOODPUT, _THROUGHPUT))
    rate = next((rate for rate in rates if rate is not None), None)
    if rate is None:
        notes.append(f"it lacks the key '{_GOODPUT}'")
        return
    terminals = number(summary.get("terminals"))
    yield Result(
        {TPS: rate, **scaled(parts(summary.get("Latency Distribution")), _LATENCIES, 1e-3)},
        Location(document.name, "the summary"),
        text(summary.get("Benchmark Type")) or None,
        int(terminals) if terminals and 0 < terminals < 1e5 else None,
        profile=_profile(summary),
        version=_version(summary),
        when=date_of_milliseconds(summary.get(_ENDED, summary.get(_BEGAN))),
    )


def _profile(summary: Mapping[str, object]) -> str:
    """Sessions of another scale factor or isolation are not compared."""
    scale = number(summary.get("scalefactor"))
    isolation = text(summary.get("isolation")).removeprefix("TRANSACTION_").lower().replace("_", "-")
    said = [f"sf{scale:g}" if scale is not None else "", isolation]
    return "-".join([PROFILE, *filter(None, said)])[:80]


def _version(summary: Mapping[str, object]) -> str | None:
    engine = _ENGINES.get(text(summary.get("DBMS Type")).upper())
    release = _RELEASE.match(text(summary.get("DBMS Version")))
    return f"{engine}@{release[1]}" if engine and release else None


BENCHBASE = ToolFormat(
    "a summary of BenchBase",
    "benchbase",
    _recognises,
    _read,
    """{"Benchmark Type": "tpcc", "DBMS Type": "POSTGRES", "DBMS Version": "18.1", "terminals": "8",
 "scalefactor": "10", "Current Timestamp (milliseconds)": 1764028800000,
 "Latency Distribution": {"Average Latency (microseconds)": 4100}, "Goodput (requests/second)": 1950.5}""",
)
