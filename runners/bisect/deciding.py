"""When a search ends, and what it says then."""

from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from runners.bisect.belief import Belief, priors
from runners.bisect.choosing import nearest_usable
from runners.bisect.confirming import Confirmation
from runners.bisect.levels import Array, Levels, total
from runners.bisect.terms import Kind, Rules, Step, Verdict


def decide(belief: Belief, levels: Levels, rules: Rules, unusable: Set[int]) -> Verdict | None:
    """The verdict that the beliefs allow, None when more rounds are needed."""
    closed = closed_cells(belief, unusable)
    masses = np.where(closed, belief.single, 0.0)
    cell = int(np.argmax(masses))
    if masses[cell] >= rules.stop:
        return _single(belief, levels, rules, cell, float(masses[cell]))
    if belief.none >= rules.stop:
        return of_bad("none", belief.none, levels, rules, belief.length)
    if belief.slope >= rules.stop:
        return of_bad("slope", belief.slope, levels, rules, belief.length)
    places = np.where(closed[:, None] & closed[None, :], belief.pairs, 0.0)
    if places.max() >= rules.stop:
        return _two_steps(belief, levels, rules)
    return None


def give_up(belief: Belief, levels: Levels, rules: Rules) -> Verdict:
    """What can be said when rounds have run out."""
    if belief.two_steps >= rules.confidence:
        return _two_steps(belief, levels, rules)
    low, high = likeliest_cells(belief.single, rules.confidence * float(belief.single.sum()))
    verdict = of_bad("undecided", float(belief.single[low:high].sum()), levels, rules, belief.length)
    ends = belief.measured[low], belief.measured[high]
    return Verdict(
        "undecided", *ends, verdict.confidence, verdict.size, verdict.interval,
        verdict.smallest_seen, verdict.rounds,
    )  # fmt: skip


def unconfirmed(found: Confirmation, levels: Levels, rules: Rules, bad: int) -> Verdict:
    """The verdict of rounds of bad alone."""
    kind: Kind = found.state if found.state in ("none", "swapped") else "undecided"
    return of_bad(kind, found.probability, levels, rules, bad)


def of_bad(kind: Kind, confidence: float, levels: Levels, rules: Rules, bad: int) -> Verdict:
    """A verdict without a place, with the size of the whole difference."""
    size, interval, seen = _difference(levels, bad, rules)
    return Verdict(kind, 0, bad, confidence, size, interval, seen, levels.total)


def closed_cells(belief: Belief, unusable: Set[int]) -> NDArray[np.bool_]:
    """(c,) whether nothing in a cell is left to be measured."""
    ends = zip(belief.measured[:-1], belief.measured[1:], strict=True)
    return np.array([nearest_usable(low, high, low, unusable) is None for low, high in ends])


def likeliest_cells(masses: Array, wanted: float) -> tuple[int, int]:
    """The fewest neighbouring cells [low, high) that hold `wanted` of the mass, the heaviest of these."""
    sums = np.concatenate([[0.0], np.cumsum(masses)])
    for count in range(1, len(masses) + 1):
        held = sums[count:] - sums[:-count]
        low = int(np.argmax(held))
        if held[low] >= wanted - 1e-12:
            return low, low + count
    return 0, len(masses)


def quantiles(values: Array, weights: Array, confidence: float) -> tuple[float, float, float]:
    """Median, and the ends of the central interval, of a distribution on ascending values."""
    sums: Array = np.cumsum(weights) - weights / 2
    low, middle, high = np.interp(
        [(1 - confidence) / 2, 0.5, (1 + confidence) / 2], sums / weights.sum(), values
    )
    return float(middle), float(low), float(high)


def _single(belief: Belief, levels: Levels, rules: Rules, cell: int, mass: float) -> Verdict:
    step = _step(belief, levels, rules, cell, mass, range(cell), range(cell, len(belief.single)))
    kind: Kind = "culprit" if step.high == step.low + 1 else "range"
    _, _, seen = _difference(levels, belief.length, rules)
    return Verdict(kind, step.low, step.high, mass, step.size, step.interval, seen, levels.total, (step,))


def _two_steps(belief: Belief, levels: Levels, rules: Rules) -> Verdict:
    """Both steps, each with the fewest neighbouring cells that hold the confidence asked for."""
    first, second = np.unravel_index(int(np.argmax(belief.pairs)), belief.pairs.shape)
    cells = len(belief.single)
    bounds = (0, int(first), int(second), cells)
    steps = []
    for which, cell in enumerate((int(first), int(second))):
        masses = belief.pairs.sum(axis=1 - which)
        low, high = likeliest_cells(masses, rules.confidence * float(masses.sum()))
        step = _step(
            belief, levels, rules, cell, float(masses[low:high].sum()),
            range(bounds[which], bounds[which + 1]), range(bounds[which + 1], bounds[which + 2]),
        )  # fmt: skip
        ends = belief.measured[low], belief.measured[high]
        steps.append(Step(*ends, step.confidence, step.size, step.interval))
    size, interval, seen = _difference(levels, belief.length, rules)
    return Verdict(
        "two-steps", 0, belief.length, belief.two_steps, size, interval, seen, levels.total, tuple(steps)
    )


def _step(
    belief: Belief, levels: Levels, rules: Rules, cell: int, mass: float, before: range, after: range
) -> Step:
    """The change between the levels that two runs of measured positions share; both may be empty."""
    low = _shared(belief, levels, rules, before)
    high = _shared(belief, levels, rules, after)
    values = levels.grid.values
    spacing = levels.grid.spacing
    differences = (np.arange(2 * len(values) - 1) - (len(values) - 1)) * spacing
    weights = np.asarray(np.convolve(high, low[::-1]), np.float64)
    middle, *ends = quantiles(differences, weights, rules.confidence)
    interval = float(np.exp(ends[0])), float(np.exp(ends[1]))
    return Step(belief.measured[cell], belief.measured[cell + 1], mass, float(np.exp(middle)), interval)


def _shared(belief: Belief, levels: Levels, rules: Rules, run: range) -> Array:
    """(levels,) the distribution of the level that the measured positions `run` + 1 share.

    Positions from the first on share good's level, which is zero but for its wobble.
    """
    logs = levels.scale_prior[:, None] + np.zeros(len(levels.grid.values))
    for index in run:
        logs = logs + levels.likelihood(belief.measured[index + 1])
    if run.start == 0:
        logs = logs + priors(levels.grid, rules).before
    density = total(logs, axis=0)
    return np.asarray(np.exp(density - density.max()))


def _difference(levels: Levels, bad: int, rules: Rules) -> tuple[float, tuple[float, float], float]:
    """Ratio of bad to good with its interval, and the smallest difference that it does not leave open."""
    middle, low, high = quantiles(levels.grid.values, levels.distribution(bad), rules.confidence)
    seen = {0: max(abs(np.expm1(low)), abs(np.expm1(high))), -1: -np.expm1(low), 1: np.expm1(high)}
    smallest = max(float(seen[rules.sign]), 0.0)
    return float(np.exp(middle)), (float(np.exp(low)), float(np.exp(high))), smallest
