"""The output of pgbench, of all versions, one run after the other.

transaction type: <builtin: select only>
number of clients: 8
latency average = 0.160 ms
tps = 50000.000000 (without initial connection time)

Before Postgres 14 there were two rates, of which the one `excluding connections establishing` is taken.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from history.transfer.foreign.document import Document
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.values import PROFILE, Given, Location
from suites.metric_names import TPS

_PROGRAM = re.compile(r"pgbench \((\d+(?:\.\d+)+)?[^,]*?(?:, server (\d+(?:\.\d+)+)[^,]*)?\)$")
_TPS = re.compile(r"tps = (\d+(?:\.\d+)?) \((.+)\)$")
_LATENCY = re.compile(r"latency average\s*[=:]\s*(\d+(?:\.\d+)?) ms$")
_COUNT = re.compile(r"number of (transactions actually processed|failed transactions): (\d+)")
_SETTING = re.compile(r"(transaction type|scaling factor|query mode|number of clients): (.+)$")
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


def _recognises(document: Document) -> bool:
    head = document.head
    return "transaction type: " in head or bool(re.search(r"^\s*(?:pgbench \(|tps = \d)", head, re.MULTILINE))


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    for run in _runs(documents[0]):
        if TPS not in run.values:
            notes.append(
                f"{run.place} begins a run without the line 'tps = X (without initial connection time)'"
            )
            continue
        clients = run.settings.get("number of clients", "")
        at = int(clients) if clients.isascii() and clients.isdigit() and len(clients) < 6 else None
        several = len(run.scripts) > 1
        steps = {ALL_SCRIPTS if several else _step(run.settings.get("transaction type", _OWN)): run.values}
        if several:
            steps |= {_step(name): values for name, values in run.scripts.items() if TPS in values}
        for step, values in steps.items():
            yield Result(values, run.place, step, at, profile=_profile(run), version=run.version)


def _step(script: str) -> str | None:
    """The name of a script; None of one that has none, as before Postgres 9.6."""
    known = next((name for text, name in _BUILTIN if text in script.lower()), None)
    if known or script.lower() == _OWN:
        return known
    return ALL_SCRIPTS if script == _SEVERAL else PurePath(script).stem


def _profile(run: _Run) -> str:
    """Sessions of another scale or query mode are not compared."""
    names = (("scaling factor", "s"), ("query mode", ""))
    said = (f"{before}{run.settings[name]}" for name, before in names if name in run.settings)
    return "-".join([PROFILE, *said])[:80]


def _runs(document: Document) -> Iterator[_Run]:
    run: _Run | None = None
    version, script = None, ""
    for number, line in document.lines():
        if match := _PROGRAM.match(line):
            release = match[2] or match[1]
            version = f"postgres@{release}" if release else None
        setting = _SETTING.match(line)
        if run and TPS in run.values and setting and setting[1] == "transaction type":
            yield run
            run = None
        if run is None:
            run, script = _Run(document.place(number), version), ""
        if setting:
            if not run.settings:
                run.place = document.place(number)
            run.settings[setting[1]] = setting[2].strip()
            run.version = version
        elif match := _SCRIPT.match(line):
            script = match[1]
            run.scripts.setdefault(script, {})
        elif script:
            _read_script(line, run.scripts[script])
        else:
            _read_total(line, run.values)
    if run:
        yield run


def _read_total(line: str, values: dict[str, float]) -> None:
    if match := _TPS.match(line):
        if TPS not in values or not match[2].startswith("including"):
            values[TPS] = float(match[1])
    elif match := _LATENCY.match(line):
        values["latency_mean_ms"] = float(match[1])
    elif match := _COUNT.match(line):
        values["errors" if match[1].startswith("failed") else "transactions"] = float(match[2])


def _read_script(line: str, values: dict[str, float]) -> None:
    if match := _SCRIPT_TPS.match(line):
        values[TPS] = float(match[1])
    elif match := _SCRIPT_LATENCY.match(line):
        values["latency_mean_ms"] = float(match[1])


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
