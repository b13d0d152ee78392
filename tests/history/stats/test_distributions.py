"""Distributions against values of mpmath with 40 digits, over all that verdicts use, and closed forms."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.stats.distributions import (
    normal_below,
    normal_quantile,
    student_quantile,
    student_tail,
)
from history.stats.noise_model import digamma, trigamma

EXACT = 1e-11

TAILS = (1e-15, 1e-9, 1e-4, 0.01, 0.2, 0.45)

STUDENT = {
    1.5: (5219469427.344636, 521946.9427334, 242.2640988465, 11.19731617957, 1.153364378295, 0.1476266434609),
    2.5: (876543.7882269, 3489.58339537, 34.86796932111, 5.353111173031, 1.010163874722, 0.1388147679195),
    3.3: (39389.58904315, 598.684493884, 18.20971056782, 4.226609156668, 0.9645672801244, 0.1355909188888),
    5: (1568.391192823, 98.93722464837, 9.677566300883, 3.364929998907, 0.9195437802408, 0.1321751752317),
    7.75: (185.9595632452, 31.16880103626, 6.575529352226, 2.918871608695, 0.8904932184346, 0.1298393563184),
    12: (51.2501321777, 15.89481336227, 5.263273007826, 2.680997993121, 0.8726092915881, 0.1283473807956),
    30: (14.92585847514, 8.445862796274, 4.233985957272, 2.457261542401, 0.8537672614713, 0.1267296131321),
    64.5: (10.4006246236, 6.973476765805, 3.944236875014, 2.385563200823, 0.8472295136272, 0.1261571031543),
    250: (8.478897096665, 6.22678226052, 3.774912790618, 2.341356118386, 0.8430613607403, 0.1257890603313),
    1000: (8.070281832299, 6.05369027208, 3.732851604575, 2.330082674756, 0.8419808221624, 0.1256932625187),
}
"""The t that is exceeded with each probability of TAILS, by degrees of freedom."""

NORMAL = (
    7.941345326170997, 5.997807015007687, 3.719016485455681,
    2.326347874040841, 0.8416212335729142, 0.125661346855074,
)  # fmt: skip

NORMAL_BELOW = {
    -30: 4.906713927148187e-198, -8: 6.220960574271784e-16, -2.5: 0.006209665325776135,
    -0.1: 0.460172162722971, 1: 0.8413447460685429, 3.7: 0.9998922002665226, 8: 0.9999999999999994,
}  # fmt: skip

GAMMA = {
    0.3: (-3.502524222200133, 12.24536454610773),
    0.5: (-1.963510026021423, 4.934802200544679),
    1.0: (-0.5772156649015329, 1.644934066848226),
    1.7: (0.208547874873494, 0.7932328301639984),
    4.5: (1.388870926359529, 0.2487251030390104),
    9.9: (2.241180316606381, 0.1062830416287406),
    10.0: (2.251752589066721, 0.1051663356816857),
    33.3: (3.490467238520243, 0.03048544409533889),
    1e6: (13.81551005796419, 1.000000500000167e-6),
}
"""Digamma and trigamma."""

freedoms = st.floats(1, 1000) | st.integers(1, 80).map(float)
tails = st.floats(1e-15, 0.45) | st.floats(-15, -1).map(lambda power: 10.0**power)


@pytest.mark.parametrize("df", STUDENT)
def test_student_quantile(df: float) -> None:
    for tail, exact in zip(TAILS, STUDENT[df], strict=True):
        assert -student_quantile(df, tail) == pytest.approx(exact, rel=EXACT)
        assert student_tail(exact, df) == pytest.approx(tail, rel=EXACT)
        assert student_tail(-exact, df) == pytest.approx(1 - tail, rel=EXACT)


@given(freedoms, tails)
def test_student_tail_is_the_inverse_of_the_quantile(df: float, tail: float) -> None:
    assert student_tail(-student_quantile(df, tail), df) == pytest.approx(tail, rel=EXACT)


@given(st.integers(1, 40).map(lambda half: 2.0 * half), st.floats(-6, 6))
def test_student_tail_of_an_even_number_is_a_sum(df: float, t: float) -> None:
    """Abramowitz & Stegun 26.7.4."""
    sine, square = t / math.sqrt(df + t * t), df / (df + t * t)
    term, total = 1.0, 1.0
    for number in range(1, int(df / 2)):
        term *= (2 * number - 1) / (2 * number) * square
        total += term
    assert student_tail(t, df) == pytest.approx((1 - sine * total) / 2, abs=1e-13)


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


def test_normal_quantile() -> None:
    for tail, exact in zip(TAILS, NORMAL, strict=True):
        assert -normal_quantile(tail) == pytest.approx(exact, rel=EXACT)


@given(tails)
def test_normal_below_is_the_inverse_of_the_quantile(tail: float) -> None:
    assert normal_below(normal_quantile(tail)) == pytest.approx(tail, rel=EXACT)


@pytest.mark.parametrize("x", NORMAL_BELOW)
def test_normal_below(x: float) -> None:
    assert normal_below(x) == pytest.approx(NORMAL_BELOW[x], rel=EXACT)


@pytest.mark.parametrize("x", GAMMA)
def test_gamma_functions(x: float) -> None:
    assert (digamma(x), trigamma(x)) == pytest.approx(GAMMA[x], rel=1e-8)


@given(st.floats(0.3, 1e6))
def test_gamma_functions_rise_by_their_recurrence(x: float) -> None:
    assert digamma(x + 1) - digamma(x) == pytest.approx(1 / x, rel=1e-8, abs=1e-9)
    assert trigamma(x) - trigamma(x + 1) == pytest.approx(1 / x**2, rel=1e-8, abs=1e-14)


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
