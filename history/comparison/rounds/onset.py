"""Changes that begin within a round: throughput in its last third against its first, in both versions."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from history.comparison.finding import Bearing, Finding
from history.comparison.intervals import Intervals
from history.comparison.pairs import Pair, StepPairs
from history.numbers import percents
from history.stats.estimators import Interval, geometric_mean, mean
from history.stats.noise_model import Noise
from history.stats.repeated_intervals import sequential_interval
from suites.metrics import FIRST_THIRD, LAST_THIRD, SECONDS, VARIATION


def onset_second(logs: Sequence[float]) -> int | None:
    """Return the second, from 2, in which the log ratios of a round's seconds, in order, take their later
    level.

    None for fewer than four seconds, for seconds that are all alike, and where they rise or fall all the
    time.
    """
    n = len(logs)
    if n < 4:
        return None
    middle = mean(logs)
    sums = list(accumulate(log - middle for log in logs))
    # The squares that a step explains, for each number of seconds before it.
    explained = [sums[before - 1] ** 2 * n / (before * (n - before)) for before in range(1, n)]
    most = max(explained)
    half = (n - 1) / 2
    slope = math.fsum([(place - half) * log for place, log in enumerate(logs)])
    by_line = slope**2 / (n * (n * n - 1) / 12)
    return None if most <= by_line else explained.index(most) + 2


SOURCE = "onset"

FALSE_FINDINGS = 0.00025
"""How often a contender that equals the base may seem to change within the rounds of any step, either way:
0.1 % in a session of a base and four of them."""

SMALLEST_CHANGE = 0.02
"""The change of the ratio within a round, as a fraction, beyond which its whole interval lies."""

_CHANGE = "last third over first"

_EXPECTED_DF = 4.0
"""The degrees of freedom of what seconds say of thirds. They are few because seconds that follow each other
are alike: with neighbours correlated by 0.8, equal builds still keep FALSE_FINDINGS."""

Seconds = Callable[[str], Sequence[tuple[Sequence[float], Sequence[float]]]]
"""Returns for a step the throughput of base and contender in each second of each round, as far as it is
known."""


@dataclass(frozen=True)
class Onset:
    """A change of the ratio of contender to base that is certain to have begun within the rounds of a
    step."""

    step: str
    first: float
    """The ratio in the first third of the rounds' seconds."""

    last: Interval
    """The ratio in the last third."""

    falls: bool
    """Whether the ratio fell."""

    when: str
    """The part of a round in which the ratio has its later level: `from second 20 on`."""

    @property
    def is_worse(self) -> bool:
        """Whether the contender is certainly slower than the base in the end, and was not as slow before."""
        return self.falls and self.last.high < 1

    @property
    def text(self) -> str:
        """The change: `slower from second 20 on: last third -18.0 % (-24.1 to -12.2), first -0.3 %`."""
        how = "slower" if self.falls else "faster"
        last, low, high = map(percents, (self.last.estimate, self.last.low, self.last.high))
        return f"{how} {self.when}: last third {last} % ({low} to {high}), first {percents(self.first)} %"

    @property
    def finding(self) -> Finding:
        """The change as a finding."""
        bearing = Bearing.WORSE if self.is_worse else Bearing.TOLD
        return Finding(SOURCE, self.step, LAST_THIRD, bearing, self.text)


def onsets(intervals: Intervals, chosen: Collection[str], seconds: Seconds) -> tuple[Onset, ...]:
    """Return the changes within the rounds of the chosen steps, of those by which `intervals` are.

    `seconds` is called for these alone. A round shorter than three seconds has no thirds.
    """
    found = []
    for step in map(_thirds, intervals.steps):
        change = _interval(step, _CHANGE, intervals, 1 - FALSE_FINDINGS) if step.step in chosen else None
        if change is None or change.objections:
            continue
        if change.high < 1 - SMALLEST_CHANGE or change.low > 1 + SMALLEST_CHANGE:
            first = geometric_mean(_ratios(step, FIRST_THIRD))
            last = _interval(step, LAST_THIRD, intervals, intervals.confidence)
            if first is not None and last is not None:
                when = _when(seconds(step.step), intervals.round_name)
                found.append(Onset(step.step, first, last, change.estimate < 1, when))
    return tuple(found)


def _thirds(step: StepPairs) -> StepPairs:
    """Return a step with the thirds of its rounds, and their quotient, as values."""
    pairs = tuple(
        Pair(pair.number, _with_change(pair.base), _with_change(pair.contender)) for pair in step.pairs
    )
    return StepPairs(step.step, pairs, ())


def _with_change(values: Mapping[str, float]) -> Mapping[str, float]:
    first, last = values.get(FIRST_THIRD, 0.0), values.get(LAST_THIRD, 0.0)
    if not (first > 0 and last > 0):
        return {}
    return {**values, _CHANGE: last / first}


def _interval(step: StepPairs, metric: str, intervals: Intervals, confidence: float) -> Interval | None:
    """Return the interval of a metric of thirds, whose noise is expected to be what seconds show."""
    logs = step.log_ratios(metric)
    if not logs or len(logs) < intervals.needed:
        return None
    design = replace(intervals.design(FIRST_THIRD, len(logs)), confidence=confidence)
    deviation = _expected(step, 2 if metric == _CHANGE else 1)
    return sequential_interval(logs, design, Noise(deviation, _EXPECTED_DF) if deviation > 0 else None)


def _expected(step: StepPairs, thirds: int) -> float:
    """Return the standard deviation of the log ratio of so many thirds by the variation from second to
    second."""
    variances = [
        thirds
        * (pair.base[VARIATION] ** 2 + pair.contender[VARIATION] ** 2)
        / max(1.0, pair.base[SECONDS] // 3)
        for pair in step.pairs
        if {VARIATION, SECONDS} <= pair.base.keys() and VARIATION in pair.contender
    ]
    return math.sqrt(mean(variances)) if variances else 0.0


def _ratios(step: StepPairs, metric: str) -> list[float]:
    return [new / old for old, new in zip(*step.values(metric), strict=True)]


def _when(rounds: Sequence[tuple[Sequence[float], Sequence[float]]], round_name: str) -> str:
    """Return when the ratio changed within a round, from the seconds that all rounds have."""
    length = min((len(side) for sides in rounds for side in sides), default=0)
    logs = [
        mean([math.log(contender[second] / base[second]) for base, contender in rounds])
        for second in range(length)
        if all(side[second] > 0 for sides in rounds for side in sides)
    ]
    if not length or len(logs) < length:
        return "in the last third"
    second = onset_second(logs)
    return f"the longer a {round_name} lasts" if second is None else f"from second {second} on"
