"""The search itself: observations in, what to measure next or a verdict out. No I/O, no clock, no chance."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from runners.bisect.terms import Direction, Kind, Measure, Observation, Rules, Step, Verdict

__all__ = ["Direction", "Kind", "Measure", "Observation", "Rules", "Search", "Step", "Verdict"]


class Search:
    """Noisy binary search for the commit between good (position 0) and bad (position `length`).

    What it says is a function of length, rules, build cost, and of the observations, exclusions and builds
    that it was told of: a replay in the same order gives the same answers to the last bit, and another order
    the same up to rounding.

    length: candidates, bad included; at least 1. build_cost_rounds: what compiling a new position costs, in
    rounds. Raises ValueError for positions that there are not.
    """

    def __init__(self, length: int, rules: Rules | None = None, build_cost_rounds: float = 2.5):
        raise NotImplementedError

    def observe(self, observation: Observation) -> None:
        """Take one round of one position. Raises ValueError for position 0 or beyond bad."""
        raise NotImplementedError

    def observe_all(self, observations: Iterable[Observation]) -> None:
        """Take several, in order: for a replay."""
        raise NotImplementedError

    def exclude(self, position: int) -> None:
        """Say that a position does not compile or start. Raises ValueError for bad, which has to."""
        raise NotImplementedError

    def built(self, position: int) -> None:
        """Say that a position is compiled already, so that measuring it costs rounds only."""
        raise NotImplementedError

    @property
    def posterior(self) -> NDArray[np.float64]:
        """(length + 1,) probabilities, their sum 1: at index k >= 1 that of one change, which first appears at
        position k; at index 0 that there is no single culprit: none, two steps or a slope."""
        raise NotImplementedError

    @property
    def alternatives(self) -> dict[str, float]:
        """Probabilities of `single`, `none`, `two-steps` and `slope`; their sum is 1."""
        raise NotImplementedError

    def level(self, position: int) -> tuple[float, float, float]:
        """Ratio to good of a measured position by its own rounds: median and interval with the rules' confidence.

        For tables of measured points. Raises ValueError for one without rounds.
        """
        raise NotImplementedError

    def next(self) -> Measure | Verdict:
        """What to measure next, or the verdict. Takes well under a second for 4,096 candidates."""
        raise NotImplementedError

    def likely_next(self, count: int) -> tuple[int, ...]:
        """At most `count` positions that are worth compiling ahead, the likeliest first; none that is built."""
        raise NotImplementedError
