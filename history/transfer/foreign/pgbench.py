"""The output of pgbench, of all versions, one run after the other.

transaction type: <builtin: select only>
number of clients: 8
latency average = 0.160 ms
tps = 50000.000000 (without initial connection time)

Before Postgres 14 there were two rates, of which the one `excluding connections establishing` is taken, and
nothing says that every transaction connected anew (`-C`). The limit of a rate (`--rate`) is in no version's.
"""

import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath

import numpy as np

from history.transfer.foreign.document import Document
from history.transfer.foreign.results import LinesAbove, Result, ToolFormat, aborted, elsewhere
from history.transfer.foreign.values import PROFILE, Given, Location, refuse
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


_PROGRAM = re.compile(r"pgbench \((\d+(?:\.\d+)+)?[^,]*?(?:, server (\d+(?:\.\d+)+)[^,]*)?\)$")
_TPS = re.compile(r"tps = (\d+(?:\.\d+)?) \((.+)\)$")
_LATENCY = re.compile(r"latency average\s*[=:]\s*(\d+(?:\.\d+)?) ms$")
_COUNT = re.compile(
    r"number of (transactions actually processed|failed transactions|transactions skipped): (\d+)(?:/(\d+))?"
)
_SETTING = re.compile(
    r"(transaction type|scaling factor|partition method|partitions|query mode|number of clients): (.+)$"
)
_RATE_LIMIT = re.compile(r"rate limit schedule lag: ")
_LATE = re.compile(r"number of transactions above the (\d+(?:\.\d+)?) ms latency limit: ")
_RECONNECTS = re.compile(r"average connection time = |tps = .*\(including reconnection times\)")
_ABORTED = re.compile(
    r"(?:pgbench: )?(?:\w+: )?(?:Run was aborted|client \d+ (?:script \d+ )?aborted|Client \d+ aborted)"
)
_OTHER_LINES = re.compile(
    r"(?:pgbench(?::| \()|progress: |starting vacuum|number of |duration: |maximum number of tries: "
    r"|total number of |latency (?:stddev|average)|initial connection time|tps = |statement latencies"
    r"|SQL script |- |\d+(?:\.\d+)?\s|NOTICE: |WARNING: "
    r"|(?:dropping|creating|generating|vacuuming|set primary key|done)\b)"
)
"""Of lines that are read for nothing, those that pgbench writes."""
_SCRIPT = re.compile(r"SQL script \d+: (.+)$")
_SCRIPT_TPS = re.compile(r"- \d+ transactions \(.*tps = (\d+(?:\.\d+)?)\)$")
_SCRIPT_LATENCY = re.compile(r"- latency average = (\d+(?:\.\d+)?) ms$")

_BUILTIN = (
    ("tpc-b", "tpcb-like"),
    ("simple update", "simple-update"),
    ("update only", "simple-update"),
    ("select only", "select-only"),
)
"""How versions call the builtin scripts, and what `pgbench -b` calls them."""

_SEVERAL, _OWN = "multiple scripts", "custom query"
ALL_SCRIPTS = "all scripts"
"""The step with the whole rate of a run of several scripts."""


@dataclass
class _Run:
    place: Location
    version: str | None
    settings: dict[str, str] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    scripts: dict[str, dict[str, float]] = field(default_factory=dict)
    script: str = ""
    """The script that the lines are about; empty for those about the whole run."""

    ways: dict[str, None] = field(default_factory=dict)
    """In which ways it was no plain run: `reconnect`, `rate`, and the latency limit that it skipped by."""

    due: float = 0
    """The transactions that it had to do; 0 if it ended by the clock."""

    skipped: float = 0
    below: Mapping[str, str] = field(default_factory=dict)


