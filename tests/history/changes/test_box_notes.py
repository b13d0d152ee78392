"""Notes on a box: larger noise and shared bad nights are told as what they are, and raise no change."""

from collections.abc import Iterator

import numpy as np
import pytest

from history.changes.boxes.notes import (
    BoxNote,
    NoiseChange,
    SharedNight,
    box_notes,
    read_box_notes,
    without_shared,
)
from history.rendering.changes import box_note_lines
from history.series.matrix import SeriesMatrix
from history.series.series import Night
from history.store.records import Environment
from tests.history.conftest import Target
from tests.history.watched import BASE, NEW, QUIET, Nights, dated, night

SIGMA = 0.01
PLACE = Environment("db1", "write-heavy", "short, 4 clients")


def matrix(logs: np.ndarray, metric: str = "qps") -> SeriesMatrix:
    nights = tuple(Night(n, night(n), f"{NEW}-{n}", 1) for n in range(logs.shape[1]))
    series = tuple((row, f"step-{row}", metric) for row in range(len(logs)))
    return SeriesMatrix(PLACE, NEW, BASE, nights, series, np.exp(logs))


def noise(seed: int, series: int = 8, nights: int = 120) -> np.ndarray:
    return SIGMA * np.random.default_rng(seed).standard_normal((series, nights))


@pytest.mark.parametrize("factor", [1.8, 0.5])
def test_noise_that_changed_is_a_note_with_its_night_and_factor(factor: float) -> None:
    logs = noise(1)
    logs[:, 80:] *= factor
    (note,) = box_notes(matrix(logs))
    assert isinstance(note, NoiseChange)
    assert abs(note.since.session_id - 80) <= 15
    assert note.factor == pytest.approx(factor, rel=0.25)
    assert note.series == 8


def test_steady_noise_and_steps_are_no_notes() -> None:
    logs = np.concatenate([noise(seed, nights=200) for seed in range(4)])
    logs[:3, 100:] -= 6 * SIGMA
    assert box_notes(matrix(logs)) == ()
    logs[:, 120:] -= 6 * SIGMA
    assert box_notes(matrix(logs)) == ()


def test_shared_nights_are_notes_and_gaps_for_the_watch() -> None:
    logs = noise(3)
    logs[:, [100, 110]] -= 9 * SIGMA
    notes = box_notes(matrix(logs))
    assert [note.night.session_id for note in notes if isinstance(note, SharedNight)] == [100, 110]
    left = without_shared(matrix(logs))
    assert np.flatnonzero(np.isnan(left).all(axis=0)).tolist() == [100, 110]
    assert np.isnan(left).sum() == 16


def test_metrics_are_told_apart() -> None:
    slow, cost = matrix(noise(4)), matrix(noise(5))
    ratios = np.concatenate([slow.ratios, cost.ratios])
    ratios[:8, 100] *= 0.9
    series = tuple((row, f"step-{row % 8}", "qps" if row < 8 else "wal_bytes_per_op") for row in range(16))
    both = SeriesMatrix(PLACE, NEW, BASE, slow.nights, series, ratios)
    assert np.isnan(without_shared(both)[:, 100]).tolist() == [True] * 8 + [False] * 8


def test_notes_read_as_sentences() -> None:
    where = (PLACE, NEW)
    at = [Night(n, night(n), NEW, 1) for n in range(7)]
    notes: list[BoxNote] = [
        NoiseChange(*where, at[2], 1.84, 24),
        *(SharedNight(*where, "qps", at_night, -0.0812, 10) for at_night in at),
    ]
    assert list(box_note_lines(notes)) == [
        f"box db1 (write-heavy, short, 4 clients), {NEW}: the noise is 1.8 times what it was, since "
        f"{night(2):%Y-%m-%d}, over 24 series",
        f"box db1 (write-heavy, short, 4 clients), {NEW}: most series of qps moved together: "
        + ", ".join(f"{night(n):%Y-%m-%d} -8.1 %" for n in range(2, 7))
        + ", and 2 earlier nights",
    ]


@pytest.fixture
def nights(target: Target) -> Iterator[Nights]:
    with dated(target, Nights) as nights:
        yield nights


@pytest.mark.deep("records and judges months of nights")
def test_a_quiet_history_has_no_notes(nights: Nights) -> None:
    nights.more(QUIET)
    assert nights.judge().notes == ()
    with nights.store.database.reading() as connection:
        assert read_box_notes(connection) == ()
