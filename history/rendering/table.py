"""The tables shared by terminal and Markdown: column heads, and rows of cells with a tone."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from build.version import Version
from history.comparison.beside.curves import Curve, Shape, client_share, shapes
from history.comparison.beside.open_connections import ConnectionCost
from history.comparison.exact import is_exact
from history.comparison.findings.plans import why_no_plans
from history.comparison.kinds import KindComparison
from history.comparison.result import Comparison, ContenderComparison, StepComparison
from history.comparison.verdict import TRADE, TRAITS, Judged, MetricChange, Tone, Verdict, verdict_of
from history.counts import counted
from history.metric_words import words_of
from history.numbers import DASH, amount, bounds, share, three_decimals, two_decimals
from history.rendering.sparkline import sparkline
from suites.metrics import METRICS, SECOND_LATENCY, TAIL_LATENCY, Better, Metric, Role, beside_verdict

MEAN_ROW = "geomean of"

NO_NAMES: Mapping[Version, str] = MappingProxyType({})
"""Every contender is called by its version."""

LEFT = ("step", "version", "verdict", "metric", "unit", "change", "nights")
"""The heads of columns that are aligned left."""

_MARKS = {MetricChange.MORE: "+", MetricChange.LESS: "-"}


@dataclass(frozen=True)
class Cell:
    """A field of a table."""

    text: str
    tone: Tone = Tone.PLAIN
    mark: str = ""
    """A sign directly after the text."""


Row = list[Cell]


def title(
    comparison: Comparison, contender: ContenderComparison, names: Mapping[Version, str] = NO_NAMES
) -> str:
    """Return the title of a table: versions and metric; across engines also what else differs.

    `names` are those of contenders that are not called by their version, such as the tip of a branch.
    """
    base = contender.base
    metric = contender.steps[0].judged.row if contender.steps else comparison.metric
    name = names.get(contender.contender, str(contender.contender))
    less = ", less is better" if metric.better is Better.LOWER else ""
    text = f"{name} against {base}: {metric.name} ({metric.unit}{less})"
    declared = str(contender.session.declared)
    text += f"; {declared}" if declared else ""
    if contender.contender.engine is base.engine:
        return text
    durability = contender.session.durability
    return f"{text}; configuration and durability ({durability}) are part of the comparison"


def outcome(contender: ContenderComparison) -> str:
    """Return a sentence on a contender: how many steps have which verdict, the worst regression, findings.

    What is counted has more or less of it: instructions are no time. Of two engines one is worse or better:
    neither regressed.
    """
    is_counted = any(is_exact(step.judged.metric) for step in contender.steps)
    trades = sum(step.is_trade for step in contender.steps)
    counts = Counter(step.judged.verdict for step in contender.steps if not step.is_trade)
    parts = [
        f"{counts[verdict]} {_plural(contender, verdict, counts[verdict], is_counted)}" for verdict in TRAITS
    ]
    if trades:
        parts.insert(0, counted(trades, "trade"))
    if counts[None]:
        parts.append(f"{counts[None]} without a verdict")
    regressed = [step for step in contender.steps if step.judged.verdict is Verdict.REGRESSION]
    worst = min((step for step in regressed if step.judged.value), key=_goodness, default=None)
    most = "most" if is_counted else "worst"
    tail = f"; {most}: {worst.step} {_ratio_text(worst)}" if worst is not None else ""
    worse = [found for step in contender.steps for found in step.findings if found.is_worse]
    tail += f"; {counted(len(worse), 'finding')} that is worse" if len(worse) == 1 else ""
    tail += f"; {len(worse)} findings that are worse" if len(worse) > 1 else ""
    return f"{', '.join(parts)}{tail}."


def _plural(contender: ContenderComparison, verdict: Verdict, count: int, is_counted: bool) -> str:
    """Return a verdict as so many steps have it."""
    if is_counted and verdict in _OF_COUNTS:
        return f"with {_OF_COUNTS[verdict]}"
    word = word_of(contender, verdict)
    return word if count == 1 or word != verdict else TRAITS[verdict].plural


_OF_COUNTS = {Verdict.REGRESSION: MetricChange.MORE, Verdict.IMPROVEMENT: MetricChange.LESS}
"""What a verdict on a count is called, less of which is better."""


_OF_ENGINES = {Verdict.REGRESSION: "worse", Verdict.IMPROVEMENT: "better"}
"""What a verdict on two engines is called: what is no newer version of the base has not regressed."""


def word_of(contender: ContenderComparison, verdict: Verdict) -> str:
    """Return what a verdict on a contender is called."""
    is_one_engine = contender.base.engine is contender.contender.engine
    return verdict if is_one_engine else _OF_ENGINES.get(verdict, str(verdict))


def verdict_word(contender: ContenderComparison, step: StepComparison) -> str:
    """Return what is said of a step: its verdict, of counts more or less, or why it has none."""
    verdict = step.judged.verdict
    if step.is_trade:
        return TRADE
    if verdict in _OF_COUNTS and is_exact(step.judged.metric):
        return str(_OF_COUNTS[verdict])
    if verdict is not None:
        return word_of(contender, verdict)
    return step.judged.reason or "no verdict"


def _ratio_text(step: StepComparison) -> str:
    judged = step.judged
    return f"{decimal(judged.metric, judged.value)} ({bounds(judged.interval, decimals(judged.metric))})"


def _goodness(step: StepComparison) -> float:
    return step.judged.better.gain(step.judged.value or 1)


LEGEND = "Ratios are new over base: + more, - less, for certain; ? a change that costs do not explain."


def legend(contender: ContenderComparison) -> list[str]:
    """Return the explanation of the columns of the table of verdicts, and which metrics have none."""
    beside = beside_verdict(contender.engines, contender.session.primary)
    named = [name for name in beside if words_of(name).column]
    columns = [METRICS[name] for name in named if name not in contender.unrecorded | contender.unmoved]
    same = ", ".join(words_of(name).column for name in named if name in contender.unmoved)
    return [LEGEND, *_explained(columns), *([f"The same in every step: {same}."] if same else [])]


def _explained(columns: Sequence[Metric]) -> Iterator[str]:
    """Yield a sentence on the costs of a query, and one on the other columns."""
    for better in (Better.LOWER, Better.HIGHER):
        metrics = [metric for metric in columns if metric.better is better]
        legends = [(words_of(metric.name).legend, metric.role is Role.COST) for metric in metrics]
        costs = ", ".join(legend for legend, is_cost in legends if is_cost)
        others = "; ".join(legend for legend, is_cost in legends if not is_cost)
        sentences = [*([f"Per query: {costs}."] if costs else []), *([f"{others}."] if others else [])]
        yield from sentences[:-1]
        yield from (f"{last} {better.words.capitalize()}." for last in sentences[-1:])


def heads(contender: ContenderComparison, left_out: Collection[str] = ()) -> list[str]:
    """Return the heads of the table of verdicts; `left_out` are metrics without a column."""
    beside = [words_of(ratio.metric).column for ratio in _shown(contender, contender.steps[0], left_out)]
    sees = ["sees"] if contender.has_visible else []
    nights = ["nights"] if contender.has_trends else []
    return ["step", "base", "new", "rel", "interval", *sees, *beside, *nights, "verdict"]


def left_out(contender: ContenderComparison, width: int) -> tuple[str, ...]:
    """Return the metrics to leave out so that the table of verdicts fits `width` columns.

    Those that moved in no step go first.
    """
    widths = _widths(contender)
    moved = {judged.metric for step in contender.steps for judged in step.beside if _has_moved(judged)}
    shown = [ratio.metric for ratio in _shown(contender, contender.steps[0])]
    candidates = [metric for metric in shown if words_of(metric).gives_way]
    candidates.sort(key=lambda metric: (metric in moved, words_of(metric).gives_way))
    needed = sum(widths.values()) + len(widths) - 1
    for count, metric in enumerate(candidates):
        if needed <= width:
            return tuple(candidates[:count])
        needed -= widths[words_of(metric).column] + 1
    return tuple(candidates)


def _has_moved(judged: Judged) -> bool:
    return judged.change in (MetricChange.MORE, MetricChange.LESS)


def _widths(contender: ContenderComparison) -> dict[str, int]:
    """Return the width of each column of the whole table of verdicts, by its head."""
    widths = {}
    for head, *cells in zip(heads(contender), *rows(contender), strict=True):
        marks = head not in LEFT and any(cell.mark for cell in cells)
        own = [len(cell.text) + (0 if marks else len(cell.mark)) for cell in cells]
        widths[head] = max(len(head), *own) + marks
    return widths


def curve_rows(contender: ContenderComparison, curve: Curve) -> Iterator[Row]:
    """Iterate over the rows of the table of a step's levels: throughput, ratio, share of the peak."""
    base, new = shapes(curve)
    for level in curve.levels:
        judged = level.comparison.judged
        yield [
            Cell(str(level.clients)),
            Cell(amount(level.base)),
            Cell(amount(level.contender)),
            Cell(decimal(judged.metric, judged.value)),
            Cell(_share_of_peak(level.base, base)),
            Cell(_share_of_peak(level.contender, new)),
            Cell(share(client_share(level.comparison))),
            _verdict(contender, level.comparison),
        ]