def _recognises(document: Document) -> bool:
    head = document.head
    return "transaction type: " in head or bool(re.search(r"^\s*(?:pgbench \(|tps = \d)", head, re.MULTILINE))


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    for run in _runs(documents[0]):
        if TPS not in run.values:
            notes.append(
                f"{run.place} begins a run without the line 'tps = X (without initial connection time)'"
                f"{elsewhere(documents[0], _TPS)}"
            )
            continue
        if run.values.get(TRANSACTIONS, run.due) + run.values.get(ERRORS, 0) + run.skipped < run.due:
            raise aborted(run.place, f"{run.values.get(TRANSACTIONS, 0):g} of {run.due:g} transactions")
        if "rate" in run.ways:
            for values in (run.values, *run.scripts.values()):
                values.pop(TPS, None)
            notes.append(
                f"{run.place} begins a run at a limited rate, which pgbench does not write: its latencies "
                "are taken, in a session of such runs; give the runs of each rate a --suite"
            )
        clients = run.settings.get("number of clients", "")
        at = int(clients) if clients.isascii() and clients.isdigit() and len(clients) < 6 else None
        several = len(run.scripts) > 1
        steps = {ALL_SCRIPTS if several else _step(run.settings.get("transaction type", _OWN)): run.values}
        if several:
            steps |= {_step(name): values for name, values in run.scripts.items() if values}
        for step, values in steps.items():
            yield Result(
                values, run.place, step, at, profile=_profile(run), version=run.version, below=run.below
            )


def _step(script: str) -> str | None:
    """The name of a script; None of one that has none, as before Postgres 9.6."""
    known = next((name for text, name in _BUILTIN if text in script.lower()), None)
    if known or script.lower() == _OWN:
        return known
    return ALL_SCRIPTS if script == _SEVERAL else PurePath(script).stem


def _profile(run: _Run) -> str:
    """Sessions of another scale or query mode, or which connect anew or at a rate, are not compared."""
    names = (("scaling factor", "s"), ("partition method", ""), ("partitions", "p"), ("query mode", ""))
    said = (f"{before}{run.settings[name]}" for name, before in names if name in run.settings)
    limited = "rate" in run.ways
    ways = (way for way in run.ways if limited or not way.startswith("limit"))
    return "-".join([PROFILE, *said, *sorted(ways, reverse=True)])[:80]


def _runs(document: Document) -> Iterator[_Run]:
    run: _Run | None = None
    version, above = None, LinesAbove()
    for number, line in document.lines():
        if match := _PROGRAM.match(line):
            release = match[2] or match[1]
            version = f"postgres@{release}" if release else None
        if _ABORTED.match(line):
            raise aborted(document.place(number), line[:80])
        setting = _SETTING.match(line)
        if run and TPS in run.values and setting and setting[1] == "transaction type":
            yield run
            run = None
        if run is None:
            run = _Run(document.place(number), version, below=above.now)
        if setting:
            if not run.settings:
                run.place, run.below = document.place(number), above.now
            run.settings[setting[1]] = setting[2].strip()
            run.version = version
        elif not _read_line(line, run) and not _OTHER_LINES.match(line):
            above.add(line)
    if run:
        yield run


def _read_line(line: str, run: _Run) -> bool:
    """Read a line of a run; return whether it says something of it."""
    if match := _SCRIPT.match(line):
        run.scripts.setdefault(match[1], {})
        run.script = match[1]
        return True
    if run.script and _OTHER_LINES.match(line):
        _read_script(line, run.scripts[run.script])
        return True
    return _read_total(line, run)


def _read_total(line: str, run: _Run) -> bool:
    values = run.values
    if _RECONNECTS.match(line):
        run.ways["reconnect"] = None
    if match := _TPS.match(line):
        if TPS not in values or not match[2].startswith("including"):
            values[TPS] = float(match[1])
    elif match := _LATENCY.match(line):
        values[MEAN_LATENCY] = float(match[1])
    elif match := _COUNT.match(line):
        if match[1].endswith("skipped"):
            run.skipped = float(match[2])
        else:
            values[ERRORS if match[1].startswith("failed") else TRANSACTIONS] = float(match[2])
        run.due = float(match[3] or run.due)
    elif _RATE_LIMIT.match(line):
        run.ways["rate"] = None
    elif match := _LATE.match(line):
        run.ways[f"limit{match[1]}ms"] = None
    else:
        return False
    return True


def _read_script(line: str, values: dict[str, float]) -> None:
    if match := _SCRIPT_TPS.match(line):
        values[TPS] = float(match[1])
    elif match := _SCRIPT_LATENCY.match(line):
        values[MEAN_LATENCY] = float(match[1])


PGBENCH = ToolFormat(
    "the output of pgbench",
    "pgbench",
    _recognises,
    _read,
    """transaction type: <builtin: select only>
scaling factor: 100
query mode: simple
number of clients: 8
latency average = 0.160 ms
tps = 50000.000000 (without initial connection time)""",
)
