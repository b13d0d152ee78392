"""Which interval a ratio of a session gets: one rule for verdicts and costs alike."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from history.pairing import StepPairs
from history.records import Session
from history.sequential import Design, Noise, pooled_noise, sequential_interval
from history.statistics import MINIMUM_REPETITIONS, Interval

Calibrated = Callable[[str], Mapping[str, Noise]]
"""The noise of each step by the machine's calibration, for a metric."""


@dataclass
class Intervals:
    """How the rounds of one session, base and contender, become intervals.

    All intervals of one metric hold together with `confidence` (a fraction), over the steps and, where the
    rounds stopped when verdicts stood, over all looks as well.
    """

    steps: Sequence[StepPairs]
    """All steps that share the confidence, and each other's noise."""
    confidence: float
    looks: tuple[int, int] | None
    """Rounds at the first and the last look; None when the number of rounds was fixed beforehand."""
    calibrated: Calibrated = field(default=lambda metric: {})
    _priors: dict[str, Mapping[str, Noise | None]] = field(default_factory=dict)

    def of(self, step: StepPairs, metric: str) -> Interval | None:
        """The interval of a metric of a step; None below MINIMUM_REPETITIONS pairs, and without a ratio."""
        logs = log_ratios(step, metric)
        if logs is None or len(logs) < MINIMUM_REPETITIONS:
            return None
        return sequential_interval(logs, self.design(metric, len(logs)), self._prior(step.step, metric))

    def design(self, metric: str, rounds: int) -> Design:
        """The looks at a metric of a step that has so many rounds, and who shares the error."""
        if self.looks is None:
            first = last = rounds
            sharing = sum(len(log_ratios(each, metric) or ()) >= MINIMUM_REPETITIONS for each in self.steps)
        else:
            # Whoever decides when to stop counts every step of the session, judged yet or not.
            first, last, sharing = self.looks[0], max(self.looks[1], rounds), len(self.steps)
        return Design(steps=max(1, sharing), least=first, cap=last, confidence=self.confidence)

    def _prior(self, step: str, metric: str) -> Noise | None:
        if metric not in self._priors:
            self._priors[metric] = self._pooled(metric)
        return self._priors[metric].get(step)

    def _pooled(self, metric: str) -> Mapping[str, Noise | None]:
        usable = {each.step: logs for each in self.steps if (logs := log_ratios(each, metric))}
        known = self.calibrated(metric)
        noise = pooled_noise(list(usable.values()), [known.get(step) for step in usable])
        return dict(zip(usable, noise, strict=True))


def log_ratios(step: StepPairs, metric: str) -> list[float] | None:
    """ln(contender / base) of each pair in order; None when some value has no logarithm."""
    base, contender = step.values(metric)
    if any(min(pair) <= 0 for pair in zip(base, contender, strict=True)):
        return None
    return [math.log(new / old) for old, new in zip(base, contender, strict=True)]


def looks_of(session: Session) -> tuple[int, int] | None:
    """When a session looked at its verdicts to decide whether to go on; None when it did not."""
    plan = session.options.get("rounds")
    if not isinstance(plan, dict) or not plan.get("until_decided"):
        return None
    return max(MINIMUM_REPETITIONS, int(plan["least"])), int(plan["cap"])