CURVE_HEADS = ("clients", "base", "new", "rel", "base of peak", "new of peak", "client CPU", "verdict")
"""The columns of the table of a step's levels."""


CONNECTION_TITLE = "KiB per open connection"
CONNECTION_HEADS = (
    *("step", "version", "memory", "its interval", "page tables", "RSS as top", "connects/s", "statements"),
)
"""The columns of the table of what an open connection costs."""


def connection_row(cost: ConnectionCost) -> Row:
    """Return the row of a step and version in the table of what an open connection costs."""
    ends = DASH if None in (cost.low, cost.high) else f"{_whole(cost.low)}–{_whole(cost.high)}"
    numbers = (cost.page_tables, cost.rss, cost.connects, cost.statements)
    texts = (cost.step, str(cost.version), _whole(cost.memory), ends, *map(_whole, numbers))
    return [Cell(text) for text in texts]


def _whole(value: float | None) -> str:
    return DASH if value is None else f"{value:,.0f}"


def _share_of_peak(throughput: float | None, shape: Shape | None) -> str:
    return share(None if throughput is None or shape is None else throughput / shape.peak)


def rows(contender: ContenderComparison, left_out: Collection[str] = ()) -> Iterator[Row]:
    """Iterate over the rows of the table of verdicts: one per step, then the means."""
    for step in contender.steps:
        yield step_row(contender, step, left_out)
    yield from mean_rows(contender, left_out)


