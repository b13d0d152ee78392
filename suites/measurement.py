"""What one run of a step yields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suites.profiling.stacks import StepProfile


@dataclass(frozen=True)
class Measurement:
    """The numbers of one run of one step.

    `values` maps a name of suites.metrics.METRICS to its value in that metric's unit. `per_second` is the
    throughput in queries/s of each whole second of the run, in order. `warnings` say what makes a reader
    doubt the numbers, such as a reset that could not be finished.
    """

    values: Mapping[str, float]
    per_second: Sequence[float]
    warnings: Sequence[str] = ()
    profile: "StepProfile | None" = None
    """Where the CPU time went, when the step was profiled."""
