"""Series of a box that changed together have one range of nights, with all commits that can have done it."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulation.boxes.shared_causes import ranges_of_two
from benchmarks.simulation.boxes.teams import BOXES, STEPS
from history.changes.courses import dated_together
from history.series.matrix import SeriesMatrix
from tests.history.changes.test_level_shift import HERE, night, shift


@pytest.mark.deep("records and judges months of nights")
@pytest.mark.parametrize("seed", range(3))
def test_two_commits_on_neighbouring_nights_are_in_the_range_of_every_series(
    seed: int, tmp_path: Path
) -> None:
    """Each series alone gave the whole to either night, and left the other's commit out."""
    soon, later = ranges_of_two(tmp_path / "history.db", (9970, seed), (8, 40))
    assert len(soon) == len(later) == BOXES * STEPS
    assert all(soon)
    assert all(later)


def test_two_shifts_of_a_series_never_get_the_same_nights() -> None:
    """The second one's range began where that of all others ends."""
    logs = np.random.default_rng(7).normal(0, 0.01, (6, 90))
    logs[:, 50:] += np.log(0.9)
    series = tuple((number, f"step {number}", "qps") for number in range(6))
    matrix = SeriesMatrix(HERE, "b", "a", tuple(map(night, range(90))), series, np.exp(logs))
    first = [shift(50, series=number, width=2) for number in range(6)]
    second = shift(70, 0.98, series=5, width=20, before=0.9, confidence=0.98)
    *dated, later = dated_together(matrix, [*first, second])
    assert {(found.last_before, found.first_after) for found in dated} == {(night(49), night(50))}
    assert later == second
