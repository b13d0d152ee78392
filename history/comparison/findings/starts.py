"""Starts, connects and recoveries: what a step has no part in is judged over all steps together."""

from collections.abc import Iterator, Mapping, Sequence

from history.comparison.finding import Bearing, Finding
from history.comparison.findings.moved_metrics import ratio_text
from history.comparison.result import ContenderComparison
from history.stats.estimators import MINIMUM_REPETITIONS, Interval, mean
from history.stats.noise_model import Noise
from history.stats.repeated_intervals import Design, sequential_interval
from suites.metrics import CONNECT, METRICS, RECOVERY, START

SOURCE = "starts"

FALSE_FINDINGS = 0.0005
"""How often a contender that equals the base may have a finding, good or bad.

For the worse it is 0.1 % in a session of a base and four of them."""

USUAL: Mapping[str, Noise] = {START: Noise(0.15, 4), CONNECT: Noise(0.05, 3), RECOVERY: Noise(0.25, 4)}
"""The scatter that is expected of equal builds before any is seen, by metric.

Three values hardly show their own. Where they scatter more than this, what is seen counts alone. A recovery
takes a second or less, of which each step has one, while another version works (docs/verdicts.md)."""


def pooled_interval(metric: str, logs: Sequence[float]) -> Interval | None:
    """Return the interval of the ratio of one of these metrics, from the log ratios of all steps and rounds.

    Steps follow each other. None with too few of them.
    """
    if len(logs) < MINIMUM_REPETITIONS:
        return None
    design = Design.fixed(len(logs), 1, 1 - FALSE_FINDINGS / len(USUAL))
    return sequential_interval(logs, design, USUAL[metric])


def moved_starts(contender: ContenderComparison) -> Iterator[Finding]:
    """Yield a finding for each of these metrics that certainly moved by more than its threshold.

    It is of all steps that have the metric, together.
    """
    for metric in USUAL:
        by_step = {step.step: logs for step in contender.paired if (logs := step.log_ratios(metric))}
        interval = pooled_interval(metric, [log for logs in by_step.values() for log in logs])
        if interval is None:
            continue
        usual = mean([value for step in contender.paired for value in step.values(metric)[0]])
        limit = 1 + METRICS[metric].threshold_at(usual, METRICS[metric].threshold(0.0))
        if 1 / limit <= interval.high and interval.low <= limit:
            continue
        bearing = Bearing.WORSE if interval.low > 1 else Bearing.BETTER
        text = ratio_text(metric, interval.estimate, interval)
        yield Finding(SOURCE, next(iter(by_step)), metric, bearing, text, len(by_step))
