"""When a search stops, and with which verdict."""

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from runners.bisect.domain.rules import Kind, LevelStep, Measure, Rules, SearchVerdict
from runners.bisect.inference.explanations import StepExplanation
from runners.bisect.inference.level_likelihood import Array, Levels, quantiles, total
from runners.bisect.inference.next_probe import (
    LIKELY_ALTERNATIVES,
    MAX_AT_ONCE,
    SHARE_OF_DOUBT,
    nearest_usable,
    widest,
)
from runners.bisect.inference.posterior import Belief, priors
from runners.bisect.inference.sequential_test import SequentialResult

SLOPE_POSITIONS = 8
"""The positions to measure between good and bad before a slope is reported: fewer also fit a few steps."""

LEFT_OVER_SHARE = 0.25
"""The share of the change by which bad may deviate from it before bad is measured again; at least the
threshold."""


def decide(
    belief: Belief, levels: Levels, rules: Rules, unusable: Set[int]
) -> SearchVerdict | Measure | None:
    """Return the verdict that the probabilities allow, the measurement it still needs, or None to go on."""
    closed = closed_cells(belief, unusable)
    answer, mass = next(
        ((cells, mass) for cells, mass in belief.answers.items() if all(closed[list(cells)])), ((), 0.0)
    )
    if len(answer) == 1 and mass >= rules.stop:
        if left_over(belief, levels, rules, answer[0]):
            return _once_more(belief, levels, answer[0])
        return _single(belief, levels, rules, answer[0], mass)
    if belief.none >= rules.stop:
        return of_bad("none", belief.none, levels, rules, belief.length)
    if belief.moving >= rules.stop:
        return moved(belief, levels, rules)
    if belief.slope + belief.varying >= rules.stop:
        more = widest(belief, unusable) if len(belief.measured) < SLOPE_POSITIONS + 2 else None
        if more is not None:
            return Measure((more,))
        kind: Kind = "slope" if belief.slope > belief.varying else "varying"
        return of_bad(kind, belief.slope + belief.varying, levels, rules, belief.length)
    if mass >= rules.stop:
        return _several(belief, levels, rules, answer)
    if may_move(belief, levels, rules, mass):
        return bad_again(belief, levels)
    if belief.varying > LIKELY_ALTERNATIVES:
        return _anywhere(belief, levels, unusable)
    return None


def moved(belief: Belief, levels: Levels, rules: Rules) -> SearchVerdict:
    """Return the verdict that ratios moved: its interval has no change, and all that bad moved through."""
    verdict = of_bad("moving", belief.moving, levels, rules, belief.length)
    (low, high), end = verdict.interval, math.exp(belief.moved_to)
    return replace(verdict, interval=(min(low, 1.0, end), max(high, 1.0, end)))


def may_move(belief: Belief, levels: Levels, rules: Rules, mass: float) -> bool:
    """Return whether ratios that move are likely, or all that is in doubt, and rounds of bad can tell.

    mass: the probability of the likeliest answer that needs no further position.
    """
    is_asked = belief.moving > SHARE_OF_DOUBT or mass >= rules.stop * (1 - belief.moving)
    return is_asked and levels.rounds(belief.length) < rules.most_confirming


