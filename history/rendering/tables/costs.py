"""The table of all costs of each step, and what is said of it."""

from collections.abc import Iterator, Mapping

from history.comparison.finding import Bearing
from history.comparison.findings.rare_events import few_errors
from history.comparison.findings.starts import SOURCE as STARTS
from history.comparison.result import ContenderComparison, StepComparison
from history.comparison.verdict import MetricChange, Tone
from history.metric_words import label_of, words_of
from history.numbers import amount, bounds
from history.rendering.table import Cell, Row, decimal, decimals, tone
from suites.metrics import METRICS, beside_verdict

COSTS_HEADS = ("step", "metric", "unit", "base", "contender", "ratio", "interval", "change")

POOLED = " together"
"""What follows the change of a metric that was judged over all steps together."""

TOGETHER = "More together, less together: judged over all steps, as each of them has too few values."


def _and_bursts(contender: ContenderComparison) -> str:
    reached = (step.left_out(contender.session.judged_by) for step in contender.paired)
    return " and those with autovacuum" if any(reached) else ""


def costs_legend(contender: ContenderComparison) -> list[str]:
    """Return the explanation of the table of costs, for metrics without a column in the first table."""
    shown = beside_verdict(contender.engines, contender.session.primary)
    explained = [(words_of(name), METRICS[name].better) for name in shown if not words_of(name).column]
    rounds = f"{contender.session.round_name}s" if contender.nights is None else "nights"
    return [
        f"Second table: means of the paired {rounds}, geometric where no value is zero and there is a ratio.",
        f"Ratios leave out {rounds} far from all others{_and_bursts(contender)}, which the means have.",
        *([TOGETHER] if _pooled(contender) else []),
        *(
            f"{words.label}: {words.legend}{', ' if better.words else ''}{better.words}."
            for words, better in explained
            if words.legend
        ),
        *_few_errors(contender),
    ]


def costs_rows(contender: ContenderComparison, step: StepComparison) -> Iterator[Row]:
    """Iterate over the rows of the table of costs: one per recorded metric beside the judged one.

    What is certain of all steps together is said in each of them, as one step has too few values to show it.
    """
    pooled = _pooled(contender)
    for ratio in step.beside:
        if ratio.pairs:
            together = pooled.get(ratio.metric)
            change = Cell(ratio.change, tone(ratio)) if together is None else together
            yield [
                Cell(step.step),
                Cell(label_of(ratio.metric)),
                Cell(METRICS[ratio.metric].unit),
                Cell(amount(ratio.base)),
                Cell(amount(ratio.contender)),
                Cell(decimal(ratio.metric, ratio.value)),
                Cell(bounds(ratio.interval, decimals(ratio.metric))),
                change,
            ]


def _pooled(contender: ContenderComparison) -> Mapping[str, Cell]:
    """Return the change of each metric that moved for certain over all steps together."""
    tones = {Bearing.WORSE: Tone.BAD, Bearing.BETTER: Tone.GOOD}
    cells = {}
    for finding in (finding for step in contender.steps for finding in step.findings):
        if finding.source == STARTS and finding.bearing in tones:
            is_more = (finding.bearing is Bearing.BETTER) is (METRICS[finding.metric].better.gain(1) > 0)
            change = MetricChange.MORE if is_more else MetricChange.LESS
            cells[finding.metric] = Cell(f"{change}{POOLED}", tones[finding.bearing])
    return cells


def _few_errors(contender: ContenderComparison) -> Iterator[str]:
    """Yield the errors of one version alone that are too few to be told as a finding."""
    for events in few_errors(contender.paired):
        yield f"{events.step}: {events.text(contender.session.round_name)}"
