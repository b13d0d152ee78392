"""A finding: a difference of one step that is certain, or that has no direction, in one line."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from suites.metrics import RESET_COSTS, RESET_LEFT


class Bearing(StrEnum):
    """Whether a finding is good or bad news for the contender."""

    WORSE = "worse"
    """A regression of its own: `compare` and `try` exit with 1, and an improvement of its step is a trade."""

    BETTER = "better"

    TOLD = "told"
    """Neither, or too little to decide, such as another plan. It sets no exit code."""


@dataclass(frozen=True)
class Finding:
    """A difference between base and contender in one step, beside the verdict on it."""

    source: str
    """What found it: a name of SOURCES in history/comparison/findings/sources.py."""

    step: str
    metric: str
    """The metric that differs; empty where it is none of the registry."""

    bearing: Bearing
    text: str
    """The difference in one line, without the step: `WAL or redo +41.0 % (+38.2 to +44.1)`."""

    steps: int = 1
    """How many steps it was found in together, of which `step` is the first."""

    @property
    def is_worse(self) -> bool:
        """Whether it is a regression of its own."""
        return self.bearing is Bearing.WORSE

    @property
    def where(self) -> str:
        """The step, or how many were looked at together."""
        return self.step if self.steps == 1 else f"{self.steps} steps together"

    @property
    def line(self) -> str:
        """The difference in one line, with its step or steps."""
        return f"{self.where}: {self.text}"


def has_left_more(findings: Collection[Finding]) -> bool:
    """Return whether, by the findings of a step, its reset certainly costs less and certainly leaves more."""
    is_cheaper = any(found.bearing is Bearing.BETTER and found.metric in RESET_COSTS for found in findings)
    return is_cheaper and any(found.is_worse and found.metric in RESET_LEFT for found in findings)
