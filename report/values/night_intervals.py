"""The intervals of a night: how far each branch is known against the base, from the rounds of its session."""

from collections.abc import Mapping

from history.comparison.result import Comparison, StepComparison
from report.values.catalog import NightEntry

NightInterval = tuple[float | None, float | None, bool]
"""Low and high of the ratio, None without an interval, and whether the verdict is open."""

VERY_WIDE = 100
"""From this quotient of its ends on an interval says nothing, and no axis has room for it."""

NightIntervals = Mapping[str, Mapping[str, NightInterval]]
"""By branch and step, of the metric that the session is judged by; empty for a session without rounds."""


def night_intervals(comparison: Comparison | None, night: NightEntry | None) -> NightIntervals:
    """Return the intervals of a night against its base, as `compare` gives them for its session."""
    if comparison is None or night is None or night.base is None:
        return {}
    if night.versions[night.base] != str(comparison.base):
        return {}
    branches = {version: branch for branch, version in night.versions.items()}
    return {
        branches[str(contender.contender)]: {step.step: _interval(step) for step in contender.steps}
        for contender in comparison.contenders
        if str(contender.contender) in branches
    }


def _interval(step: StepComparison) -> NightInterval:
    interval = step.judged.interval
    if interval is None or interval.high > VERY_WIDE * interval.low:
        return None, None, step.is_open
    return round(interval.low, 4), round(interval.high, 4), step.is_open
