"""The tables that terminal and Markdown share: heads, and rows of cells that say how good they are."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from history.comparison.result import Comparison, ContenderComparison, StepComparison
from history.comparison.verdict import TRAITS, MetricChange, Ratio, Tone, verdict_of
from history.rendering.numbers import amount, bounds, percent, two_decimals
from history.rendering.sparkline import sparkline
from suites.metrics import METRICS, Better, Metric, Role, beside_verdict, label_of

MEAN_ROW = "geomean of"

LEFT = ("step", "verdict", "metric", "unit", "change", "nights")
"""Heads of columns of words."""

COSTS_HEADS = ("step", "metric", "unit", "base", "contender", "ratio", "interval", "change")
_MARKS = {MetricChange.MORE: "+", MetricChange.LESS: "-"}


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
    base, metric = contender.base, comparison.metric
    text = f"{contender.contender} against {base}: {metric.name} ({metric.unit})"
    if contender.contender.engine is base.engine:
        return text
    durability = contender.session.durability
    return f"{text}; configuration and durability ({durability}) are part of the comparison"


def legend(contender: ContenderComparison) -> str:
    """What the columns of the table of verdicts say."""
    columns = [METRICS[name] for name in beside_verdict(contender.engines) if head_of(name)]
    return (
        f"Ratios are contender (new) over base. {_explained(columns, Better.LOWER, 'less is better')}"
        f"{_explained(columns, Better.HIGHER, 'more is better')}"
        "+ more, - less, by the rules of a verdict; ? at a verdict: no cost explains it."
    )


def _explained(columns: Sequence[Metric], better: Better, said: str) -> str:
    """A sentence on the columns of one direction, and a space: costs first; empty where there is none."""
    its = [metric for metric in columns if metric.better is better]
    costs = ", ".join(metric.legend for metric in its if metric.role is Role.COST)
    others = [metric.legend for metric in its if metric.role is not Role.COST]
    parts = [f"Per query: {costs}", *others] if costs else others
    return f"{'; '.join(parts)}: {said}. " if parts else ""


def costs_legend(contender: ContenderComparison) -> str:
    """What the table of costs says, with the metrics that have no column in the first one."""
    metrics = [METRICS[name] for name in beside_verdict(contender.engines) if not head_of(name)]
    words = {Better.HIGHER: ", more is better", Better.LOWER: ", less is better", Better.NEITHER: ""}
    return " ".join(
        (
            "Second table: means of the paired rounds, geometric where there is a ratio; there is none when "
            "a value is zero.",
            *(f"{each.label}: {each.legend}{words[each.better]}." for each in metrics if each.legend),
        )
    )


def heads(contender: ContenderComparison, left_out: Collection[str] = ()) -> list[str]:
    """Of the table of verdicts; `left_out` are metrics beside the judged one that have no room."""
    beside = [head_of(each.metric) for each in _shown(contender.steps[0], left_out)]
    sees = ["sees"] if contender.has_visible else []
    nights = ["nights"] if contender.has_trends else []
    return ["step", "base", "new", "rel", "interval", *sees, *beside, *nights, "verdict"]


def left_out(contender: ContenderComparison, width: int) -> tuple[str, ...]:
    """The metrics whose columns have to go, so that the table of verdicts fits `width` columns."""
    widths = _widths(contender)
    shown = [METRICS[each.metric] for each in _shown(contender.steps[0])]
    giving_way = sorted((metric for metric in shown if metric.gives_way), key=lambda metric: metric.gives_way)
    candidates = [metric.name for metric in giving_way]
    needed = sum(widths.values()) + len(widths) - 1
    for count, metric in enumerate(candidates):
        if needed <= width:
            return tuple(candidates[:count])
        needed -= widths[head_of(metric)] + 1
    return tuple(candidates)


def _widths(contender: ContenderComparison) -> dict[str, int]:
    """Head -> characters of its column in the whole table of verdicts."""
    widths = {}
    for head, *cells in zip(heads(contender), *rows(contender), strict=True):
        marks = head not in LEFT and any(cell.mark for cell in cells)
        own = [len(cell.text) + (0 if marks else len(cell.mark)) for cell in cells]
        widths[head] = max(len(head), *own) + marks
    return widths


def head_of(metric: str) -> str:
    """The head of a metric's column."""
    return METRICS[metric].column


def rows(contender: ContenderComparison, left_out: Collection[str] = ()) -> Iterator[Row]:
    """Of the table of verdicts: one for each step, and the means."""
    for step in contender.steps:
        yield step_row(contender, step, left_out)
    yield from mean_rows(contender, left_out)


def step_row(contender: ContenderComparison, step: StepComparison, left_out: Collection[str] = ()) -> Row:
    """One step in the table of verdicts."""
    return [
        Cell(step.step),
        Cell(amount(step.judged.base)),
        Cell(amount(step.judged.contender)),
        Cell(two_decimals(step.judged.value)),
        Cell(bounds(step.judgement.interval)),
        *([Cell(percent(step.smallest_visible))] if contender.has_visible else []),
        *map(_marked, _shown(step, left_out)),
        *([Cell(sparkline(step.trend))] if contender.has_trends else []),
        _verdict(step),
    ]


def mean_rows(contender: ContenderComparison, left_out: Collection[str] = ()) -> Iterator[Row]:
    """The means at the end of the table of verdicts: of each group, and of all steps."""
    for mean in contender.group_means():
        yield _mean_row(contender, f"{mean.group} ({mean.steps})", mean.ratios, left_out)
    count, means = contender.geometric_means()
    yield _mean_row(contender, f"{MEAN_ROW} {count}", means, left_out)


def _mean_row(
    contender: ContenderComparison,
    label: str,
    means: Mapping[str, float | None],
    left_out: Collection[str],
) -> Row:
    first, empty = contender.steps[0], Cell("")
    beside = [Cell(two_decimals(means[each.metric])) for each in _shown(first, left_out)]
    sees = [empty] if contender.has_visible else []
    nights = [empty] if contender.has_trends else []
    relative = Cell(two_decimals(means[first.judged.metric]))
    return [Cell(label), empty, empty, relative, empty, *sees, *beside, *nights, empty]


def costs_rows(step: StepComparison) -> Iterator[Row]:
    """Of the table of costs: one for each metric beside the judged one that was recorded in the step."""
    for each in step.beside:
        if each.pairs:
            yield [
                Cell(step.step),
                Cell(label_of(each.metric)),
                Cell(METRICS[each.metric].unit),
                Cell(amount(each.base)),
                Cell(amount(each.contender)),
                Cell(two_decimals(each.value)),
                Cell(bounds(each.interval)),
                Cell(each.change, _tone(each)),
            ]


def _shown(step: StepComparison, left_out: Collection[str] = ()) -> list[Ratio]:
    """The metrics that have a column beside the judged one: the table has to fit a terminal."""
    return [each for each in step.beside if head_of(each.metric) and each.metric not in left_out]


def _verdict(step: StepComparison) -> Cell:
    verdict = step.judgement.verdict
    if verdict is None:
        return Cell(str(step.judgement.gap), Tone.OPEN)
    return Cell(verdict, TRAITS[verdict].tone, "?" if step.is_unexplained else "")


def _marked(ratio: Ratio) -> Cell:
    mark = _MARKS.get(ratio.change, "")
    return Cell(two_decimals(ratio.value), _tone(ratio) if mark else Tone.PLAIN, mark)


def _tone(ratio: Ratio) -> Tone:
    better = METRICS[ratio.metric].better
    return Tone.PLAIN if better is Better.NEITHER else TRAITS[verdict_of(ratio.change, better)].tone
