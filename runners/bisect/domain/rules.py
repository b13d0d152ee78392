"""The input and the output of a search for a commit: rules, observations, measurements, verdicts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from suites.metrics import TIMED

Direction = Literal["worse", "better", "either"]

Kind = Literal[
    "culprit",
    "range",
    "none",
    "two-steps",
    "several-steps",
    "slope",
    "varying",
    "moving",
    "undecided",
    "swapped",
]


@dataclass(frozen=True)
class Observation:
    """One round at one position, interleaved with rounds of good on the same machine.

    Raises ValueError for a log ratio that is not finite.
    """

    position: int
    """0 is good, n is bad; the positions between them are the candidate commits in order."""

    log_ratio: float
    """ln(metric of that commit / metric of good) in this round, as measured: a loss of QPS is negative."""

    counted: bool = False
    """Whether it is of a counted pass, and the metric that of the counts that guide the search."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.log_ratio):
            raise ValueError(f"a log ratio must be finite, got {self.log_ratio}")


@dataclass(frozen=True)
class Rules:
    """What is searched for, and how certain a verdict has to be.

    Raises ValueError for rules that no search can follow.
    """

    direction: Direction = "worse"
    """The direction in which bad is supposed to differ from good."""

    higher_is_better: bool = True
    """Whether more of the metric is better; with `direction` this gives the sign of the log ratios."""

    confidence: float = 0.95
    """The probability that a verdict is right. Half of the error is reserved for what the model omits: see
    `stop`."""

    threshold: float = 0.02
    """The smallest change that is searched for, as a fraction; smaller ones count as no change."""

    wobble: float = TIMED.wobble
    """The standard deviation of the lasting difference between equivalent commits, caused by code layout."""

    least_scale: float = TIMED.least
    """The smallest scale that the noise of a round can have, as a log ratio."""

    typical_scale: float = TIMED.typical
    scale_spread: float = TIMED.spread
    """The prior of the scale of the noise is lognormal around `typical_scale`."""

    least_rounds: int = TIMED.rounds
    """The rounds of bad before the first decision, and of a position before it may widen the grid."""

    most_rounds: int = 1500
    """The number of rounds of all positions after which the search gives up: `undecided`."""

    most_confirming: int = 300
    """The number of rounds of bad after which the search gives up on whether bad differs at all."""

    def __post_init__(self) -> None:
        if not 0.5 < self.confidence < 1:
            raise ValueError(f"confidence must lie between 0.5 and 1, got {self.confidence}")
        if not (0 < self.threshold < 0.5 and 0 < self.wobble <= self.threshold / 2):
            raise ValueError(f"0 < threshold < 0.5 and 0 < wobble <= threshold / 2 must hold: {self}")
        if not (
            0 < self.least_scale <= self.typical_scale and self.scale_spread > 0 and self.least_rounds > 0
        ):
            raise ValueError(
                f"0 < least_scale <= typical_scale, and a spread and rounds above 0 must hold: {self}"
            )
        if not 1 <= self.most_confirming <= self.most_rounds:
            raise ValueError(f"1 <= most_confirming <= most_rounds must hold: {self}")

    @property
    def sign(self) -> int:
        """The sign of the log ratio that is searched for: -1, 1, or 0 for either."""
        if self.direction == "either":
            return 0
        return -1 if (self.direction == "worse") == self.higher_is_better else 1

    @property
    def stop(self) -> float:
        """The posterior probability at which the search stops with a verdict."""
        return 1 - (1 - self.confidence) / 2


@dataclass(frozen=True)
class Measure:
    """The next measurement: interleaved rounds of good and these positions."""

    positions: tuple[int, ...]
    """Every round has good and all of these; never empty, never 0."""

    rounds: int = 1
    """The number of rounds worth measuring before asking again; asking after every round is as good but
    slower."""

    counted: bool = False
    """Whether the rounds are counted passes, which guide the search."""


