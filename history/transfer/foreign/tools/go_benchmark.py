"""The output of `go test -bench`, as benchstat reads it: lines of a name, iterations, and values with units.

BenchmarkInsert-8   5000   125500 ns/op   64 B/op

Of the values, times and rates are taken.
"""

import re
from collections.abc import Iterator, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import number as number_of
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.units import by_unit
from history.transfer.foreign.values import Given

_LINE = re.compile(r"Benchmark([^\s]+?)(?:-\d+)?\s+\d+\s+([-+0-9.eE]+ \S+(?:\s+[-+0-9.eE]+ \S+)*)$")


def _recognises(document: Document) -> bool:
    return bool(re.search(r"^Benchmark\S+\s+\d+\s+\S+ \S+", document.head, re.MULTILINE))


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    for number, line in document.lines():
        match = _LINE.match(line)
        if match is None:
            continue
        words = match[2].split()
        values: dict[str, float] = {}
        for amount, unit in zip(words[::2], words[1::2], strict=True):
            value, measured = number_of(amount), by_unit(unit)
            if value is not None and measured is not None:
                values[measured[0]] = value * measured[1]
        if values:
            yield Result(values, document.place(number), match[1])
        else:
            notes.append(f"{document.place(number)} has neither a time nor a rate")


GO_BENCHMARK = ToolFormat(
    "the output of Go's benchmarks",
    "go",
    _recognises,
    _read,
    "BenchmarkInsert-8   5000   125500 ns/op",
)
