"""Which interval a ratio of a session gets: one rule for verdicts and costs alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from history.comparison.pairs import StepPairs
from history.stats.estimators import MINIMUM_REPETITIONS, Interval
from history.stats.repeated_intervals import (
    Design,
    Noise,
    pooled_noise,
    sequential_interval,
    smallest_visible,
)
from history.store.records import Session
from suites.metrics import Better, Metric

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
    counted: str = "paired round"
    """What gives one ratio, for people: over nights it is a night."""
    _priors: dict[tuple[str, int | None], Mapping[str, Noise | None]] = field(default_factory=dict)
    """By metric and by the last round that counts; None for all rounds."""
    _sharing: dict[str, int] = field(default_factory=dict)
    """By metric: each interval asks for it, and it takes a look at all steps."""

    @property
    def needed(self) -> int:
        """Pairs below which there is no interval: the first look, or MINIMUM_REPETITIONS."""
        return MINIMUM_REPETITIONS if self.looks is None else self.looks[0]

    def of(self, step: StepPairs, metric: str) -> Interval | None:
        """The interval of a metric of a step; None with fewer pairs than needed, and without a ratio."""
        logs = step.log_ratios(metric)
        if logs is None or len(logs) < self.needed:
            return None
        return sequential_interval(logs, self.design(metric, len(logs)), self._prior(step, metric))

    def design(self, metric: str, rounds: int) -> Design:
        """The looks at a metric of a step that has so many rounds, and who shares the error."""
        if self.looks is None:
            first = last = rounds
            sharing = self._sharers(metric)
        else:
            # Whoever decides when to stop counts every step of the session, judged yet or not.
            first, last, sharing = self.looks[0], max(self.looks[1], rounds), len(self.steps)
        return Design(steps=max(1, sharing), least=first, cap=last, confidence=self.confidence)

    def smallest_visible(
        self, step: StepPairs, metric: Metric, threshold: float, noise: Noise | None
    ) -> float | None:
        """The smallest worsening of a metric, as a fraction, that all rounds of a step are likely to flag.

        All rounds are the last look's, or those that there are. `noise` is of the step on this machine;
        without it, without a better direction and with too few pairs nothing is known.
        """
        rounds = len(step.values(metric.name)[0]) if self.looks is None else self.looks[1]
        if noise is None or metric.better is Better.NEITHER or rounds < self.needed:
            return None
        less = smallest_visible(self.design(metric.name, rounds), noise, rounds, threshold)
        return less if metric.better is Better.HIGHER else less / (1 - less)

    def _sharers(self, metric: str) -> int:
        """Steps with enough rounds for an interval, where the number of rounds was fixed."""
        if metric not in self._sharing:
            counts = [len(each.log_ratios(metric) or ()) for each in self.steps]
            self._sharing[metric] = sum(count >= MINIMUM_REPETITIONS for count in counts)
        return self._sharing[metric]

    def _prior(self, step: StepPairs, metric: str) -> Noise | None:
        """What the other steps say of a step's noise.

        Where a step stopped because it was decided, only rounds that had been run by then count. Rounds that
        other steps were given later would change the interval of a step that gets no more rounds, and with
        it the verdict by which it was stopped.
        """
        until = None if self.looks is None else step.last_round
        if (metric, until) not in self._priors:
            self._priors[metric, until] = self._pooled(metric, until)
        return self._priors[metric, until].get(step.step)

    def _pooled(self, metric: str, until: int | None) -> Mapping[str, Noise | None]:
        usable = {each.step: logs for each in self.steps if (logs := each.log_ratios(metric, until))}
        known = self.calibrated(metric)
        noise = pooled_noise(list(usable.values()), [known.get(step) for step in usable])
        return dict(zip(usable, noise, strict=True))


def looks_of(session: Session) -> tuple[int, int] | None:
    """When a session looked at its verdicts to decide whether to go on; None when it did not."""
    plan = session.options.get("rounds")
    if not isinstance(plan, dict) or not plan.get("until_decided"):
        return None
    return max(MINIMUM_REPETITIONS, int(plan["least"])), int(plan["cap"])