def step_row(contender: ContenderComparison, step: StepComparison, left_out: Collection[str] = ()) -> Row:
    """Return the row of a step in the table of verdicts."""
    return [
        Cell(step.step),
        Cell(amount(step.judged.base)),
        Cell(amount(step.judged.contender)),
        Cell(decimal(step.judged.metric, step.judged.value)),
        Cell(bounds(step.judged.interval, decimals(step.judged.metric))),
        *([Cell(share(step.smallest_visible))] if contender.has_visible else []),
        *map(_marked, _shown(contender, step, left_out)),
        *([Cell(sparkline(step.trend))] if contender.has_trends else []),
        _verdict(contender, step),
    ]


def mean_rows(contender: ContenderComparison, left_out: Collection[str] = ()) -> Iterator[Row]:
    """Iterate over the means at the end of the table of verdicts: of each group, then of all steps."""
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
    beside = [
        Cell(decimal(ratio.metric, means[ratio.metric])) for ratio in _shown(contender, first, left_out)
    ]
    sees = [empty] if contender.has_visible else []
    nights = [empty] if contender.has_trends else []
    relative = Cell(decimal(first.judged.metric, means[first.judged.metric]))
    return [Cell(label), empty, empty, relative, empty, *sees, *beside, *nights, empty]


def _shown(
    contender: ContenderComparison, step: StepComparison, left_out: Collection[str] = ()
) -> list[Judged]:
    """Return the metrics with a column beside the judged one."""
    hidden = {*left_out, *contender.unrecorded, *contender.unmoved}
    return [ratio for ratio in step.beside if words_of(ratio.metric).column and ratio.metric not in hidden]


