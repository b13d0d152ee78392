"""How steady the throughput of two versions is from second to second, without the trend of either.

Where there are rounds, their metrics are paired as throughput is. Of a long run without rounds the seconds
are divided into blocks of equal length, which are paired in their place (batch means: Schmeiser, Operations
Research 30, 1982).
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from history.comparison.finding import Bearing, Finding
from history.comparison.intervals import Intervals
from history.comparison.pairs import Pair, StepPairs
from history.comparison.rounds.onset import Seconds
from history.metric_words import label_of
from history.numbers import percents
from history.stats.estimators import MINIMUM_REPETITIONS, Interval, mean, median
from history.stats.noise_model import Noise
from history.stats.repeated_intervals import Design, sequential_interval
from suites.metrics import DETRENDED, METRICS, SECONDS, WORST_SECOND
from suites.turns.detrended import around_trend, trend

SOURCE = "variation"

FALSE_FINDINGS = 0.00025
"""How often a contender that equals the base may seem to vary more, or less, in any step: 0.1 % in a session
of a base and four of them."""

METRICS_JUDGED = (DETRENDED, WORST_SECOND)

MIN_ROUNDS = 5
"""The rounds or blocks below which nothing is concluded: in three, stalls may be on one side by chance."""

DEVIATION, DEVIATION_OF_SECONDS = 0.3, 1.0
"""The standard deviation of a log ratio of variation that is expected before any is seen, and what is added
to it over the root of the seconds of a round."""

WORST_DEVIATION = 1.0
"""That of a log ratio of worst seconds: one round has a stall, and the next has none."""

_DF, _CORRELATION = 10.0, 0.2
"""The degrees of freedom of both, and the correlation of neighbouring rounds, all chosen by simulation
(docs/decisions/0078-steadiness.md)."""

SMALLEST_CHANGE: Mapping[str, float] = {DETRENDED: 0.25, WORST_SECOND: 0.1}
"""The change, as a fraction, beyond which the whole interval of a metric lies."""

BLOCK_SECONDS, MIN_BLOCKS, MAX_BLOCKS = 30, 10, 30
"""The least length of a block of a long run, and how many there are."""

STALLED = 0.5
"""The share of its median below which a second of a long run is stalled."""

MIN_STALLED = 3
"""The stalled seconds from which on a run is told to have stalled."""

MIN_STALLED_CHANGE = 0.05
"""The change of throughput, as a fraction, from which on it is told what stalled seconds make of it."""


def steadiness(intervals: Intervals, chosen: Collection[str], seconds: Seconds) -> Iterator[Finding]:
    """Yield where a version certainly varies more or less, and where a change is one of stalls.

    `chosen` are the steps of interest, of those by which `intervals` are. `seconds` is called for steps with
    too few rounds for an interval.
    """
    steps = [step for step in intervals.steps if step.step in chosen]
    blocks: dict[str, StepPairs] = {}
    for step in steps:
        if 0 < len(step.pairs) < MINIMUM_REPETITIONS:
            rounds = seconds(step.step)
            yield from _stalled(step.step, rounds)
            blocks[step.step] = in_blocks(step.step, rounds)
    for step in steps:
        pairs = blocks.get(step.step, step)
        found = (_moved(pairs, metric, len(steps)) for metric in METRICS_JUDGED)
        yield from (finding for finding in found if finding is not None)


def in_blocks(step: str, rounds: Sequence[tuple[Sequence[float], Sequence[float]]]) -> StepPairs:
    """Return the metrics of blocks of the seconds of long rounds as pairs; none where rounds are too short.

    The trend is that of the whole round.
    """
    pairs: list[Pair] = []
    for sides in rounds:
        seconds = min(map(len, sides))
        blocks = min(MAX_BLOCKS, seconds // BLOCK_SECONDS)
        if blocks < MIN_BLOCKS:
            continue
        levels = [trend(side[:seconds]) for side in sides]
        ends = [seconds * block // blocks for block in range(blocks + 1)]
        for begin, end in pairwise(ends):
            base, contender = (
                around_trend(side[begin:end], level[begin:end])
                for side, level in zip(sides, levels, strict=True)
            )
            length = {SECONDS: float(end - begin)}
            pairs.append(Pair(len(pairs) + 1, {**base, **length}, {**contender, **length}))
    return StepPairs(step, tuple(pairs), ())


def interval_of(step: StepPairs, metric: str, sharing: int) -> Interval | None:
    """Return the interval of a metric, which shares the error with so many steps; None with too few pairs."""
    logs = step.log_ratios(metric)
    if not logs or len(logs) < MIN_ROUNDS:
        return None
    confidence = 1 - FALSE_FINDINGS / len(METRICS_JUDGED)
    return sequential_interval(logs, Design.fixed(len(logs), sharing, confidence), _expected(step, metric))


def _expected(step: StepPairs, metric: str) -> Noise:
    """Return how far the log ratios of a metric of two equal builds are expected to scatter."""
    if metric == WORST_SECOND:
        return Noise(WORST_DEVIATION, _DF, _CORRELATION)
    seconds = max(1.0, median(step.values(SECONDS)[0] or [1.0]))
    return Noise(DEVIATION + DEVIATION_OF_SECONDS / math.sqrt(seconds), _DF, _CORRELATION)


def _moved(step: StepPairs, metric: str, sharing: int) -> Finding | None:
    """Return the finding of a metric whose whole interval is beyond its smallest change."""
    interval, limit = interval_of(step, metric, sharing), 1 + SMALLEST_CHANGE[metric]
    if interval is None or (1 / limit <= interval.high and interval.low <= limit):
        return None
    is_worse = METRICS[metric].better.gain(interval.low - 1) < 0
    base, contender = map(median, step.values(metric))
    text = (
        f"{label_of(metric)} {percents(interval.estimate)} % ({percents(interval.low)} to "
        f"{percents(interval.high)}), {base:.2g} to {contender:.2g}"
    )
    return Finding(SOURCE, step.step, metric, Bearing.WORSE if is_worse else Bearing.BETTER, text)


def _stalled(step: str, rounds: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Iterator[Finding]:
    """Yield that a change of throughput is mostly due to seconds in which a version stalled."""
    sides = [[rate for pair in rounds for rate in pair[place]] for place in (0, 1)]
    if not all(map(any, sides)):
        return
    going = [[rate for rate in side if rate >= STALLED * median(side)] for side in sides]
    stalled = [len(side) - len(kept) for side, kept in zip(sides, going, strict=True)]
    change, without = (math.log(mean(side[1]) / mean(side[0])) for side in (sides, going))
    if max(stalled) < MIN_STALLED or abs(change) < math.log1p(MIN_STALLED_CHANGE):
        return
    if abs(without) > abs(change) / 2:
        return
    text = (
        f"throughput {percents(math.exp(change))} %, and {percents(math.exp(without))} % without seconds "
        f"below half of the median: {stalled[1]} of {len(sides[1])}, base {stalled[0]} of {len(sides[0])}"
    )
    yield Finding(SOURCE, step, DETRENDED, Bearing.TOLD, text)
