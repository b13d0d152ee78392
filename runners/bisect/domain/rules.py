"""What goes into a search for a commit, and what comes out of it."""

import math
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["worse", "better", "either"]

Kind = Literal["culprit", "range", "none", "two-steps", "slope", "undecided", "swapped"]


@dataclass(frozen=True)
class Observation:
    """One round at one position, interleaved with good on the same machine.

    Raises ValueError for a log ratio that is not finite.
    """

    position: int
    """0 is good, n is bad, those between are the candidate commits in order."""

    log_ratio: float
    """ln(metric of that commit / metric of good) in this round, as measured: a loss of QPS is negative."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.log_ratio):
            raise ValueError(f"a log ratio is a finite number, unlike {self.log_ratio}")


@dataclass(frozen=True)
class Rules:
    """What is searched for, and how sure a verdict has to be.

    Raises ValueError for rules that no search can follow.
    """

    direction: Direction = "worse"
    """Which way bad is supposed to differ from good."""

    higher_is_better: bool = True
    """Of the metric: with `direction` it says whether log ratios are to be negative or positive."""

    confidence: float = 0.95
    """That a verdict is right. Half of the error goes to what the model does not know: see `stop`."""

    threshold: float = 0.02
    """The smallest change that matters, as a fraction; smaller ones count as none."""

    wobble: float = 0.003
    """Standard deviation by which commits that do the same differ for good, by the layout of their code."""

    most_rounds: int = 1500
    """Rounds of all positions after which the search gives up: `undecided`."""

    most_confirming: int = 300
    """Rounds of bad after which it is undecided whether bad differs at all."""

    def __post_init__(self) -> None:
        if not 0.5 < self.confidence < 1:
            raise ValueError(f"a confidence lies between 0.5 and 1, unlike {self.confidence}")
        if not (0 < self.threshold < 0.5 and 0 < self.wobble <= self.threshold / 2):
            raise ValueError(f"0 < threshold < 0.5 and 0 < wobble <= threshold / 2 do not hold: {self}")
        if not 1 <= self.most_confirming <= self.most_rounds:
            raise ValueError(f"1 <= most_confirming <= most_rounds does not hold: {self}")

    @property
    def sign(self) -> int:
        """Of the log ratio that is asked for: -1, 1, or 0 for either."""
        if self.direction == "either":
            return 0
        return -1 if (self.direction == "worse") == self.higher_is_better else 1

    @property
    def stop(self) -> float:
        """The posterior probability at which a verdict is given."""
        return 1 - (1 - self.confidence) / 2


@dataclass(frozen=True)
class Measure:
    """What to do next: interleaved rounds of good and these positions."""

    positions: tuple[int, ...]
    """Each round has good and all of these; never empty, never 0."""

    rounds: int = 1
    """So many are worth making before asking again; asking after each is as good, and costs time only."""


@dataclass(frozen=True)
class LevelStep:
    """A change between two neighbours among the positions that can be measured."""

    low: int
    """The last position before it."""

    high: int
    """The first measurable position with it: the culprit when it is low + 1."""

    confidence: float
    """The posterior probability that the change lies there."""

    size: float
    """Ratio of the level after it to that before it; posterior median."""

    interval: tuple[float, float]
    """Of size, with the confidence of the rules."""


@dataclass(frozen=True)
class SearchVerdict:
    """The end of a search. Ratios are of the raw metric: 0.9 is a tenth less than good."""

    kind: Kind
    """`culprit`: one commit. `range`: one step, in one of several commits of which all but the last do not
    compile. `none`: bad does not differ. `two-steps`: see `steps`. `slope`: many small ones. `undecided`:
    rounds ran out; low to high is the likeliest range. `swapped`: bad differs in the direction that was not
    asked for.
    """

    low: int
    """The last good position; 0 for verdicts without a place."""

    high: int
    """The culprit, or the end of the range; n for verdicts without a place."""

    confidence: float
    """The posterior probability of what is said; for `undecided` that of the range."""

    size: float
    """Ratio of bad to good, or for `culprit` and `range` that of the change; posterior median."""

    interval: tuple[float, float]
    """Of size, with the confidence of the rules."""

    smallest_seen: float
    """For `none`: the smallest difference, as a fraction, that these rounds do not leave open: the end of the
    interval of bad's ratio that lies in the direction asked for."""

    rounds: int
    """Observations that it rests on."""

    steps: tuple[LevelStep, ...] = field(default=())
    """Of `culprit` and `range` one, of `two-steps` two, in order."""

    rest: LevelStep | None = None
    """Of `culprit` and `range`: a much smaller step elsewhere, if there seems to be one, and about where."""
