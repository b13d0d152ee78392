"""Series watched night by night: one as its nights come, or many at once with the nights they have."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from history.stats.change_points.change_point import ChangePoint, Known
from history.stats.change_points.online_cusum import BLOCK, FALSE_SHARE, Watchers
from history.stats.change_points.parameters import WATCH, WatchParameters

Array = NDArray[np.float64]


class SeriesWatch:
    """One series, watched from its first night on; `false_share` as of Watchers."""

    def __init__(self, false_share: float = FALSE_SHARE) -> None:
        self._watchers = Watchers(1, false_share)

    def take(self, value: float) -> ChangePoint | None:
        """Take in the next night's value, nan for a gap; the change that it raises, if any."""
        for _, change in self._watchers.take(np.array([value], dtype=np.float64)):
            return change
        return None


def watch_many(
    matrix: Array,
    false_share: float = FALSE_SHARE,
    known: Sequence[Known] = (),
    parameters: WatchParameters = WATCH,
) -> list[tuple[ChangePoint, ...]]:
    """What a Watch of each row of `matrix` [series, nights] raises night by night; nan for gaps.

    `known` changes are not raised: from their nights on the series goes on at their levels.
    """
    found: list[list[ChangePoint]] = [[] for _ in matrix]
    for start in range(0, len(matrix), BLOCK):
        block = matrix[start : start + BLOCK]
        watchers = Watchers(len(block), false_share, parameters)
        for changes in taken(watchers, block, known, start):
            for column, change in changes.items():
                found[start + column].append(change)
    return [tuple(changes) for changes in found]


def tail_probabilities(matrix: Array, known: Sequence[Known] = ()) -> Array:
    """How probable the last night of each row of `matrix` [series, nights] is after the nights before it.

    As Watchers.tail_probability has it.
    """
    watchers = Watchers(len(matrix))
    for _ in taken(watchers, matrix[:, :-1], known):
        pass  # what is raised begins another level
    return watchers.tail_probability(np.ascontiguousarray(matrix[:, -1]))


def taken(
    watchers: Watchers, matrix: Array, known: Iterable[Known], start: int = 0
) -> Iterator[dict[int, ChangePoint]]:
    """Let watchers take in the nights of `matrix` [series, nights]; the changes of each night, by column.

    `start` is the row of the first series among those that `known` counts.
    """
    levels: defaultdict[int, list[Known]] = defaultdict(list)
    for known_level in known:
        if start <= known_level.row < start + len(matrix):
            levels[known_level.night].append(known_level)
    for night, values in enumerate(np.ascontiguousarray(matrix.T, dtype=np.float64)):
        for level in levels[night]:
            watchers.begin_level(level.row - start, level.level)
        yield dict(watchers.take(values))
