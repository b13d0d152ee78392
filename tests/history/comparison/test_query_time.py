"""How far CPU time explains that queries take longer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.comparison.query_time import query_time
from history.comparison.verdict import Judged, MetricChange

MORE, LESS, SAME, UNKNOWN = MetricChange.MORE, MetricChange.LESS, MetricChange.SAME, MetricChange.UNKNOWN
CPU, CLIENT, COUNTED = "server_cpu_us_per_op", "client_cpu_us_per_op", "instructions_per_op"


def judged(metric: str, base: float, ratio: float, change: MetricChange) -> Judged:
    return Judged(metric, base, base * ratio, ratio, None, change, 3, 0.02, "round")


def at(qps: float, ratio: float) -> Judged:
    return judged("qps", qps, ratio, LESS if ratio < 1 else MORE)


@pytest.mark.parametrize(
    ("metrics", "clients", "cores", "longer", "explained"),
    [
        # One client: a query takes 100 µs, 80 of them on a core. 4 % more of these are 3 of 41 %.
        ([at(10_000, 0.71), judged(CPU, 80, 1.04, MORE)], 1, 48, 0.408, {CPU: 0.032}),
        ([at(10_000, 0.71), judged(CPU, 80, 1.51, MORE)], 1, 48, 0.408, {CPU: 0.408}),
        # Eight clients on two cores keep these busy: their waiting for a core is due to the CPU time.
        ([at(25_000, 0.5), judged(CPU, 80, 2.0, MORE)], 8, 2, 1.0, {CPU: 1.0}),
        # Eight clients on many cores wait most of the time.
        ([at(25_000, 0.5), judged(CPU, 80, 2.0, MORE)], 8, 48, 1.0, {CPU: 0.25}),
        # What moved the other way, or is not known, explains nothing.
        ([at(10_000, 0.71), judged(CPU, 80, 0.9, LESS)], 1, 1, 0.408, {}),
        ([at(10_000, 0.71), judged(CPU, 80, 1.4, UNKNOWN)], 1, 1, 0.408, {}),
        # Counts tell the growth that the noise of times hides.
        (
            [at(10_000, 0.8), judged(CPU, 80, 1.2, UNKNOWN), judged(COUNTED, 1e5, 1.25, MORE)],
            1,
            1,
            0.25,
            {COUNTED: 0.2},
        ),
        (
            [at(10_000, 0.8), judged(CPU, 60, 1.25, MORE), judged(CLIENT, 40, 1.25, MORE)],
            1,
            1,
            0.25,
            {CPU: 0.15, CLIENT: 0.1},
        ),
        # A faster step.
        ([at(10_000, 1.25), judged(CPU, 80, 0.75, LESS)], 1, 1, -0.2, {CPU: -0.2}),
    ],
)
def test_what_cpu_time_explains(
    metrics: list[Judged], clients: int, cores: int, longer: float, explained: dict[str, float]
) -> None:
    found = query_time(metrics, clients, cores)
    assert found is not None
    assert found.longer == pytest.approx(longer, abs=5e-4)
    parts = {name: part for name, (_, part) in found.explained.items()}
    assert parts == pytest.approx(explained, abs=5e-4)
    assert found.rest == pytest.approx(longer - sum(explained.values()), abs=1e-3)


@pytest.mark.parametrize(
    ("metrics", "clients", "cores"),
    [
        ([judged(CPU, 80, 1.04, MORE)], 1, 1),
        ([at(10_000, 0.71)], 1, 1),
        ([at(10_000, 0.71), judged(CPU, 80, 1.04, MORE)], None, 1),
        ([at(10_000, 0.71), judged(CPU, 80, 1.04, MORE)], 1, 0),
    ],
)
def test_nothing_is_said_without_rate_cpu_time_or_clients(
    metrics: list[Judged], clients: int | None, cores: int
) -> None:
    assert query_time(metrics, clients, cores) is None


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(1, 1e5), st.integers(1, 200), st.integers(1, 200))
def test_no_cost_explains_more_than_its_own_growth(
    rate: float, growth: float, cpu: float, clients: int, cores: int
) -> None:
    change = MORE if growth > 1 else LESS
    found = query_time([at(1000, rate), judged(CPU, cpu, growth, change)], clients, cores)
    assert found is not None
    assert 0 <= found.explained_share <= 1
    for own, part in found.explained.values():
        assert abs(part) <= abs(own)
        assert part * found.longer >= 0, "it moved the way that explains the change"
