"""Critical values against published tables, and against walks that are simply made."""

from itertools import pairwise

import numpy as np
import pytest

from history.stats.repeated_intervals import (
    SHAPE,
    USUAL_CONSTANTS,
    USUAL_ERROR,
    USUAL_LOOKS,
    USUAL_SHAPE,
    Design,
    crossing_probability,
    power_boundary,
    searched_constant,
)

FIVE = (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("looks", "shape", "error", "last"),
    [
        # Jennison & Turnbull, Group Sequential Methods (2000): table 2.3, O'Brien & Fleming; 2.1, Pocock.
        (FIVE, 0.0, 0.05, 2.040),
        ((1, 2), 0.0, 0.05, 1.977),
        ((1, 2, 3, 4), 0.0, 0.01, 2.609),
        (FIVE, 0.5, 0.05, 2.413),
        ((1, 2), 0.5, 0.05, 2.178),
        (FIVE, 0.5, 0.01, 2.986),
        # The same, table 2.9: Wang & Tsiatis with shape 0.25.
        (FIVE, 0.25, 0.05, 2.136),
        ((1,), 0.25, 0.05, 1.960),
    ],
)
def test_published_constants(looks: tuple[int, ...], shape: float, error: float, last: float) -> None:
    assert power_boundary(error, looks, shape)[-1] == pytest.approx(last, abs=0.0006)


def test_lan_demets_spending() -> None:
    """Lan & DeMets' bounds of O'Brien-Fleming type for five looks at 5 % spend 0.05 in the end.

    As printed by Reboussin, DeMets, Kim & Lan (Controlled Clinical Trials 21, 2000).
    """
    bounds = (4.877, 3.357, 2.680, 2.290, 2.031)
    assert crossing_probability(bounds, FIVE) == pytest.approx(0.05, abs=1e-4)
    assert crossing_probability(bounds[:2], FIVE[:2]) == pytest.approx(0.00079, abs=2e-5)


def test_unequal_looks_against_simulated_walks() -> None:
    looks = (3, 4, 7, 12, 20)
    bounds = power_boundary(0.05, looks, 0.3)
    walks = np.random.default_rng(1).normal(size=(200_000, 20)).cumsum(axis=1)
    crossed = np.zeros(len(walks), bool)
    for look, bound in zip(looks, bounds, strict=True):
        crossed |= np.abs(walks[:, look - 1]) / look**0.5 >= bound
    # Four binomial deviations of 200,000: sqrt(.05 * .95 / 200,000) = 0.05 %.
    assert crossed.mean() == pytest.approx(0.05, abs=0.002)


def test_error_is_spent_exactly_and_less_of_it_is_wider() -> None:
    looks = tuple(range(3, 21))
    narrow, wide = power_boundary(0.05, looks, 0.2), power_boundary(0.002, looks, 0.2)
    assert crossing_probability(wide, looks) == pytest.approx(0.002, rel=1e-4)
    assert all(inner < other for inner, other in zip(narrow, wide, strict=True))
    assert all(later < earlier for earlier, later in pairwise(wide))


def test_a_fine_grid_finds_the_same() -> None:
    """Plain sums over a grid of a hundredth, without any rule of integration."""
    looks, grid = tuple(range(3, 9)), np.linspace(-20, 20, 4001)
    width = grid[1] - grid[0]
    bounds = power_boundary(0.002, looks, 0.2)
    density = np.exp(-(grid**2) / 2 / looks[0]) / np.sqrt(2 * np.pi * looks[0])
    gain = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * width
    crossed = 0.0
    for look, bound in zip(looks, bounds, strict=True):
        # Of the cell that the edge cuts only the part outside has crossed.
        outside = np.clip((np.abs(grid) - bound * look**0.5) / width + 0.5, 0, 1)
        crossed += float((density * outside).sum() * width)
        density = np.convolve(density * (1 - outside), gain, mode="same")
    assert crossed == pytest.approx(0.002, rel=1e-4)


@pytest.mark.parametrize("steps", range(1, len(USUAL_CONSTANTS) + 1))
def test_the_constants_that_are_kept_are_what_a_search_finds(steps: int) -> None:
    error = USUAL_ERROR / steps
    weights = [(look / USUAL_LOOKS[-1]) ** (USUAL_SHAPE - 0.5) for look in USUAL_LOOKS]
    found = searched_constant(error, USUAL_LOOKS, weights)
    assert power_boundary(error, USUAL_LOOKS, USUAL_SHAPE)[-1] == pytest.approx(found, rel=1e-8)


def test_the_constants_that_are_kept_are_those_of_the_default_design() -> None:
    design = Design()
    assert tuple(range(design.least, design.cap + 1)) == USUAL_LOOKS
    assert SHAPE == USUAL_SHAPE
    assert 1 - design.confidence == pytest.approx(USUAL_ERROR)


def test_misuse_is_an_error() -> None:
    for error in (0.0, 1.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            power_boundary(error, (1, 2), 0.0)
    for looks in ((), (0, 1), (2, 2), (3, 1)):
        with pytest.raises(ValueError, match="rising"):
            power_boundary(0.05, looks, 0.0)
