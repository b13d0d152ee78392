"""The result of one run of a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    counted: "StepProfile | None" = None
    """The counted instructions by stack; None if they were not counted, or not kept apart."""
