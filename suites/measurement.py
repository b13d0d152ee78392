"""The result of one run of a step, and how such results scatter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    counted: "StepProfile | None" = None
    """The counted instructions by stack; None if they were not counted, or not kept apart."""


@dataclass(frozen=True)
class RoundScatter:
    """What is known, before anything is measured, of how log ratios of single rounds of a metric scatter."""

    least: float
    """The smallest standard deviation that rounds can have."""

    typical: float
    spread: float
    """The prior of the standard deviation is lognormal: `typical` times e to the power of +-2 `spread` in 95
    of 100 cases."""

    wobble: float
    """The standard deviation of the lasting difference between builds of code that does the same work."""

    rounds: int
    """The rounds of a version before anything is concluded from them."""
