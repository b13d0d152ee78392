"""What a round keeps of values that cannot be."""

from runners.measuring.run_recorder import without_impossible
from suites.measurement import Measurement


def test_a_cost_below_zero_is_left_out_with_a_warning() -> None:
    """A counter that was set back spoils its metric, and not the round."""
    measured = Measurement({"qps": 1000.0, "server_cpu_us_per_op": -3.0, "qps_cv": 0.1}, (1.0,), ["slow"])
    kept = without_impossible(measured)
    assert kept.values == {"qps": 1000.0, "qps_cv": 0.1}
    slow, left_out = kept.warnings
    assert slow == "slow"
    assert left_out.startswith("left out: server_cpu_us_per_op cannot be -3 µs/query")


def test_what_can_be_stays_as_it_is() -> None:
    measured = Measurement({"qps": 1000.0, "latency_p99_ms": 0.0}, (1.0,))
    assert without_impossible(measured) is measured


def test_an_impossible_throughput_is_left_to_the_history_to_refuse() -> None:
    measured = Measurement({"qps": -1.0}, ())
    assert without_impossible(measured) is measured
