"""The options of a comparison: which session and steps, and how they are judged."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from history.comparison.exact import is_exact
from history.stats.repeated_intervals import FAMILY_CONFIDENCE
from suites.metrics import INSTRUCTIONS, METRICS, PRIMARY

THRESHOLD = 2.0
"""The practical threshold in percent: changes up to this size are not worth a person's time."""

EXACT_THRESHOLD = METRICS[INSTRUCTIONS].threshold_percent or THRESHOLD
"""The same for what is counted for fixed work, in percent."""

CONFIDENCE = 100 * FAMILY_CONFIDENCE
"""The confidence in percent, for all steps of a contender and all looks together."""


class Instructions(StrEnum):
    """When a step with more instructions counts as a regression in the exit code, beside its verdict."""

    UNDECIDED = "undecided"
    """When its throughput has no verdict that is decided."""
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True)
class CompareOptions:
    """Which session and steps to compare, and how to judge them. None and () mean any."""

    suite: str | None = None
    profile: str | None = None
    machine: str | None = None
    """The host name of a box."""

    session: str | None = None
    """The uid of a session; None for the latest with both versions."""

    steps: tuple[str, ...] = ()
    metric: str = PRIMARY
    threshold_percent: float = THRESHOLD
    exact_threshold_percent: float = EXACT_THRESHOLD
    """The threshold of metrics that are counted for fixed work."""

    instructions: Instructions = Instructions.UNDECIDED
    """When more instructions set the exit code."""

    confidence_percent: float = CONFIDENCE
    since: datetime | None = None
    """Compare over all nights from this time on, instead of in the latest session."""


def threshold_of(metric: str, options: CompareOptions) -> float:
    """Return the threshold of a metric as a fraction: that of the options, and at least its own.

    That of instructions is the options' alone, whose default is its own.
    """
    percent = options.exact_threshold_percent if is_exact(metric) else options.threshold_percent
    own = METRICS[metric].threshold_percent if metric != INSTRUCTIONS else None
    return max(percent, own or 0.0) / 100
