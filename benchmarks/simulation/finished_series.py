"""Changes in finished series that are short, or that drift: false ones, and steps found.

A hundred values are what a person imports, rather than a year of nights. Seeds are fixed: (case, 10, nights)
without steps, (case, 11, nights, 100 * size) with one in the middle, where case counts the kinds, then the
drifts. Drift is given in standard deviations over the whole series, of whatever length.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.output.figures import Figure
from benchmarks.simulation.detection_series import (
    KINDS,
    NIGHTS,
    Array,
    Kind,
    drifting_by,
    levelling_off,
    step_in_the_middle,
)
from benchmarks.simulation.scores import Reports, false_share, finished_score
from history.stats.change_points import find_changes_many

LENGTHS = (100, 125, 150)
SERIES = 2_000
STRENGTHS = (1.0, 2.0, 4.0)
"""Standard deviations by which a series drifts from end to end."""

MAX_FALSE = 2.0
MIN_FOUND = {100: 75.0, 125: 85.0, 150: 90.0}
"""Percent of steps of SIZE in Gaussian noise that are to be found, by length."""

SIZE = 2.0
LARGE_SIZE = 4.0
MIN_LARGE = 90.0
"""Percent of steps of LARGE_SIZE on top of a drift that are to be found."""

DRIFTS: dict[str, Kind] = {
    f"drifting by {strength:g}": partial(drifting_by, strength) for strength in STRENGTHS
}
OTHER_DRIFTS: dict[str, Kind] = {
    f"levelling off by {strength:g}": partial(levelling_off, strength) for strength in STRENGTHS
}
"""Drifts that nothing was tuned for: shown, without a target."""

CASES = KINDS | DRIFTS | OTHER_DRIFTS


def finished_figures() -> Iterator[Figure]:
    """Yield false changes by length and kind, then the steps that are found."""
    for nights in (*LENGTHS, NIGHTS):
        for case, (name, kind) in enumerate(CASES.items()):
            if nights == NIGHTS and name in KINDS:
                continue  # the part `own` has these, and more of them
            values = kind(np.random.default_rng((case, 10, nights)), (SERIES, nights))
            most = None if name in OTHER_DRIFTS else MAX_FALSE
            yield Figure(f"{nights} nights, {name}: false", false_share(_found(values)), "%", at_most=most)
    for nights in LENGTHS:
        for case, (name, kind) in enumerate(CASES.items()):
            least = MIN_FOUND[nights] if name == "gaussian" else None
            yield _steps_found((case, 11, nights), name, kind, SIZE, least)
        for case, (name, kind) in enumerate(CASES.items()):
            if name not in KINDS:
                least = None if name in OTHER_DRIFTS else MIN_LARGE
                yield _steps_found((case, 11, nights), name, kind, LARGE_SIZE, least)


def _steps_found(
    seed: tuple[int, int, int], name: str, kind: Kind, size: float, least: float | None
) -> Figure:
    nights = seed[-1]
    made = step_in_the_middle(kind, (*seed, round(100 * size)), (SERIES, nights), size)
    score = finished_score(made.steps, _found(made.values))
    note = f"{100 * score.false / SERIES:.1f} false changes in 100 series"
    what = f"{nights} nights, {name}: steps of {size:g} sigma found"
    return Figure(what, 100 * score.found / SERIES, "%", at_least=least, note=note)


def _found(values: Array) -> Reports:
    last = values.shape[1] - 1
    return [[(change.index, last) for change in changes] for changes in find_changes_many(values)]
