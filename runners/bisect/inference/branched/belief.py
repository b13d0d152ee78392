"""The posterior probability of every hypothesis when candidates are no single line.

It is that of the parent folder with cells of ancestors in place of intervals. A step at a commit changes the
level of every commit that has it among its ancestors. With several steps, commits that have the same ones
share a level. So that it is known which steps make bad differ, steps are taken in an order in which some
measured commit has just the first of them, some other the first two, and so on.
"""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from runners.bisect.domain.ancestry import Ancestry
from runners.bisect.domain.rules import Rules
from runners.bisect.inference.branched.cells import Bools, Cells
from runners.bisect.inference.commit_prior import CommitPrior
from runners.bisect.inference.explanations import KEPT, Weighed
from runners.bisect.inference.level_likelihood import NEVER, Array, Levels, total
from runners.bisect.inference.moving_ratios import moving_evidence
from runners.bisect.inference.posterior import (
    PRIOR_CHANGE,
    PRIOR_FURTHER,
    PRIOR_MOVING,
    PRIOR_SLOPE,
    PRIOR_TWO_STEPS,
    PRIOR_VARYING,
    Belief,
    priors,
    slope_evidence,
)
from runners.bisect.inference.varying_levels import varying_evidence

MAX_STEPS = 3
"""The most steps of an explanation: a dip, its fix, and a culprit."""

MAX_PAIRED = 32
"""The most cells of which pairs are looked at, likeliest first."""

MAX_CELLS = 10
"""The most cells in which three steps are placed: the likeliest by pairs."""

AT_ONCE = 256
"""The groups of positions whose levels are integrated out at once."""


@dataclass(frozen=True)
class BranchedBelief(Belief):
    """The probabilities of all hypotheses; the cells of its explanations are those of `cells`."""

    cells: Cells

    @property
    def cell_count(self) -> int:
        """The number of cells."""
        return self.cells.count

    def groups(self, steps: Sequence[int]) -> NDArray[np.intp]:
        """Return (c,) which of the steps in these cells each measured position has: bit i for the i-th."""
        return groups_of(self.cells.after[list(steps)])


def groups_of(after: Bools) -> NDArray[np.intp]:
    """Return (c,) numbers whose bit i says whether a position has the i-th step; `after`: (steps, c)."""
    bits: NDArray[np.intp] = 1 << np.arange(len(after), dtype=np.intp)
    return np.asarray(bits @ after.astype(np.intp))


