"""Distributions over arrays give what the product's functions give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation.distribution_arrays import (
    inverse_trigammas,
    log_bias,
    normals_below,
    student_margins,
)
from history.stats.distributions import normal_below, student_tail
from history.stats.noise_model import digamma, trigamma


@given(st.floats(1, 4000), st.sampled_from([1e-6, 1e-4, 0.0025, 0.01, 0.1, 0.4]))
def test_student_margins(df: float, tail: float) -> None:
    assert student_tail(float(student_margins(np.array(df), tail)), df) == pytest.approx(tail, rel=1e-9)


@given(st.floats(0.2, 1e3))
def test_gamma_functions(x: float) -> None:
    assert log_bias(np.array(x)) == pytest.approx(digamma(x) - np.log(x), rel=1e-6)
    assert trigamma(float(inverse_trigammas(np.array(trigamma(x))))) == pytest.approx(trigamma(x), rel=1e-6)


def test_normals_below() -> None:
    assert normals_below(np.array([[-30.0, 0.0]])).tolist() == [[normal_below(-30), 0.5]]
