"""The tables that terminal and Markdown share: heads, and rows of cells that say how good they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from history.comparison import Comparison, ContenderComparison, StepComparison
from history.judging import Change, Ratio, Verdict, verdict_of
from history.rendering.numbers import amount, bounds, percent, two_decimals
from suites.measurement import METRICS, Better

MEAN_ROW = "geomean of"

LEFT = ("step", "verdict", "metric", "unit", "change")
"""Heads of columns of words."""

# The metrics that have a column beside the judged one, with heads as narrow as they can be.
_HEADS = {
    "server_cpu_us_per_op": "CPU",
    "server_cs_per_op": "cs",
    "server_written_kb_per_op": "wrt",
    "wal_bytes_per_op": "WAL",
    "latency_p99_ms": "p99",
    "qps_cv": "cv",
    # In a session that was imported; doubts say so.
    "machine_cpu_us_per_op": "CPU",
    "machine_cs_per_op": "cs",
    "machine_written_kb_per_op": "wrt",
}

NAMES = {
    "server_cpu_us_per_op": "server CPU",
    "client_cpu_us_per_op": "client CPU",
    "server_cs_per_op": "context switches",
    "server_read_kb_per_op": "read",
    "server_written_kb_per_op": "written",
    "wal_bytes_per_op": "WAL or redo",
    "server_instructions_per_op": "instructions",
    "latency_p99_ms": "p99 latency",
    "qps_cv": "cv",
    "qps_p1_over_median": "p1/median",
    "machine_cpu_us_per_op": "machine CPU",
    "machine_cs_per_op": "machine's context switches",
    "machine_read_kb_per_op": "read by all disks",
    "machine_written_kb_per_op": "written by all disks",
}
"""What people call the metrics of history.explaining.BESIDE, and of BESIDE in an imported session."""

LEGEND = (
    "Ratios are contender (new) over base. Per query: CPU time of the server, its context switches (cs), KiB "
    "written (wrt), WAL or redo bytes; p99 latency; cv, how much QPS varies from second to second: less is "
    "better. "
    "+ more, - less, by the rules of a verdict; ? at a verdict: no cost explains it."
)

COSTS_HEADS = ("step", "metric", "unit", "base", "contender", "ratio", "interval", "change")
COSTS_LEGEND = (
    "Second table: means of the paired rounds, geometric where there is a ratio; there is none when a "
    "value is zero. p1/median: 1st percentile over median of QPS from second to second, more is better."
)

_MARKS = {Change.MORE: "+", Change.LESS: "-"}


class Tone(Enum):
    """How good it is what a cell says."""

    PLAIN = auto()
    GOOD = auto()
    BAD = auto()
    QUIET = auto()
    OPEN = auto()
    """Nothing could be settled."""


_TONES = {
    Verdict.REGRESSION: Tone.BAD,
    Verdict.IMPROVEMENT: Tone.GOOD,
    Verdict.UNCHANGED: Tone.QUIET,
    Verdict.INCONCLUSIVE: Tone.OPEN,
}


@dataclass(frozen=True)
class Cell:
    """One field of a table."""

    text: str
    tone: Tone = Tone.PLAIN
    mark: str = ""
    """Stands right behind the text."""


Row = list[Cell]


def title(comparison: Comparison, contender: ContenderComparison) -> str:
    """What is compared; across engines also that more than versions differ."""
    base, metric = comparison.base, comparison.metric
    text = f"{contender.contender} against {base}: {metric.name} ({metric.unit})"
    if contender.contender.engine is base.engine:
        return text
    durability = contender.session.durability
    return f"{text}; configuration and durability ({durability}) are part of the comparison"


def heads(contender: ContenderComparison) -> list[str]:
    """Of the table of verdicts."""
    beside = [_HEADS[each.metric] for each in _shown(contender.steps[0])]
    sees = ["sees"] if shows_visible(contender) else []
    return ["step", "base", "new", "rel", "interval", *sees, *beside, "verdict"]


def shows_visible(contender: ContenderComparison) -> bool:
    """Whether there is a column for the smallest worsening that each step is likely to flag."""
    return any(step.smallest_visible is not None for step in contender.steps)


def rows(contender: ContenderComparison) -> Iterator[Row]:
    """Of the table of verdicts: one for each step, and the means."""
    visible = shows_visible(contender)
    for step in contender.steps:
        yield [
            Cell(step.step),
            Cell(amount(step.judged.base)),
            Cell(amount(step.judged.contender)),
            Cell(two_decimals(step.judged.value)),
            Cell(bounds(step.judgement.interval)),
            *([Cell(percent(step.smallest_visible))] if visible else []),
            *map(_marked, _shown(step)),
            _verdict(step),
        ]
    count, means = contender.geometric_means()
    first = contender.steps[0]
    beside = [Cell(two_decimals(means[each.metric])) for each in _shown(first)]
    empty = Cell("")
    relative = Cell(two_decimals(means[first.judged.metric]))
    sees = [empty] if visible else []
    yield [Cell(f"{MEAN_ROW} {count}"), empty, empty, relative, empty, *sees, *beside, empty]


def costs_rows(step: StepComparison) -> Iterator[Row]:
    """Of the table of costs: one for each metric beside the judged one that was recorded in the step."""
    for each in step.beside:
        if each.pairs:
            yield [
                Cell(step.step),
                Cell(NAMES[each.metric]),
                Cell(METRICS[each.metric].unit),
                Cell(amount(each.base)),
                Cell(amount(each.contender)),
                Cell(two_decimals(each.value)),
                Cell(bounds(each.interval)),
                Cell(each.change, _tone(each)),
            ]


def _shown(step: StepComparison) -> list[Ratio]:
    """The metrics that have a column beside the judged one: the table has to fit a terminal."""
    return [each for each in step.beside if each.metric in _HEADS]


def _verdict(step: StepComparison) -> Cell:
    verdict = step.judgement.verdict
    if verdict is None:
        return Cell(str(step.judgement.gap), Tone.OPEN)
    return Cell(verdict, _TONES[verdict], "?" if step.is_unexplained else "")


def _marked(ratio: Ratio) -> Cell:
    mark = _MARKS.get(ratio.change, "")
    return Cell(two_decimals(ratio.value), _tone(ratio) if mark else Tone.PLAIN, mark)


def _tone(ratio: Ratio) -> Tone:
    better = METRICS[ratio.metric].better
    return Tone.PLAIN if better is Better.NEITHER else _TONES[verdict_of(ratio.change, better)]