def _verdict(contender: ContenderComparison, step: StepComparison) -> Cell:
    verdict = step.judged.verdict
    if verdict is None:
        return Cell(str(step.judged.gap), Tone.OPEN)
    if step.is_trade:
        return Cell(TRADE, Tone.BAD)
    return Cell(word_of(contender, verdict), TRAITS[verdict].tone, "?" if step.is_unexplained else "")


def _marked(ratio: Judged) -> Cell:
    mark = _MARKS.get(ratio.change, "")
    return Cell(decimal(ratio.metric, ratio.value), tone(ratio) if mark else Tone.PLAIN, mark)


def decimals(metric: str) -> int:
    """Return the decimals of a metric's ratios: counts are known to a fraction of a per cent."""
    return 3 if is_exact(metric) else 2


def decimal(metric: str, value: float | None) -> str:
    """Return a ratio of a metric with its decimals."""
    return three_decimals(value) if is_exact(metric) else two_decimals(value)


def tone(ratio: Judged) -> Tone:
    """Return whether the change of a metric is good or bad."""
    better = METRICS[ratio.metric].better
    return Tone.PLAIN if better is Better.NEITHER else TRAITS[verdict_of(ratio.change, better)].tone


# --- kinds of transactions

KIND_HEADS = (
    *("step", "kind", "base ms", "new ms", "rel", "interval"),
    *("p99 ms", "rel p99", "max/s ms", "rel max/s", "tx/s", "rel tx/s", "retried", "refused", "verdict"),
)

KINDS_LEFT = ("step", "kind", "verdict")

KINDS_LEGEND = (
    "Kinds: ms, rel, interval and verdict are of the mean latency of one transaction, script or statement.",
    "Beside it the contender's p99, max/s (the slowest of each second, median of all) and tx/s (commits per "
    "second), with ratios to the base; retried and refused: per commit.",
)


def kinds_legends(contender: ContenderComparison, asked: bool) -> list[str]:
    """Return the explanation of the table, or a note why it is not there although it was `asked` for."""
    if not asked:
        return []
    if contender.nights is not None:
        return ["No kinds: they are compared within one session, not over nights."]
    return [*KINDS_LEGEND] if contender.kinds else ["No kinds: the suite does not tell transactions apart."]


def plans_legends(contender: ContenderComparison, asked: bool) -> list[str]:
    """Return a note why there is no plan although they were `asked` for."""
    return [why] if asked and (why := why_no_plans(contender)) else []


def kind_rows(kinds: Sequence[KindComparison]) -> Iterator[Row]:
    """Iterate over the rows of the table, one per step and kind."""
    for kind in kinds:
        yield [
            Cell(kind.step),
            Cell(kind.kind),
            Cell(amount(kind.judged.base)),
            Cell(amount(kind.judged.contender)),
            Cell(two_decimals(kind.judged.value)),
            Cell(bounds(kind.judged.interval, 2)),
            *_beside(kind.latencies[TAIL_LATENCY]),
            *_beside(kind.latencies[SECOND_LATENCY]),
            *_beside(kind.throughput),
            Cell(share(kind.retried[1])),
            Cell(share(kind.refused[1])),
            _verdict_of_kind(kind),
        ]


def _beside(judged: Judged) -> tuple[Cell, Cell]:
    mark = {MetricChange.MORE: "+", MetricChange.LESS: "-"}.get(judged.change, "")
    tone = TRAITS[verdict_of(judged.change, METRICS[judged.metric].better)].tone if mark else Tone.PLAIN
    return Cell(amount(judged.contender)), Cell(two_decimals(judged.value), tone, mark)


def _verdict_of_kind(kind: KindComparison) -> Cell:
    verdict = kind.judged.verdict
    return Cell(str(kind.judged.gap), Tone.OPEN) if verdict is None else Cell(verdict, TRAITS[verdict].tone)
