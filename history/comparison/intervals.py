"""The intervals of a session's ratios, by the same rule for verdicts and costs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from build.version import Engine
from history.comparison.exact import ExactRule, exact_interval, exact_rule, is_exact
from history.comparison.pairs import StepPairs
from history.comparison.priors import priors_of
from history.stats.estimators import MINIMUM_REPETITIONS, Interval
from history.stats.layouts import layout_interval, layout_of
from history.stats.noise_model import Noise
from history.stats.repeated_intervals import Design, sequential_interval, smallest_visible
from history.store.records import Session
from suites.metrics import Better, Metric

Calibrated = Callable[[str], Mapping[str, Noise]]
"""Returns the calibrated noise of a metric by step."""


def smallest_worsening(metric: Metric, design: Design, noise: Noise, rounds: int, threshold: float) -> float:
    """Return the smallest worsening of a metric, as a fraction, that rounds are likely to flag."""
    less = smallest_visible(design, noise, rounds, threshold)
    return less if metric.better is Better.HIGHER else less / (1 - less)


@dataclass
class Intervals:
    """The intervals of the ratios of a base and a contender, from the rounds of one session or from nights.

    All intervals of a metric hold together with `confidence` (a fraction), over the steps and, if the session
    stopped by its verdicts, over all looks.
    """

    steps: Sequence[StepPairs]
    """All steps that share the confidence and pool their noise."""
    confidence: float
    looks: tuple[int, int] | None
    """The rounds of the first and the last look; None when the number of rounds was fixed in advance."""
    calibrated: Calibrated = field(default=lambda metric: {})
    counted: str = "paired round"
    """The noun for a pair in messages; over nights it is `night`."""
    exact: Collection[Engine] | None = None
    """The engines of the versions, which decide the rule for counts within one session; None over nights,
    where counts are values like others."""
    layouts: int = 0
    """The layouts on each side, which rounds took in turns; 0 where all rounds had the same build."""
    in_turn: bool = False
    """Whether the steps were measured one after the other, so that those that followed a step have no part in
    the interval by which it was decided."""
    _priors: dict[tuple[str, int | None, str], Mapping[str, Noise | None]] = field(default_factory=dict)
    """By metric, by the last round that counts, and by the last step that counts: None, or empty, for all."""
    _sharing: dict[str, int] = field(default_factory=dict)
    """The number of steps that share the error, cached by metric because it depends on all steps."""

    @property
    def round_name(self) -> str:
        """The noun for one of a pair in messages."""
        return self.counted.split()[-1]

    @property
    def needed(self) -> int:
        """The pairs that an interval needs at least: those of the first look, or MINIMUM_REPETITIONS."""
        return MINIMUM_REPETITIONS if self.looks is None else self.looks[0]

    def needed_for(self, metric: str) -> int:
        """The pairs that an interval of a metric needs at least."""
        rule = self.rule_of(metric)
        return self.needed if rule is None else rule.least

    def rule_of(self, metric: str) -> ExactRule | None:
        """The rule of a metric that is counted for fixed work; None of others, and over nights."""
        return None if self.exact is None or not is_exact(metric) else exact_rule(metric, self.exact)

    def observed(self, metric: str) -> str:
        """What a pair of a metric is: `round`, `pass` or `night`."""
        return "pass" if self.rule_of(metric) is not None else self.counted.removeprefix("paired ")

    def of(self, step: StepPairs, metric: str) -> Interval | None:
        """Return the interval of a step's metric; None with too few pairs, and without a ratio."""
        if (rule := self.rule_of(metric)) is not None:
            return exact_interval(*step.values(metric), rule)
        logs = step.log_ratios(metric)
        if logs is None or len(logs) < self.needed:
            return None
        design, prior = self.design(metric, len(logs)), self._prior(step, metric)
        if self.layouts:
            return layout_interval(logs, self._layouts_of(step, metric), design, prior)
        return sequential_interval(logs, design, prior, step.places_left_out(metric))

    def layouts_met(self, step: StepPairs, metric: str) -> int:
        """Return of how many layouts a step has rounds."""
        return len({*self._layouts_of(step, metric)})

    def _layouts_of(self, step: StepPairs, metric: str) -> list[int]:
        return [layout_of(number, self.layouts) for number in step.rounds(metric)]

    def design(self, metric: str, rounds: int) -> Design:
        """Return the sequential design for a metric of a step with this number of rounds."""
        if self.looks is None:
            return Design.fixed(rounds, self._sharers(metric), self.confidence)
        # The decision when to stop counts every step of the session, even if it has no interval yet.
        first, last = self.looks[0], max(self.looks[1], rounds)
        return Design(steps=max(1, len(self.steps)), least=first, cap=last, confidence=self.confidence)

    def smallest_visible(
        self, step: StepPairs, metric: Metric, threshold: float, noise: Noise | None
    ) -> float | None:
        """Return the smallest worsening of a metric, as a fraction, that a step is likely to flag.

        It is for the rounds of the last look, or for the measured rounds if their number was fixed. `noise`
        is the step's noise on this machine. Returns None without noise, for a metric without a better
        direction, with too few pairs, and over layouts, of which calibrations say nothing.
        """
        rounds = len(step.values(metric.name)[0]) if self.looks is None else self.looks[1]
        has_none = metric.better is Better.NEITHER or rounds < self.needed or is_exact(metric.name)
        if noise is None or has_none or self.layouts:
            return None
        return smallest_worsening(metric, self.design(metric.name, rounds), noise, rounds, threshold)

    def _sharers(self, metric: str) -> int:
        """Return the number of steps with enough rounds for an interval, when that of rounds was fixed."""
        if metric not in self._sharing:
            counts = [len(step.log_ratios(metric) or ()) for step in self.steps]
            self._sharing[metric] = sum(count >= MINIMUM_REPETITIONS for count in counts)
        return self._sharing[metric]

    def _prior(self, step: StepPairs, metric: str) -> Noise | None:
        """What the other steps say of a step's noise.

        Where a step stopped because it was decided, only rounds that had been run by then count. Rounds that
        other steps were given later would change the interval of a step that gets no more rounds, and with
        it the verdict by which it was stopped.
        """
        until = None if self.looks is None else step.last_round(metric)
        last = step.step if self.in_turn and until is not None else ""
        key = (metric, until, last)
        if key not in self._priors:
            self._priors[key] = self._pooled(metric, until, last)
        return self._priors[key].get(step.step)

    def _pooled(self, metric: str, until: int | None, last: str) -> Mapping[str, Noise | None]:
        names = [step.step for step in self.steps]
        counting = self.steps[: names.index(last) + 1] if last else self.steps
        usable = {step.step: logs for step in counting if (logs := step.even_logs(metric, until))}
        return priors_of(usable, self.calibrated(metric))


def looks_of(session: Session) -> tuple[int, int] | None:
    """Return the rounds of a session's first and last look; None when its number of rounds was fixed."""
    plan = session.options.get("rounds")
    if not isinstance(plan, dict) or not plan.get("until_decided"):
        return None
    return max(MINIMUM_REPETITIONS, int(plan["least"])), int(plan["cap"])
