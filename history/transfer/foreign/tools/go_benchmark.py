"""The output of `go test -bench`, as benchstat reads it: lines of a name, iterations, and values with units.

BenchmarkInsert-8   5000   125500 ns/op   64 B/op

Of the values, times and rates are taken. Lines such as `cpu: X` and `pkg: X` hold for what follows.
"""

import re
from collections.abc import Iterator, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import number as number_of
from history.transfer.foreign.results import LinesAbove, Result, ToolFormat, aborted
from history.transfer.foreign.units import by_unit
from history.transfer.foreign.values import Given

_LINE = re.compile(r"Benchmark([^\s]+?)(?:-\d+)?\s+\d+\s+([-+0-9.eE]+ \S+(?:\s+[-+0-9.eE]+ \S+)*)$")

_ABORTED = re.compile(r"(?:--- FAIL|FAIL\b|panic: )")
_OTHER_LINES = re.compile(r"(?:Benchmark|PASS$|ok\s|---|\?\s|goos: |goarch: |=== |\w+\.go:\d+: |coverage: )")


def _recognises(document: Document) -> bool:
    return bool(re.search(r"^Benchmark\S+\s+\d+\s+\S+ \S+", document.head, re.MULTILINE))


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    above = LinesAbove()
    for number, line in document.lines():
        if _ABORTED.match(line):
            raise aborted(document.place(number), line[:80])
        match = _LINE.match(line)
        if match is None:
            if not _OTHER_LINES.match(line):
                above.add(line)
            continue
        words = match[2].split()
        values: dict[str, float] = {}
        for amount, unit in zip(words[::2], words[1::2], strict=True):
            value, measured = number_of(amount), by_unit(unit)
            if value is not None and measured is not None:
                values[measured[0]] = value * measured[1]
        if values:
            yield Result(values, document.place(number), match[1], below=above.now)
        else:
            notes.append(f"{document.place(number)} has neither a time nor a rate")


GO_BENCHMARK = ToolFormat(
    "the output of Go's benchmarks",
    "go",
    _recognises,
    _read,
    "BenchmarkInsert-8   5000   125500 ns/op",
)
