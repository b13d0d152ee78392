"""Logs of pgbench: of each transaction (`-l`), or of each interval (`-l --aggregate-interval`).

A log has a file for each thread, `pgbench_log.4242` and `pgbench_log.4242.1`, which together are one run.

client transaction microseconds script epoch microseconds [lag] [retries]
epoch transactions sum sum-of-squares least most [lags, skipped, retries, failures]

A lag is the delay of a transaction at a limited rate, in microseconds; of such a run the latencies are taken.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np

from history.transfer.foreign.document import Document
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.values import PROFILE, Given, refuse
from suites.metrics import ERRORS, MEAN_LATENCY, SECONDS, SLOWEST, TAIL_LATENCY, TPS, TRANSACTIONS

_TRANSACTION = re.compile(
    r"(\d{1,9}) (\d{1,15}) (\d{1,15}|skipped|failed|serialization|deadlock) (\d{1,6}) (1\d{9}) (\d{1,6})"
    r"(?: (\d{1,15}|skipped|-))?(?: (?:\d{1,15}|skipped|-))?"
)
_INTERVAL = re.compile(
    r"(1\d{9}) (\d{1,15}) (\d{1,25}) (\d{1,40}) (\d{1,20}) (\d{1,20})(?: (\d{1,40}))?(?: \d{1,40}){0,11}"
)

_LAGS = 10
"""Microseconds from which on most values of the column after the times are lags: retries are fewer."""

_AT_A_RATE = f"{PROFILE}-rate"

_MICROSECONDS = 1e6

_PERCENTILES = {50: "latency_p50_ms", 95: "latency_p95_ms", 99: TAIL_LATENCY, 99.9: "latency_p999_ms"}

SAMPLED = 0.99
"""The share of a run's transactions below which a log is a sample of them, which says nothing of its rate."""


def _begins_with(pattern: re.Pattern[str], document: Document) -> bool:
    first, newline, _ = document.head.partition("\n")
    return bool(newline and pattern.fullmatch(first.strip()))


def _run_of(name: str) -> str:
    """`pgbench_log.4242` of `pgbench_log.4242.1`."""
    return re.sub(r"^(.+\.\d+)\.\d+$", r"\1", name)


def _matches(pattern: re.Pattern[str], document: Document, shape: str) -> Iterator[re.Match[str]]:
    for number, line in document.lines():
        if match := pattern.fullmatch(line):
            yield match
        elif line:
            raise refuse(
                document.place(number),
                f"'{line[:60]}' is no line of a pgbench log",
                f"the columns are: {shape}",
            )


_COLUMNS = "client_id transaction_no time script_no time_epoch time_us [schedule_lag] [retries]"


def _read_transactions(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    latencies, ends, lags = array("d"), array("d"), array("d")
    failed = 0
    limited = False
    last: defaultdict[str, int] = defaultdict(int)
    rows = 0
    for document in documents:
        for match in _matches(_TRANSACTION, document, _COLUMNS):
            rows += 1
            last[match[1]] = max(last[match[1]], int(match[2]))
            lags.append(float(match[7]) if match[7] and match[7].isdigit() else 0.0)
            limited |= match[3] == "skipped"
            if match[3].isdigit():
                latencies.append(float(match[3]))
                ends.append(int(match[5]) + int(match[6]) / _MICROSECONDS)
            else:
                failed += 1
    if not latencies:
        return
    times, finished = np.asarray(latencies), np.asarray(ends)
    begin = float((finished - times / _MICROSECONDS).min())
    seconds = float(finished.max()) - begin
    names = ", ".join(document.name for document in documents)
    values = {MEAN_LATENCY: float(times.mean()) / 1000, SLOWEST: float(times.max()) / 1000}
    percentiles = np.percentile(times, list(_PERCENTILES)) / 1000
    values |= dict(zip(_PERCENTILES.values(), map(float, percentiles), strict=True))
    values |= {TRANSACTIONS: float(len(times)), ERRORS: float(failed), SECONDS: seconds}
    limited |= float(np.median(lags)) >= _LAGS
    if limited:
        notes.append(f"{names}: it is of a limited rate, which it does not say: its latencies are taken")
    elif rows < SAMPLED * sum(last.values()):
        notes.append(
            f"{names}: {rows} of about {sum(last.values())} transactions are in the log, which is a sample "
            "or a part of one: it gives latencies and no rate"
        )
    elif seconds > 0:
        values = {TPS: len(times) / seconds, **values}
    profile = _AT_A_RATE if limited else PROFILE
    yield Result(values, documents[0].place(1), clients=len(last), profile=profile, when=_moment(begin))


_COLUMNS_OF_INTERVALS = (
    "interval_start num_transactions sum_latency sum_latency_2 min_latency max_latency ..."
)


def _read_intervals(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    rate, transactions, total, most = 0.0, 0, 0, 0
    begin = None
    limited = False
    without_rate: list[str] = []
    for document in documents:
        rows = [
            tuple(int(match[column] or 0) for column in (1, 2, 3, 6, 7))
            for match in _matches(_INTERVAL, document, _COLUMNS_OF_INTERVALS)
        ]
        seconds = rows[-1][0] - rows[0][0]
        if seconds > 0:
            # The last interval ends when the run does, and so may be shorter.
            rate += sum(row[1] for row in rows[:-1]) / seconds
        else:
            without_rate.append(document.name)
        transactions += sum(row[1] for row in rows)
        total += sum(row[2] for row in rows)
        most = max(most, *(row[3] for row in rows))
        limited |= any(row[4] for row in rows)
        begin = rows[0][0] if begin is None else min(begin, rows[0][0])
    if not transactions or begin is None:
        return
    if limited:
        names = ", ".join(document.name for document in documents)
        notes.append(f"{names}: it is of a limited rate, which it does not say: its latencies are taken")
    elif without_rate:
        notes.append(
            f"{', '.join(without_rate)}: it has only one interval, of which nothing says how long it was: it "
            "gives latencies and no rate"
        )
    values = {MEAN_LATENCY: total / transactions / 1000, SLOWEST: most / 1000}
    values = ({} if without_rate or limited else {TPS: rate}) | values | {TRANSACTIONS: float(transactions)}
    profile = _AT_A_RATE if limited else PROFILE
    yield Result(values, documents[0].place(1), profile=profile, when=_moment(begin))


def _moment(epoch: float) -> datetime:
    return datetime.fromtimestamp(int(epoch), UTC)


PGBENCH_LOG = ToolFormat(
    "a log of pgbench's transactions",
    "pgbench",
    lambda document: _begins_with(_TRANSACTION, document),
    _read_transactions,
    "0 199 2241 0 1764028800 995598",
    run_of=_run_of,
)

PGBENCH_INTERVALS = ToolFormat(
    "a log of pgbench's transactions by interval",
    "pgbench",
    lambda document: _begins_with(_INTERVAL, document),
    _read_intervals,
    """1764028800 5601 1542744 483552416 61 2573
1764028802 7884 1979812 565806736 60 1479""",
    run_of=_run_of,
)