class BranchedEvidence:
    """The sums over levels and noise from which a BranchedBelief is computed."""

    def __init__(self, levels: Levels, rules: Rules, prior: CommitPrior, ancestry: Ancestry) -> None:
        self.levels, self.rules, self.commits = levels, rules, prior
        self.grid = levels.grid
        self.priors = priors(self.grid, rules)
        measured = tuple(sorted({*levels.positions, ancestry.length}))
        self.cells = Cells(ancestry, measured, np.diff(prior.cumulative))
        self.logs = np.stack([levels.likelihood(position) for position in measured])
        # Levels between steps are good's, or any others.
        asked, opposite = np.exp(self.priors.after), np.exp(self.priors.opposite)
        other = np.log(np.maximum((asked + opposite) / (asked + opposite).sum(), np.exp(-700.0)))
        self.other, self.scale = other, 0
        self.back = math.log(1 / 3), math.log(2 / 3)
        self.before, (self.after, _) = self._near_good(~self.cells.after), self._after(self.cells.after)
        alone = 1 - PRIOR_TWO_STEPS / (1 - PRIOR_FURTHER) - PRIOR_SLOPE - PRIOR_VARYING - PRIOR_MOVING
        where = np.log(PRIOR_CHANGE * alone * self.cells.shares)[:, None]
        self.single = where + self.before + self.after + levels.scale_prior
        """(k, scales) log-weights of one step, prior included."""
        self.scale = int(np.argmax(self.single.max(axis=0)))
        """The likeliest scale of noise, at which mean levels are taken."""

    def belief(self) -> BranchedBelief:
        """Return the normalised probabilities of all hypotheses."""
        scales, cells = self.levels.scale_prior, self.cells
        length = cells.ancestry.length
        means = self._after(cells.after)[1]
        last = float(means[int(np.argmax(self.single.max(axis=1)))])
        none = (
            math.log(1 - PRIOR_CHANGE) + self._near_good(np.ones((1, len(cells.measured)), bool))[0] + scales
        )
        way = cells.ancestry.contains[list(cells.measured)].sum(axis=1) / length
        slope, end = slope_evidence(self.levels, self.priors, cells.measured, way, abs(last))
        slope = np.log(PRIOR_CHANGE * PRIOR_SLOPE) + slope + scales
        varying = varying_evidence(self.levels, (0, *cells.measured))
        varying = np.log(PRIOR_CHANGE * PRIOR_VARYING) + varying + scales
        moving, moved_to = moving_evidence(self.levels, cells.measured, self.priors.before, self.priors.after)
        moving = np.log(PRIOR_CHANGE * PRIOR_MOVING) + moving + scales
        weighed = self._explanations(means)
        whole = float(total(np.concatenate([weighed.logs.ravel(), none, slope, varying, moving])))
        by_scale = total(weighed.logs, axis=0)
        shares = np.exp(by_scale - total(by_scale))
        return BranchedBelief(
            length,
            self.commits,
            (0, *cells.measured),
            tuple(weighed.normalised(whole)),
            float(np.exp(total(none) - whole)),
            float(np.exp(total(slope) - whole)),
            float(np.exp(total(varying) - whole)),
            float(np.exp(total(moving) - whole)),
            last,
            end,
            moved_to,
            float(np.exp(shares @ np.log(self.levels.scales))),
            cells,
        )

    # --- one step, and several

    def _explanations(self, after: Array) -> Weighed:
        rows: list[tuple[tuple[int, ...], tuple[float, ...]]] = [
            ((cell,), (0.0, float(after[cell]))) for cell in range(self.cells.count)
        ]
        logs = [self.single]
        best = np.argsort(-self.single.max(axis=1), kind="stable")[:MAX_PAIRED]
        pairs = self._placed(list(combinations(sorted(map(int, best)), 2)))
        found = [pairs]
        if pairs.rows and self.cells.count > 2 and MAX_STEPS > 2:
            found.append(self._placed(list(combinations(_likeliest(pairs), MAX_STEPS))))
        for placed in found:
            kept = np.argsort(-placed.logs.max(axis=1), kind="stable")[:KEPT] if placed.rows else ()
            rows += [placed.rows[at] for at in kept]
            logs.append(placed.logs[list(kept)])
        return Weighed(rows, np.concatenate(logs), math.log1p(self.rules.threshold))

    def _placed(self, chosen: Sequence[tuple[int, ...]]) -> Weighed:
        """Return explanations by steps in these cells, in an order in which they can be told apart."""
        threshold = math.log1p(self.rules.threshold)
        orders, groups = [], []
        for cells in chosen:
            # A step that more positions have comes first.
            order = tuple(sorted(cells, key=lambda cell: -int(self.cells.after[cell].sum())))
            group = groups_of(self.cells.after[list(order)])
            if all((group == (1 << step) - 1).any() for step in range(1, len(order))):
                orders.append(order)
                groups.append(group)
        none = np.zeros((0, len(self.levels.scale_prior)))
        if not orders:
            return Weighed((), none, threshold)
        steps = len(orders[0])
        every = np.stack(groups)
        prior = PRIOR_CHANGE * PRIOR_TWO_STEPS * PRIOR_FURTHER ** (steps - 2) * math.factorial(steps)
        where = np.log(self.cells.sizes / self.cells.ancestry.length)
        logs = np.log(prior) + where[np.array(orders)].sum(axis=1)[:, None] + self.levels.scale_prior
        logs = logs + self._near_good(every == 0)
        path = [np.zeros(len(orders))]
        for which in range(1, 1 << steps):
            mask = every == which
            if which == (1 << steps) - 1:
                evidence, means = self._after(mask)
            else:
                evidence, means = self._between(mask, is_first=which == 1)
            logs = logs + evidence
            if which & (which + 1) == 0:  # the first steps, and no others
                path.append(means)
        levels = np.stack(path, axis=1)
        apart = np.flatnonzero(np.abs(np.diff(levels, axis=1)).min(axis=1) >= threshold)
        rows = [(orders[at], tuple(map(float, levels[at]))) for at in apart]
        return Weighed(rows, logs[apart], threshold)

    # --- levels that groups of positions share; masks are (groups, c)

    def _near_good(self, masks: Bools) -> Array:
        """Return (groups, scales) log-evidence of good's level."""
        near = self.priors.before > NEVER / 2
        return self._integrated(masks, self.logs[:, :, near], self.priors.before[near])[0]

    def _after(self, masks: Bools) -> tuple[Array, Array]:
        """Return (groups, scales) log-evidence of one level that differs as bad does, and its means."""
        far = self.priors.after > NEVER / 2
        logs, prior = self.logs[:, :, far], self.priors.after[far]
        return self._integrated(masks, logs, prior, self.grid.values[far])

    def _between(self, masks: Bools, *, is_first: bool) -> tuple[Array, Array]:
        """Return (groups, scales) log-evidence of one level between steps, and its means, (groups,).

        After the first step it is any but good's; after others maybe good's again. Groups may be empty.
        """
        evidence, means = self._integrated(masks, self.logs, self.other, self.grid.values)
        if is_first:
            return evidence, means
        near = self.priors.before > NEVER / 2
        values = self.grid.values[near]
        back, returned = self._integrated(masks, self.logs[:, :, near], self.priors.before[near], values)
        is_back = back[:, self.scale] + self.back[0] > evidence[:, self.scale] + self.back[1]
        whole = np.logaddexp(back + self.back[0], evidence + self.back[1])
        return whole, np.where(is_back, returned, means)

    def _integrated(
        self, masks: Bools, logs: Array, prior: Array, values: Array | None = None
    ) -> tuple[Array, Array]:
        """Return (groups, scales) log-evidence of a level that each group of positions shares, and its means.

        The means, (groups,), are those at the likeliest scale, and 0 without `values`.
        """
        distinct, which = np.unique(masks, axis=0, return_inverse=True)
        evidence, means = [], []
        for start in range(0, len(distinct), AT_ONCE):
            some = distinct[start : start + AT_ONCE].astype(np.float64)
            sums = np.tensordot(some, logs, 1) + prior
            evidence.append(total(sums, axis=2))
            best = sums[:, self.scale]
            weights = np.exp(best - best.max(axis=1, keepdims=True))
            means.append(np.zeros(len(some)) if values is None else weights @ values / weights.sum(axis=1))
        places = np.ravel(which)
        return np.concatenate(evidence)[places], np.concatenate(means)[places]


def _likeliest(pairs: Weighed) -> list[int]:
    """Return the cells, at most MAX_CELLS and ascending, that are likeliest to hold one of two steps."""
    masses: dict[int, float] = {}
    weights = np.exp(pairs.logs - pairs.logs.max()).sum(axis=1)
    for (cells, _), weight in zip(pairs.rows, weights, strict=True):
        for cell in cells:
            masses[cell] = masses.get(cell, 0.0) + float(weight)
    return sorted(sorted(masses, key=lambda cell: (-masses[cell], cell))[:MAX_CELLS])


def unsplit(cells: Cells, unusable: Set[int]) -> Bools:
    """Return (k,) whether a cell has no usable position left that would divide it."""
    return np.asarray(~cells.splits(set(unusable)).any(axis=0))
