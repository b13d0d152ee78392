"""Percentiles of sysbench's histogram against the events themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suites.generators.load import PERCENTILES, histogram_percentiles

buckets = st.dictionaries(
    st.floats(0.001, 1e5, allow_nan=False), st.integers(0, 400), min_size=1, max_size=60
).map(lambda found: sorted(found.items()))


@given(buckets)
def test_percentiles_are_those_of_the_events(histogram: list[tuple[float, int]]) -> None:
    values, counts = [value for value, _ in histogram], [count for _, count in histogram]
    found = histogram_percentiles(values, counts)
    events = np.repeat(values, counts)
    if not events.size:
        assert found == {}
        return
    for name, share in PERCENTILES.items():
        assert found[name] == np.percentile(events, share, method="inverted_cdf"), name


@given(buckets)
def test_percentiles_rise_and_are_values(histogram: list[tuple[float, int]]) -> None:
    values, counts = [value for value, _ in histogram], [count for _, count in histogram]
    found = list(histogram_percentiles(values, counts).values())
    assert found == sorted(found)
    assert set(found) <= {value for value, count in histogram if count}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([100, 0, 0], {"p50": 1.0, "p95": 1.0, "p99": 1.0, "p999": 1.0}),
        ([50, 45, 5], {"p50": 1.0, "p95": 2.0, "p99": 3.0, "p999": 3.0}),
        ([49, 46, 5], {"p50": 2.0, "p95": 2.0, "p99": 3.0, "p999": 3.0}),
        ([989, 10, 1], {"p50": 1.0, "p95": 1.0, "p99": 2.0, "p999": 2.0}),
    ],
)
def test_borders_belong_to_the_lower_bucket(counts: list[int], expected: dict[str, float]) -> None:
    assert histogram_percentiles([1.0, 2.0, 3.0], counts) == expected


def test_no_events_have_no_percentiles() -> None:
    assert histogram_percentiles([], []) == {}
    assert histogram_percentiles([1.0, 2.0], [0, 0]) == {}
