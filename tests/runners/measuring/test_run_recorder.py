"""What a round keeps of values that cannot be."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from build.progress import Silent
from build.version import parse_version
from runners.measuring.request import Request
from runners.measuring.run_recorder import RunRecorder, without_impossible
from suites.definition import load_suite
from suites.measurement import Measurement
from tests.runners.measuring.journal import Journal


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


def test_what_disturbs_rounds_is_told_once() -> None:
    suite, shown = load_suite("write-heavy"), Silent()
    store: Any = Journal()
    request = Request((parse_version("postgres@18.6"),), suite, "smoke", suite.steps, 3)
    recorder = RunRecorder(request, store, 1, shown)
    for number, share in ((1, "40.0 %"), (1, "55.0 %"), (2, "41.0 %")):
        recorder.record_dropped(suite.steps[0], number, [f"other processes used {share} of a core"], {})
    assert shown.notes == [
        "update-inlist, round 1 is measured again: other processes used 40.0 % of a core; "
        "later rounds like it are not told"
    ]


def test_a_warning_is_told_once_however_its_figures_differ() -> None:
    suite, shown = load_suite("write-heavy"), Silent()
    store: Any = Journal()
    request = Request((parse_version("postgres@18.6"),), suite, "smoke", suite.steps, 3)
    recorder = RunRecorder(request, store, 1, shown)
    build = SimpleNamespace(version=request.versions[0], release="18.6")
    version: Any = SimpleNamespace(name="postgres@18.6", build=build, settings={})
    for number, step, dead in ((1, 0, "80,736"), (2, 0, "81552"), (1, 1, "7")):
        measured = Measurement({"qps": 1000.0}, (1.0,), [f"not reset: {dead} dead tuples are left"])
        recorder.record_round(suite.steps[step], number, [version], [measured], [], datetime.now(UTC))
    told = "dead tuples are left; later rounds like it are not told"
    assert shown.notes == [
        f"postgres@18.6 update-inlist (round 1): not reset: 80,736 {told}",
        f"postgres@18.6 {suite.steps[1].name} (round 1): not reset: 7 {told}",
    ]
