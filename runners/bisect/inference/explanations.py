"""Explanations of the rounds by steps between levels, and which of the steps make bad differ from good.

An explanation places up to MAX_STEPS steps in different cells between measured positions. Cell c lies
between the measured positions c and c + 1; a run from cell a to cell b has the positions a + 1 to b, which
share a level. The evidence of an explanation is the product of those of its runs, with levels integrated out:
the exact change-point model of Barry and Hartigan (1992), summed explicitly so that every explanation can be
asked what it says of the difference between good and bad.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MAX_STEPS = 5
"""The most steps of an explanation: two dips with their fixes, and a culprit."""

MAX_CELLS = 15
"""The most cells in which steps are placed: the likeliest, when more positions are measured."""

KEPT = 300
"""The explanations that are kept, likeliest first."""

NEGLIGIBLE_EXPLANATION = 1e-9
"""The share of the likeliest explanation's probability below which another is dropped."""

LESSER = 0.25
"""A step of at most this share of the largest one, in logarithms, does not delay the verdict: a long range
nearly always has one, and locating it takes many times the rounds."""


@dataclass(frozen=True)
class StepExplanation:
    """One way in which steps make up the rounds."""

    cells: tuple[int, ...]
    """The cells with a step, ascending."""

    levels: tuple[float, ...]
    """The mean level of every run, as a log ratio to good; one more than cells, the first is good's."""

    weight: float
    """Its posterior probability."""

    answer: tuple[int, ...]
    """The cells of the steps that make up the difference between good and bad, ascending, without those that
    later steps undo and those that are much smaller than the largest."""

    lesser: tuple[int, ...] = ()
    """The cells of the steps that are much smaller than the largest of the answer."""

    undone: tuple[tuple[int, ...], ...] = ()
    """The cells of steps that leave a level and return to it, one entry for each return."""

    @property
    def last_large(self) -> int:
        """The cell of the last step that is not much smaller than the largest of the answer."""
        return max(cell for cell in self.cells if cell not in self.lesser)


@dataclass(frozen=True)
class RunEvidence:
    """The evidence and mean levels of runs of measured positions, c of them."""

    first: Array
    """(c + 1, scales): the log-evidence that the first 0, 1, ... c positions have good's level."""

    opening: Array
    """(c, c, scales): the log-evidence of one level other than good's, for a run from the row's cell to the
    column's."""

    between: Array
    """(c, c, scales): the log-evidence of any one level, for the same runs."""

    last: Array
    """(c + 1, scales): the log-evidence of one level for all but the first 0, 1, ... c positions."""

    opening_levels: Array
    """(c, c): the mean levels of the runs of `opening`."""

    between_levels: Array
    """(c, c): the mean levels of the runs of `between`: good's, or the other, whichever is likelier."""

    last_levels: Array
    """(c,): the mean levels of the runs of `last`."""


