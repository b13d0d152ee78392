"""Which commit to measure next when candidates are no single line.

It is the one whose ancestors halve the posterior. As on a line, that is weighed against commits that are
compiled already, by information per machine time.
"""

from collections.abc import Iterator, Set

import numpy as np
from numpy.typing import NDArray

from runners.bisect.inference.branched.belief import BranchedBelief
from runners.bisect.inference.branched.cells import Bools, Cells
from runners.bisect.inference.explanations import StepExplanation
from runners.bisect.inference.level_likelihood import Array
from runners.bisect.inference.next_probe import NEGLIGIBLE, ProbeCandidate, candidate, is_steered


def places(belief: BranchedBelief, unusable: Set[int], compiled: Set[int]) -> Iterator[ProbeCandidate]:
    """Yield all measured and compiled positions, and those that halve the posterior, and each cell, best."""
    steers = is_steered(belief)
    useful = belief.cells.splits(set(unusable))
    wanted = {place for place in compiled if useful[place].any()}
    if (
        middle := halving(belief.cells.fractions @ belief.single, np.asarray(useful.any(axis=1)))
    ) is not None:
        wanted.add(middle)
    for cell in np.flatnonzero((belief.single >= NEGLIGIBLE) | steers):
        at = halving(belief.cells.fractions[:, cell], useful[:, cell])
        if at is not None:
            wanted.add(at)
    measured = belief.measured[1:]
    for position in (*measured, *sorted(wanted.difference(measured))):
        yield _place(belief, position, steers)


def halving(masses: Array, usable: Bools) -> int | None:
    """Return the usable position whose mass, (n + 1,), is closest to half of the whole; None without one."""
    found = np.flatnonzero(usable)
    # Rounding must not decide between positions.
    uneven = np.round(np.abs(2 * masses[found] - masses[-1]), 6)
    return int(found[np.argmin(uneven)]) if len(found) else None


def widest(cells: Cells, unusable: Set[int]) -> int | None:
    """Return the position that divides the largest cells most evenly; None when nothing divides any."""
    useful = cells.splits(set(unusable))
    parts = np.where(useful, np.minimum(cells.fractions, 1 - cells.fractions) * cells.sizes, 0.0).max(axis=1)
    return int(np.argmax(np.round(parts, 3))) if useful.any() else None


def likely(posterior: Array, weights: NDArray[np.float32], usable: Bools, count: int) -> tuple[int, ...]:
    """Return at most `count` positions: the one that halves the posterior, those that halve the halves, ...

    weights: (n + 1, n) as of Ancestry. usable: (n + 1,).
    """
    usable = usable.copy()
    parts, positions = [posterior], list[int]()
    while parts and len(positions) < count and usable.any():
        part = parts.pop(0)
        masses = np.asarray(weights @ part.astype(np.float32), np.float64)
        at = halving(masses, usable & (masses > 0))
        if at is None:
            continue
        positions.append(at)
        usable[at] = False
        parts += [half for half in (part * weights[at], part * (1 - weights[at])) if (half > 0).sum() > 1]
    return tuple(positions)


def _place(belief: BranchedBelief, position: int, steers: bool) -> ProbeCandidate:
    """Return the candidate at a position, which has some share of every cell among its ancestors."""
    shares = belief.cells.fractions[position]
    labels: dict[tuple[tuple[int, ...], tuple[bool, ...]], int] = {}
    levels, weights, classes = [0.0], [belief.none], [labels.setdefault(((), ()), 0)]
    for found in belief.explanations:
        if len(found.answer) == 1 or steers:
            for level, weight, sides in _outcomes(found, shares):
                levels.append(level)
                weights.append(weight)
                classes.append(labels.setdefault((found.answer, sides), len(labels)))
    if steers:
        levels.append(belief.end_of_slope * float(shares @ belief.cells.sizes) / belief.length)
        weights.append(belief.slope)
        classes.append(labels.setdefault(((), (True,)), len(labels)))
    return candidate(position, np.array(levels), np.array(weights), np.array(classes))


def _outcomes(found: StepExplanation, shares: Array) -> list[tuple[float, float, tuple[bool, ...]]]:
    """Return levels and weights at a position, and on which sides of undivided steps of the answer it is."""
    outcomes: list[tuple[float, float, tuple[bool, ...]]] = [(0.0, found.weight, ())]
    for cell, low, high in zip(found.cells, found.levels[:-1], found.levels[1:], strict=True):
        share = float(shares[cell])
        if share in (0.0, 1.0):
            outcomes = [(level + share * (high - low), weight, sides) for level, weight, sides in outcomes]
            continue
        asked = cell in found.answer
        outcomes = [
            (
                level + has * (high - low),
                weight * (share if has else 1 - share),
                (*sides, has) if asked else sides,
            )
            for level, weight, sides in outcomes
            for has in (False, True)
        ]
    return outcomes
