"""What a marker explains: a shift that all series show which share it, or that the base's own values show."""

import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from history.series.environment_changes import Marker, markers
from history.series.matrix import SeriesMatrix, read_matrix
from history.stats.shared_steps import MARKED_BEYOND, StepSizes, all_moved, is_as_others, step_sizes

Array = NDArray[np.float64]

BEFORE, SINCE = 30, 30
"""The nights before a marker, and from it on, that are compared."""

LEAST = 3
"""Nights on either side without which a marker explains what is dated near it."""

NEARBY = 3
"""The nights by which the range of a shift may miss a marker that moved most series."""

MOVED = 1.6
"""The standard errors by which the other series of a metric have to have moved with a marker (all_moved)."""

OF_BASE = 0.5
"""The share of a shift that has to be in the base's own values."""


class MarkerEffects:
    """The markers of a matrix, and what each of them explains."""

    def __init__(self, connection: Connection, matrix: SeriesMatrix) -> None:
        self._connection, self._matrix = connection, matrix
        self._marked: Mapping[int, Marker] = markers(connection, matrix)
        self._logs = matrix.log_ratios()
        self._steps: dict[str, StepSizes] = {}
        self._moves: dict[tuple[int, str], tuple[Array, Array]] = {}
        self._of_base: dict[tuple[str, str], Array] | None = None

    def explanation(self, row: int, first: int, last: int, size: float) -> str:
        """Return the markers that explain a shift of a row by `size`, a logarithm; empty when none does.

        `first` and `last` are the nights that surely are before and after it. Markers that read alike, as of
        two machines that take turns, are told once.
        """
        step = self._matrix.series[row][1]
        found = Counter(
            str(marker)
            for position, marker in ((at, marked.within({step})) for at, marked in self._marked.items())
            if self._explains(position, marker, row, size, (first, last))
        )
        return "; ".join(f"{text}, {times} times" if times > 1 else text for text, times in found.items())

    def _explains(
        self, position: int, marker: Marker, row: int, size: float, nights: tuple[int, int]
    ) -> bool:
        first, last = nights
        is_within = first < position <= last
        if is_within and (marker.work or marker.steps):
            return True
        moved_with_box = marker.box and self._can_be_at(position, row, first, last)
        if moved_with_box and self._moved_with_most(position, row, size):
            return True
        return bool(is_within and marker.base) and self._is_of_base(position, row, size)

    def _can_be_at(self, position: int, row: int, first: int, last: int) -> bool:
        """Return whether a shift of a row can have happened at a marker: near it, or as likely then."""
        if first - NEARBY < position <= last + NEARBY:
            return True
        metric = self._matrix.series[row][2]
        place = self._rows(metric).index(row)
        return self._step_sizes(metric).can_be_at(place, position, first, last)

    def _rows(self, metric: str) -> list[int]:
        return [number for number, (_, _, other) in enumerate(self._matrix.series) if other == metric]

    def _step_sizes(self, metric: str) -> StepSizes:
        if metric not in self._steps:
            self._steps[metric] = step_sizes(self._logs[self._rows(metric)])
        return self._steps[metric]

    def _moved_with_most(self, position: int, row: int, size: float) -> bool:
        """Return whether the other series of a row's metric moved with a marker, and it by about as much."""
        metric = self._matrix.series[row][2]
        if (position, metric) not in self._moves:
            nights = np.arange(len(self._matrix.nights))
            before = (nights >= position - BEFORE) & (nights < position)
            since = (nights >= position) & (nights < position + SINCE)
            self._moves[position, metric] = self._step_sizes(metric).moves(before, since, LEAST)
        sizes, errors = self._moves[position, metric]
        place = self._rows(metric).index(row)
        others = np.delete(sizes, place)
        moved = all_moved(others, np.delete(errors, place))
        return not moved < MOVED and is_as_others(size, float(errors[place]), others, MARKED_BEYOND)

    def _is_of_base(self, position: int, row: int, size: float) -> bool:
        """Return whether the base's own values moved by most of a shift, the other way."""
        if self._of_base is None:
            self._of_base = self._read_base()
        _, step, metric = self._matrix.series[row]
        values = self._of_base.get((step, metric))
        if values is None:
            return True
        before, since = _around(values[np.newaxis], position)
        if min(np.isfinite(before).sum(), np.isfinite(since).sum()) < 1:
            return True
        moved = float(np.nanmedian(since) - np.nanmedian(before))
        return -moved * math.copysign(1.0, size) >= OF_BASE * abs(size)

    def _read_base(self) -> dict[tuple[str, str], Array]:
        """Return the logarithms of the base's own values in the nights of the matrix, by step and metric."""
        matrix, base = self._matrix, self._matrix.base
        assert base is not None  # only branches beside a base are judged
        metrics = sorted({metric for _, _, metric in matrix.series})
        own = read_matrix(self._connection, matrix.environment, base, None, metrics)
        column = {night.session_id: number for number, night in enumerate(own.nights)}
        logs = np.hstack([own.log_ratios(), np.full((len(own.series), 1), np.nan)])
        columns = [column.get(night.session_id, -1) for night in matrix.nights]
        return {(step, metric): logs[row, columns] for row, (_, step, metric) in enumerate(own.series)}


def _around(logs: Array, position: int) -> tuple[Array, Array]:
    return logs[:, max(0, position - BEFORE) : position], logs[:, position : position + SINCE]
