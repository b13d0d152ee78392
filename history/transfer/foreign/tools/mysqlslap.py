"""The output of mysqlslap or mariadb-slap, with a block for each number of clients."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from history.transfer.foreign.document import Document
from history.transfer.foreign.results import LinesAbove, Result, ToolFormat, aborted
from history.transfer.foreign.values import PROFILE, Given
from suites.metric_names import OPERATION_TIME

_MEAN = re.compile(r"Average number of seconds to run all queries: (\d+(?:\.\d+)?) seconds")
_MOST = re.compile(r"Maximum number of seconds to run all queries: (\d+(?:\.\d+)?) seconds")
_CONDITION = re.compile(r"(?:Benchmark$|(?:Running for engine|Load:) (.+)$)")
"""Begins a block, or says of which engine or load it is: sessions of others are not compared."""

_OTHER_LINES = re.compile(r"(?:Average|Minimum) (?:number of|Time took)|(?:mysqlslap|mariadb-slap|mysql): ")
_ABORTED = re.compile(r"(?:mysqlslap|mariadb-slap): (?:\[ERROR\]|Cannot run query|Error )", re.IGNORECASE)
_CLIENTS = re.compile(r"Number of clients running queries: (\d{1,5})$")


def _recognises(document: Document) -> bool:
    return "number of seconds to run all queries:" in document.head


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    result: Result | None = None
    conditions: list[str] = []
    above = LinesAbove()
    for number, line in document.lines():
        if _ABORTED.match(line):
            raise aborted(document.place(number), line[:80])
        if match := _MEAN.search(line):
            if result:
                yield result
            values = {OPERATION_TIME: float(match[1]) * 1000}
            profile = "-".join([PROFILE, *conditions])
            result = Result(values, document.place(number), profile=profile, below=above.now)
        elif result and (match := _MOST.search(line)):
            result = replace(result, values={**result.values, "latency_max_ms": float(match[1]) * 1000})
        elif result and (match := _CLIENTS.search(line)):
            result = replace(result, clients=int(match[1]))
        elif match := _CONDITION.match(line):
            conditions = [*conditions, match[1]] if match[1] else []
        elif not _OTHER_LINES.match(line):
            above.add(line)
    if result:
        yield result
    else:
        notes.append("it has no line 'Average number of seconds to run all queries: X seconds'")


MYSQLSLAP = ToolFormat(
    "the output of mysqlslap",
    "mysqlslap",
    _recognises,
    _read,
    """Benchmark
        Average number of seconds to run all queries: 0.270 seconds
        Maximum number of seconds to run all queries: 0.290 seconds
        Number of clients running queries: 10""",
)
