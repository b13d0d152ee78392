"""The JSON of JMH (`-rf json`): times of an operation, or operations per unit of time."""

from collections.abc import Iterator, Mapping, Sequence

from history.transfer.foreign.document import Document
from history.transfer.foreign.json_parts import items, number, parts, text
from history.transfer.foreign.results import Result, ToolFormat
from history.transfer.foreign.units import by_unit
from history.transfer.foreign.values import Given, Location


def _recognises(document: Document) -> bool:
    return any({"benchmark", "primaryMetric"} <= parts(run).keys() for run in items(document.json))


def _read(documents: Sequence[Document], _given: Given, notes: list[str]) -> Iterator[Result]:
    (document,) = documents
    for place_, run in enumerate(map(parts, items(document.json)), start=1):
        place = Location(document.name, f"benchmark {place_}")
        primary = parts(run.get("primaryMetric"))
        score, unit = number(primary.get("score")), text(primary.get("scoreUnit"))
        measured = by_unit(unit)
        if score is None or measured is None:
            notes.append(f"{place} has the score {primary.get('score')} {unit}: a time or a rate is expected")
            continue
        metric, scale = measured
        threads = number(run.get("threads"))
        clients = int(threads) if threads and 1 < threads < 1e5 else None
        yield Result({metric: score * scale}, place, _name(run), clients)


def _name(run: Mapping[str, object]) -> str | None:
    """Class and method, and the parameters: `Inserts.batch (rows=100)`."""
    name = ".".join(text(run.get("benchmark")).split(".")[-2:])
    given = ", ".join(f"{key}={value}" for key, value in parts(run.get("params")).items())
    return f"{name} ({given})" if given and name else name or None


JMH = ToolFormat(
    "the JSON of JMH",
    "jmh",
    _recognises,
    _read,
    """[{"benchmark": "org.example.Inserts.batch", "mode": "avgt",
  "primaryMetric": {"score": 125.5, "scoreUnit": "us/op"}}]""",
)