def bad_again(belief: Belief, levels: Levels) -> Measure:
    """Return rounds of bad: its first ones and these differ only if ratios move."""
    bad = belief.length
    return Measure((bad,), min(1 + levels.rounds(bad) // 4, MAX_AT_ONCE))


def _anywhere(belief: Belief, levels: Levels, unusable: Set[int]) -> Measure | None:
    """Return what tells levels that vary from steps: second rounds, then positions between others."""
    for position in belief.measured[1:]:
        if levels.rounds(position) < 2:
            return Measure((position,))
    more = widest(belief, unusable)
    return None if more is None else Measure((more,))


def left_over(belief: Belief, levels: Levels, rules: Rules, cell: int) -> bool:
    """Return whether bad seems to differ from the other positions after the change, as after a second step.

    Bad is seldom measured once it is confirmed, so that a small second step would be missed otherwise.
    """
    others = range(belief.likeliest((cell,)).last_large, len(belief.single) - 1)
    if not others:
        return False
    values = levels.grid.values
    shared = _shared(belief, levels, rules, [others], near_good=False)
    after = float(shared @ values / shared.sum())
    bad = float(levels.distribution(belief.length) @ values)
    return abs(bad - after) >= max(math.log1p(rules.threshold), LEFT_OVER_SHARE * abs(after))


def _once_more(belief: Belief, levels: Levels, cell: int) -> Measure:
    """Return rounds of bad, or of the culprit while the positions after the change have fewer than bad."""
    after = belief.measured[belief.likeliest((cell,)).last_large + 1 : -1]
    place = belief.length
    if sum(levels.rounds(position) for position in after) < levels.rounds(place):
        place = after[0]
    return Measure((place,), 1 + levels.rounds(place) // 4)


def give_up(belief: Belief, levels: Levels, rules: Rules) -> SearchVerdict:
    """Return the verdict when the rounds are used up, or no further ones help."""
    if belief.several >= rules.confidence:
        answer = next(cells for cells in belief.answers if len(cells) > 1)
        return _several(belief, levels, rules, answer)
    low, high = likeliest_cells(belief.single, rules.confidence * float(belief.single.sum()))
    verdict = of_bad("undecided", float(belief.single[low:high].sum()), levels, rules, belief.length)
    ends = belief.measured[low], belief.measured[high]
    return SearchVerdict(
        "undecided", *ends, verdict.confidence, verdict.size, verdict.interval,
        verdict.smallest_seen, verdict.rounds,
    )  # fmt: skip


def unconfirmed(found: SequentialResult, levels: Levels, rules: Rules, bad: int) -> SearchVerdict:
    """Return the verdict from the rounds of bad alone."""
    kind: Kind = found.state if found.state in ("none", "swapped") else "undecided"
    return of_bad(kind, found.probability, levels, rules, bad)


def of_bad(kind: Kind, confidence: float, levels: Levels, rules: Rules, bad: int) -> SearchVerdict:
    """Return a verdict without a position, with the size of the whole difference."""
    size, interval, seen = difference(levels, bad, rules)
    return SearchVerdict(kind, 0, bad, confidence, size, interval, seen, levels.total)


def closed_cells(belief: Belief, unusable: Set[int]) -> NDArray[np.bool_]:
    """Return (c,) whether a cell has no position left to be measured."""
    ends = zip(belief.measured[:-1], belief.measured[1:], strict=True)
    return np.array([nearest_usable(low, high, low, unusable) is None for low, high in ends])


def likeliest_cells(masses: Array, wanted: float) -> tuple[int, int]:
    """Return the fewest neighbouring cells [low, high) that hold `wanted` of the mass, and the most of it."""
    sums = np.concatenate([[0.0], np.cumsum(masses)])
    for count in range(1, len(masses) + 1):
        held = sums[count:] - sums[:-count]
        low = int(np.argmax(held))
        if held[low] >= wanted - 1e-12:
            return low, low + count
    return 0, len(masses)


def _single(belief: Belief, levels: Levels, rules: Rules, cell: int, mass: float) -> SearchVerdict:
    found = belief.likeliest((cell,))
    small = belief.lesser(cell)
    if 2 * small.sum() > mass:
        with_rest = [other for other in belief.explanations if other.answer == (cell,) and other.lesser]
        found = max(with_rest, key=lambda other: other.weight)
    steps = _net(belief, levels, rules, found)
    step, rest = replace(steps.pop(cell), confidence=mass), None
    if steps:
        place = max(steps, key=lambda other: abs(math.log(steps[other].size)))
        rest = _about(belief, rules, steps[place], heavier_side(small, cell))
    kind: Kind = "culprit" if step.high == step.low + 1 else "range"
    _, _, seen = difference(levels, belief.length, rules)
    return SearchVerdict(
        kind, step.low, step.high, mass, step.size, step.interval, seen, levels.total, (step,), rest,
        _undone(belief, levels, rules, found),
    )  # fmt: skip


def heavier_side(masses: Array, cell: int) -> Array:
    """Return the masses on the heavier side of a cell; the masses of the other side are zero."""
    before = np.arange(len(masses)) < cell
    return np.where(before == (masses[:cell].sum() >= masses[cell:].sum()), masses, 0.0)


def _several(belief: Belief, levels: Levels, rules: Rules, answer: tuple[int, ...]) -> SearchVerdict:
    """Return the steps of an answer, each within the fewest neighbouring cells that hold the confidence."""
    found = belief.likeliest(answer)
    net = _net(belief, levels, rules, found)
    steps = []
    for which, cell in enumerate(answer):
        masses = np.zeros(len(belief.measured) - 1)
        for cells, weight in belief.answers.items():
            if len(cells) == len(answer):
                masses[cells[which]] += weight
        steps.append(_about(belief, rules, net[cell], masses))
    size, interval, seen = difference(levels, belief.length, rules)
    kind: Kind = "two-steps" if len(answer) == 2 else "several-steps"
    return SearchVerdict(
        kind, 0, belief.length, belief.several, size, interval, seen, levels.total, tuple(steps),
        undone=_undone(belief, levels, rules, found),
    )  # fmt: skip


def _net(belief: Belief, levels: Levels, rules: Rules, found: StepExplanation) -> dict[int, LevelStep]:
    """Return cell -> step for the steps of an explanation that are not undone.

    The runs before a dip and after it have one level, so that the sizes add up to the whole difference.
    """
    runs = _runs(found.cells, len(belief.measured) - 1)
    cancelled = {cell for cells in found.undone for cell in cells}
    pooled, cells = [[runs[0]]], []
    for place, cell in enumerate(found.cells):
        if cell not in cancelled:
            pooled.append([runs[place + 1]])
            cells.append(cell)
        elif any(group[-1] == cell for group in found.undone):
            pooled[-1].append(runs[place + 1])
    return {
        cell: _step(belief, levels, rules, cell, 1.0, pooled[place], pooled[place + 1])
        for place, cell in enumerate(cells)
    }


def _undone(belief: Belief, levels: Levels, rules: Rules, found: StepExplanation) -> tuple[LevelStep, ...]:
    """Return the steps of an explanation that later ones undo, in order, each with its likely range."""
    runs = _runs(found.cells, len(belief.measured) - 1)
    alike = [other for other in belief.explanations if other.answer == found.answer]
    steps = []
    for cell in (cell for cells in found.undone for cell in cells):
        place = found.cells.index(cell)
        step = _step(belief, levels, rules, cell, 1.0, [runs[place]], [runs[place + 1]])
        here = sum(other.weight for other in alike if any(cell in cells for cells in other.undone))
        steps.append(replace(step, confidence=here / sum(other.weight for other in alike)))
    return tuple(steps)


def _runs(cells: Sequence[int], count: int) -> list[range]:
    """Return the runs of measured positions, counted from the first after good, between these cells."""
    return [range(low, high) for low, high in pairwise((0, *cells, count))]


def _about(belief: Belief, rules: Rules, step: LevelStep, masses: Array) -> LevelStep:
    """Return the same step within the fewest neighbouring cells that hold the confidence of the rules."""
    low, high = likeliest_cells(masses, rules.confidence * float(masses.sum()))
    ends = belief.measured[low], belief.measured[high]
    return replace(step, low=ends[0], high=ends[1], confidence=float(masses[low:high].sum()))


def _step(
    belief: Belief,
    levels: Levels,
    rules: Rules,
    cell: int,
    mass: float,
    before: Sequence[range],
    after: Sequence[range],
) -> LevelStep:
    """Return the change between the levels of runs of measured positions; runs may be empty."""
    low = _shared(belief, levels, rules, before, near_good=before[0].start == 0)
    high = _shared(belief, levels, rules, after, near_good=False)
    middle, interval = change_between(levels, rules, low, high)
    return LevelStep(belief.measured[cell], belief.measured[cell + 1], mass, middle, interval)


def change_between(
    levels: Levels, rules: Rules, low: Array, high: Array
) -> tuple[float, tuple[float, float]]:
    """Return the ratio of the level `high` to `low`, both (levels,) distributions: median and interval."""
    values = levels.grid.values
    spacing = levels.grid.spacing
    differences: Array = (np.arange(2.0 * len(values) - 1) - (len(values) - 1)) * spacing
    weights = np.asarray(np.convolve(high, low[::-1]), np.float64)
    middle, low_end, high_end = quantiles(differences, weights, rules.confidence)
    return float(np.exp(middle)), (float(np.exp(low_end)), float(np.exp(high_end)))


def _shared(belief: Belief, levels: Levels, rules: Rules, runs: Sequence[range], near_good: bool) -> Array:
    """Return the distribution, (levels,), of the level that the measured positions `runs` + 1 share."""
    positions = [belief.measured[index + 1] for index in chain(*runs)]
    return shared_level(levels, rules, positions, near_good)


def shared_level(levels: Levels, rules: Rules, positions: Iterable[int], near_good: bool) -> Array:
    """Return the distribution, (levels,), of the level that measured positions share.

    `near_good`: it is the level of good, zero except for its wobble.
    """
    logs = levels.scale_prior[:, None] + np.zeros(len(levels.grid.values))
    for position in positions:
        logs = logs + levels.likelihood(position)
    if near_good:
        logs = logs + priors(levels.grid, rules).before
    density = total(logs, axis=0)
    return np.asarray(np.exp(density - density.max()))


def difference(levels: Levels, bad: int, rules: Rules) -> tuple[float, tuple[float, float], float]:
    """Return the ratio of bad to good, its interval, and the smallest difference that is ruled out."""
    middle, low, high = quantiles(levels.grid.values, levels.distribution(bad), rules.confidence)
    seen = {0: max(abs(np.expm1(low)), abs(np.expm1(high))), -1: -np.expm1(low), 1: np.expm1(high)}
    smallest = max(float(seen[rules.sign]), 0.0)
    return float(np.exp(middle)), (float(np.exp(low)), float(np.exp(high))), smallest