@dataclass(frozen=True)
class LevelStep:
    """A change of level between two neighbouring measurable positions."""

    low: int
    """The last position before the change; of a single commit its first parent."""

    high: int
    """The first measurable position with the change: the culprit when it is low + 1."""

    confidence: float
    """The posterior probability that the change lies between these positions."""

    size: float
    """The ratio of the level after the change to the level before it; posterior median."""

    interval: tuple[float, float]
    """The interval of `size`, with the confidence of the rules."""

    among: tuple[int, ...] = ()
    """The positions of which one has the change, ascending, if candidates are no single line."""

    @property
    def suspects(self) -> Sequence[int]:
        """The positions of which one has the change, ascending."""
        return self.among or range(self.low + 1, self.high + 1)


@dataclass(frozen=True)
class WholeDifference:
    """How steps make up the whole difference between good and bad: ratios multiply."""

    size: float
    """The ratio of bad to good, by the rounds of bad; posterior median."""

    interval: tuple[float, float]
    """The interval of `size`, with the confidence of the rules."""

    explained: float
    """The product of the steps; 1 without any."""

    explained_interval: tuple[float, float]
    """The interval of `explained`, with the confidence of the rules."""

    unexplained: float
    """`size` divided by `explained`."""

    unexplained_interval: tuple[float, float]
    """The interval of `unexplained`, with the confidence of the rules."""

    parts: tuple[LevelStep, ...] = ()
    """The parts of the range whose ends differ, and of which no step is named."""

    is_searched: bool = True
    """Whether all of the range was searched; False while the search goes on."""


@dataclass(frozen=True)
class SearchVerdict:
    """The result of a search. Ratios are of the raw metric: 0.9 is a tenth less than good."""

    kind: Kind
    """`culprit`: one commit. `range`: one step, in one of several commits of which all but the last do not
    compile. `none`: bad does not differ. `two-steps`, `several-steps`: see `steps`. `slope`: many small
    steps. `varying`: levels vary all along, so that none of these fits. `moving`: ratios
    move while the search goes on, as no commit makes them. `undecided`: the rounds are used up, or no
    further ones help; low to high is the likeliest range. `swapped`: bad differs in the other direction.
    """

    low: int
    """The last good position; 0 for verdicts without a position."""

    high: int
    """The culprit, or the end of the range; n for verdicts without a position."""

    confidence: float
    """The posterior probability of the verdict; for `undecided` that of the range."""

    size: float
    """The ratio of bad to good, or for `culprit` and `range` the ratio of the change; posterior median."""

    interval: tuple[float, float]
    """The interval of `size`, with the confidence of the rules."""

    smallest_seen: float
    """For `none`: the smallest difference, as a fraction, that these rounds rule out: the end of the interval
    of the ratio of bad in the direction that was asked for."""

    rounds: int
    """The number of observations that the verdict is based on."""

    steps: tuple[LevelStep, ...] = field(default=())
    """The steps that make bad differ from good, in order: one for `culprit` and `range`."""

    rest: LevelStep | None = None
    """For `culprit` and `range`: a much smaller step elsewhere, if there seems to be one, with its likely
    range."""

    undone: tuple[LevelStep, ...] = field(default=())
    """The steps that cancel, in order, such as a dip and its fix. They are not located further:
    low to high are the measured positions around them."""

    among: tuple[int, ...] = ()
    """For `culprit`, `range` and `undecided`, if candidates are no single line: the positions of which one is
    it, ascending."""

    whole: WholeDifference | None = None
    """How `steps` make up the whole difference, when the search went on after its first answer."""

    @property
    def suspects(self) -> Sequence[int]:
        """The positions of which one is it, ascending, for a verdict with positions."""
        return self.among or range(self.low + 1, self.high + 1)

    @property
    def blamed(self) -> Sequence[int]:
        """The positions that it names: one, those of a range, one for each of several steps, or none."""
        if self.kind in ("two-steps", "several-steps"):
            return [step.suspects[-1] for step in self.steps]
        return self.suspects if self.kind in ("culprit", "range") else ()

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as the history stores it."""
        return asdict(self, dict_factory=_without_empty)


def _without_empty(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dictionary; what most verdicts do not have is left out, as in older histories."""
    return {name: value for name, value in pairs if name not in ("among", "whole") or value}
