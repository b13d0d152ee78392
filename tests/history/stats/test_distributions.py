"""Distributions against scipy's, over everything that verdicts use, and against closed forms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from history.stats.distributions import (
    normal_below,
    normal_quantile,
    student_quantile,
    student_tail,
)

EXACT = 1e-11

freedoms = st.floats(1, 1000) | st.integers(1, 80).map(float)
tails = st.floats(1e-15, 0.45) | st.floats(-15, -1).map(lambda power: 10.0**power)


@given(freedoms, tails)
def test_student_quantile(df: float, tail: float) -> None:
    assert student_quantile(df, tail) == pytest.approx(float(special.stdtrit(df, tail)), rel=EXACT)
    assert student_tail(-student_quantile(df, tail), df) == pytest.approx(tail, rel=EXACT)


@pytest.mark.parametrize("tail", [1e-12, 1e-4, 0.2, 0.4999])
def test_student_quantile_in_closed_form(tail: float) -> None:
    """One, two and four degrees of freedom (Shaw, Journal of Computational Finance 9, 2006)."""
    product = 4 * tail * (1 - tail)
    four = math.cos(math.acos(math.sqrt(product)) / 3) / math.sqrt(product)
    for df, exact in (
        (1, 1 / math.tan(math.pi * tail)),
        (2, (1 - 2 * tail) * math.sqrt(2 / product)),
        (4, 2 * math.sqrt(four - 1)),
    ):
        assert student_quantile(df, tail) == pytest.approx(-exact, rel=1e-9 if tail > 0.4 else EXACT)


@given(freedoms, st.floats(0.51, 0.999999))
def test_student_quantile_is_odd(df: float, probability: float) -> None:
    assert student_quantile(df, probability) == pytest.approx(-student_quantile(df, 1 - probability))


def test_the_middle_is_zero() -> None:
    assert student_quantile(7, 0.5) == normal_quantile(0.5) == 0


@given(tails)
def test_normal_quantile(tail: float) -> None:
    assert normal_quantile(tail) == pytest.approx(float(special.ndtri(tail)), rel=EXACT)


@given(st.floats(-30, 8))
def test_normal_below(x: float) -> None:
    assert normal_below(x) == pytest.approx(float(special.ndtr(x)), rel=EXACT)


@pytest.mark.parametrize("probability", [0.0, 1.0, -1.0, math.nan])
def test_there_is_no_such_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        student_quantile(3, probability)
    with pytest.raises(ValueError, match="between 0 and 1"):
        normal_quantile(probability)


@pytest.mark.parametrize("df", [0.0, 0.5, math.inf, math.nan])
def test_there_are_no_such_degrees_of_freedom(df: float) -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        student_quantile(df, 0.1)
