"""What a row of the metric registry says of a quantity, and the kinds of values that it has."""

import math
from dataclasses import dataclass
from enum import StrEnum

from build.version import Engine


class Better(StrEnum):
    """The direction in which a metric improves."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


class Role(StrEnum):
    """The purpose of a metric. Metrics beside a verdict are shown in the order of roles, then of rows."""

    THROUGHPUT = "throughput"
    """Work per second. A change of a cost per query can explain a change of throughput."""

    COST = "cost"
    """The cost of a query. A change of throughput that no cost explains may be due to a stall."""

    LATENCY = "latency"
    VARIATION = "variation"
    """How much throughput varies from second to second within a step."""

    CONNECTIONS = "connections"
    """The cost of a connection that is open."""

    RESET = "reset"
    """The duration of the reset after a step, and the state before and after it."""

    CONTEXT = "context"
    """The amount of work, and other activity on the machine."""


class Detection(StrEnum):
    """How a series over nights is searched for changes (history/changes/detection.py)."""

    EVIDENCE = "evidence"
    """By evidence that adds up over nights, against the noise that the series has shown."""

    STEP = "step"
    """By the size of a step alone, for values that hardly scatter."""


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

    least_threshold: float
    """The smallest change that can be searched for: 5 standard deviations between equal commits."""


TIMED = RoundScatter(least=0.004, typical=0.025, spread=0.7, wobble=0.003, rounds=3, least_threshold=0.015)
"""Of what is timed: 0.6 to 10 % a round, and the layout of code in memory."""

COUNTED = RoundScatter(
    least=0.0005, typical=0.001, spread=0.5, wobble=0.001, rounds=2, least_threshold=0.0025
)
"""Of what is counted for fixed work: 0.1 % a pass (docs/instructions.md). A single pass cannot be slow by
chance, but it can have failed to do the work, so that the ends of a range have two. Where a search found
nothing between commits, their levels differed by 0.001 to 0.055 % (docs/decisions/0096)."""


YEARS = 1e8
"""Seconds, three years: longer than any step, reset or transaction."""

QPS = "qps"
"""The primary metric of suites that do not name another one."""


@dataclass(frozen=True)
class Metric:
    """A quantity with its unit and direction, and how the program uses it."""

    name: str
    unit: str
    better: Better
    role: Role
    description: str

    engines: frozenset[Engine] = frozenset(Engine)
    """The engines whose servers have this metric."""

    followed: bool = False
    """Whether the metric matters by itself, for steps that record it: it has a series over nights, and is
    shown in comparisons beside the one that decides the verdict."""

    judged: bool = False
    """Whether comparisons judge it beside the verdict (history/comparison/findings/), and nights search its
    series for changes; requires `followed`."""

    detection: Detection = Detection.EVIDENCE
    """How it is searched, if it is."""

    buys_speed: bool = False
    """Whether more of it may be the price of a faster step, such as CPU time: there it is no finding."""

    grows_with_work: bool = False
    """Whether a version that did more work in its round has more of it for that reason, as of what is to be
    cleaned up: it has moved where it has done so both in all and per transaction."""

    beside_of: str = QPS
    """The primary metric of the suites in whose comparisons it is shown."""

    part_of: str = ""
    """The metric that it is a part of: where it is not known whether both are worse, that one is named."""

    label: str = ""
    """The name in running text; empty if that is `name` (see label_of)."""

    noun: str = ""
    """What there is more or fewer of, as in `4.9 % more instructions`; empty if the label says it."""

    subject: str = ""
    """What of a step is slower or faster by a duration, as in `reset of insert`; empty for other metrics."""

    column: str = ""
    """The narrow heading of its column in the table of verdicts; empty for a metric without a column."""

    gives_way: int = 0
    """The order, from 1, in which a narrow terminal drops columns; a column with 0 is never dropped."""

    legend: str = ""
    """The explanation below the table of its column, or of its label; empty if none is needed."""

    followed_without: str = ""
    """The metric that says the same, so that this one has a series only where that is not recorded."""

    imported_only: bool = False
    """Whether it has a series in imported sessions alone: in our own, whose clients wait for each answer, it
    repeats the throughput."""

    imported_for: str = ""
    """The metric that this one replaces in imported sessions that do not have that metric.

    Other benchmarks measure the whole machine with vmstat and iostat, which includes the load generator."""

    short_name: str = ""
    """The short name that `bisect --metric` accepts besides `name`."""

    threshold_percent: float | None = None
    """Its own practical threshold, in percent, where that of throughput is too small; None for that one."""

    negligible: float = 0.0
    """The difference between versions that matters to nobody, in its unit: twice of next to nothing."""

    is_counted: bool = False
    """Whether it is counted for fixed work instead of timed: its interval is of another kind
    (history/comparison/exact.py). Requires `threshold_percent`."""

    of_proof: bool = False
    """Whether it is counted in a proof of equal work (suites/counting/fixed_work.py), not under callgrind."""

    scatter: RoundScatter = TIMED
    """How its rounds scatter, for searches that begin without any."""

    at_equal_work: bool = False
    """Whether a query costs less of it the longer a server works, as it does of full-page images, so that the
    versions of a round are compared at equal work (suites/accounting/work_curve.py)."""

    evidence: str = ""
    """The counted metric that tells which commits are worth timing when this one changed; empty without."""

    counted_in: str = ""
    """The metric with what its events are counted in, such as transactions; empty unless it counts events.

    Rounds without any are the rule, so that it has no ratio (history/stats/event_counts.py)."""

    event: str = ""
    """What its events are, after their number and what they were counted in: `failed`."""

    least: float = 0.0
    """The smallest value that it can have, in its unit: below zero only where something can shrink."""

    most: float = 1e18
    """The largest plausible value, in its unit. Unless a row says less, what no machine counts up to."""

    def threshold(self, timed: float) -> float:
        """Return the fraction beyond which it has changed: its own, else `timed`, that of throughput."""
        return timed if self.threshold_percent is None else self.threshold_percent / 100

    def threshold_at(self, base: float, threshold: float) -> float:
        """Return a threshold, a fraction, or what a negligible difference is of a base's value, if more."""
        return max(threshold, self.negligible / base) if base > 0 else threshold

    def is_plausible(self, value: float) -> bool:
        """Whether it can have a value: a number from `least` to `most`, and so neither infinite nor NaN."""
        return self.least <= value <= self.most

    def refusal(self, value: float) -> str:
        """What is wrong with a value that is not plausible."""
        if not math.isfinite(value):
            return f"not a finite number: {self.name}"
        return f"{self.name} cannot be {value:g} {self.unit}: it lies from {self.least:g} to {self.most:g}"
