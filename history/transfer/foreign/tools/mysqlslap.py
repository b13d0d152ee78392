"""The output of mysqlslap or mariadb-slap, with a block for each number of clients."""

import re
from collections.abc import Iterator, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.values import Given, Location
from suites.metric_names import OPERATION_TIME

_MEAN = re.compile(r"Average number of seconds to run all queries: (\d+(?:\.\d+)?) seconds")
_MOST = re.compile(r"Maximum number of seconds to run all queries: (\d+(?:\.\d+)?) seconds")
_CLIENTS = re.compile(r"Number of clients running queries: (\d{1,5})$")


def _recognises(document: Document) -> bool:
    return "number of seconds to run all queries:" in document.head


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    place: Location | None = None
    values: dict[str, float] = {}
    clients: int | None = None
    for number, line in document.lines():
        if match := _MEAN.search(line):
            if place:
                yield Result(values, place, clients=clients)
            place, clients = document.place(number), None
            values = {OPERATION_TIME: float(match[1]) * 1000}
        elif match := _MOST.search(line):
            values["latency_max_ms"] = float(match[1]) * 1000
        elif match := _CLIENTS.search(line):
            clients = int(match[1])
    if place:
        yield Result(values, place, clients=clients)
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