def net_steps(
    cells: Sequence[int], levels: Sequence[float], threshold: float
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the cells of the steps that make up the difference, of much smaller ones, and of undone ones.

    A level counts as returned to when it is met again within `threshold`, a log ratio, or LESSER of the whole
    difference; the steps on the way cancel. `levels` has one level more than there are cells.
    """
    tolerance = max(threshold, LESSER * abs(levels[-1] - levels[0]))
    kept, undone, place = [], [], 0
    while place < len(cells):
        back = [
            later for later in range(place + 2, len(levels)) if abs(levels[later] - levels[place]) < tolerance
        ]
        if back:
            undone.append(tuple(cells[place : back[-1]]))
            place = back[-1]
        else:
            kept.append((cells[place], abs(levels[place + 1] - levels[place])))
            place += 1
    largest = max((size for _, size in kept), default=0.0)
    answer = tuple(cell for cell, size in kept if size > LESSER * largest)
    lesser = tuple(cell for cell, size in kept if size <= LESSER * largest)
    return answer, lesser, tuple(undone)


def explain(runs: RunEvidence, shares: Array, single: Array, priors: Array, threshold: float) -> "Weighed":
    """Return every explanation worth keeping, with log-weights that are not normalised.

    shares: (c,) the prior probabilities of cells for explanations by several steps. single: (c, scales)
    log-weights of one step, prior included. priors: (MAX_STEPS - 1, scales) log-priors of 2, 3 ... steps.
    threshold: the least step, as a log ratio.
    """
    cells = len(shares)
    rows: list[tuple[tuple[int, ...], tuple[float, ...]]] = [
        ((cell,), (0.0, float(runs.last_levels[cell]))) for cell in range(cells)
    ]
    logs = [single]
    likely = _likeliest_cells(runs, shares, int(np.argmax(single.max(axis=0))))
    factor = 1.0
    for count in range(2, min(MAX_STEPS, cells) + 1):
        factor *= count
        chosen = likely[_subsets(len(likely), count)]
        levels = _levels(runs, chosen)
        apart = np.abs(np.diff(levels, axis=1)).min(axis=1) >= threshold
        chosen, levels = chosen[apart], levels[apart]
        if not len(chosen):
            continue
        weights = runs.first[chosen[:, 0]] + runs.last[chosen[:, -1]]
        weights = weights + runs.opening[chosen[:, 0], chosen[:, 1]]
        for step in range(1, count - 1):
            weights = weights + runs.between[chosen[:, step], chosen[:, step + 1]]
        where = np.log(np.maximum(shares, 1e-300))[chosen].sum(axis=1) + np.log(factor)
        weights = weights + where[:, None] + priors[count - 2]
        best = np.argsort(-weights.max(axis=1), kind="stable")[:KEPT]
        rows += [(tuple(map(int, chosen[at])), tuple(map(float, levels[at]))) for at in best]
        logs.append(weights[best])
    return Weighed(rows, np.concatenate(logs), threshold)


@dataclass(frozen=True)
class Weighed:
    """Explanations with log-weights, (explanations, scales), before they are normalised."""

    rows: Sequence[tuple[tuple[int, ...], tuple[float, ...]]]
    logs: Array
    threshold: float

    def normalised(self, whole: float) -> Iterator[StepExplanation]:
        """Yield the explanations with their probabilities, given the logarithm of the sum of all weights."""
        highest = self.logs.max()
        weights = np.exp(self.logs - highest).sum(axis=1)
        least = NEGLIGIBLE_EXPLANATION * float(weights.max())
        for (cells, levels), weight in zip(self.rows, weights, strict=True):
            if len(cells) > 1 and weight < least:
                continue
            share = float(weight * np.exp(highest - whole))
            if len(cells) == 1:
                yield StepExplanation(cells, levels, share, cells)
            else:
                yield StepExplanation(cells, levels, share, *net_steps(cells, levels, self.threshold))


def _levels(runs: RunEvidence, chosen: NDArray[np.intp]) -> Array:
    """Return the mean levels, (explanations, steps + 1), of the runs of explanations."""
    pairs = list(zip(chosen.T[:-1], chosen.T[1:], strict=True))
    between = [runs.opening_levels[pairs[0]], *(runs.between_levels[pair] for pair in pairs[1:])]
    return np.stack([np.zeros(len(chosen)), *between, runs.last_levels[chosen[:, -1]]], axis=1)


@lru_cache(maxsize=64)
def _subsets(size: int, count: int) -> NDArray[np.intp]:
    """Return the subsets, (subsets, count), of `count` of `size` things."""
    return np.array(list(combinations(range(size), count)), np.intp).reshape(-1, count)


def _likeliest_cells(runs: RunEvidence, shares: Array, scale: int) -> NDArray[np.intp]:
    """Return at most MAX_CELLS cells, ascending, that are likeliest to hold one of several steps."""
    cells = len(shares)
    if cells <= MAX_CELLS:
        return np.arange(cells)
    where = np.log(np.maximum(shares, 1e-300))
    between = np.where(np.triu(np.ones((cells, cells), bool), 1), runs.between[:, :, scale], -np.inf)
    ahead = [runs.first[:-1, scale] + where]
    behind = [runs.last[:-1, scale] + where]
    for _ in range(MAX_STEPS - 1):
        ahead.append(np.logaddexp.reduce(ahead[-1][:, None] + between, axis=0) + where)
        behind.append(np.logaddexp.reduce(between + behind[-1][None, :], axis=1) + where)
    found = [
        ahead[before] + behind[after] - where
        for before in range(MAX_STEPS)
        for after in range(MAX_STEPS - before)
    ]
    best = np.argsort(-np.logaddexp.reduce(np.stack(found), axis=0), kind="stable")[:MAX_CELLS]
    return np.sort(best)
