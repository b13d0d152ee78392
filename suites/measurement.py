"""The result of one run of a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from suites.accounting.work_curve import WorkCurve
from suites.metrics import EQUAL_WORK

if TYPE_CHECKING:
    from suites.accounting.activity import Activity
    from suites.profiling.stacks import StepProfile


@dataclass(frozen=True)
class Measurement:
    """The numbers of one run of one step.

    `values` maps names of suites.metrics.METRICS to values in the unit of the metric. `per_second` is the
    throughput in queries/s of each whole second of the run, in order. `warnings` are reasons to doubt the
    numbers, such as a reset that could not be finished.
    """

    values: Mapping[str, float]
    per_second: Sequence[float]
    warnings: Sequence[str] = ()
    profile: "StepProfile | None" = None
    """The CPU profile; None if the step was not profiled."""
    kinds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The values of metrics by kind of transaction; empty if the suite tells no kinds apart."""
    curve: WorkCurve | None = None
    """What the server used by how many queries; None if the work is fixed in advance, or very short."""
    counted: "StepProfile | None" = None
    """The counted instructions by stack; None if they were not counted, or not kept apart."""
    waits: "StepProfile | None" = None
    """What the clients did, sampled (suites.profiling.profiler); None without a sample."""
    activities: Sequence["Activity"] = ()
    """What went on beside queries in which seconds, and when transactions stalled."""


def at_equal_work(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of a round with the costs that its versions had at equal work.

    It is that of the version that finished least, at most. Without the curves of all they are as they were.
    """
    curves = [measurement.curve for measurement in measurements if measurement.curve is not None]
    if not curves or len(curves) < len(measurements):
        return list(measurements)
    work = min(curve.work for curve in curves)
    return [
        replace(measurement, values={**measurement.values, **curve.per_query(work), EQUAL_WORK: work})
        for measurement, curve in zip(measurements, curves, strict=True)
    ]
