"""How many rounds an open step still needs, if its rounds scatter as they did so far."""

import math

from history.comparison.result import StepComparison
from history.stats.estimators import MINIMUM_REPETITIONS


def rounds_needed(step: StepComparison) -> int:
    """Return after how many rounds in all the interval of an open step is narrow enough for a verdict.

    Half its width shrinks with the root of the rounds: to the distance of the estimate from 1 for a change,
    or from the threshold for none.
    """
    interval, judged = step.judged.interval, step.judged
    if interval is None or interval.low <= 0:
        return max(MINIMUM_REPETITIONS, judged.pairs + 1)
    size, edge = abs(math.log(interval.estimate)), math.log1p(judged.threshold)
    half = max(math.log(interval.high / interval.estimate), math.log(interval.estimate / interval.low))
    wanted = size if size >= edge else edge - size
    rounds = math.inf if wanted <= 0 else math.ceil(interval.n * (half / wanted) ** 2)
    return max(judged.pairs + 1, int(min(rounds, 1_000_000)))
