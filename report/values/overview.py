"""The overview of a site: the latest night of every environment, with what is decided and what is not."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from history.comparison.result import ContenderComparison
from history.comparison.verdict import TRAITS
from history.store.records import Environment
from report.values.catalog import NightEntry, PlaceNights
from report.values.comparisons import Comparisons


@dataclass(frozen=True)
class LatestComparison:
    """A branch in the latest night of an environment that has it and its base."""

    place: Environment
    branch: str
    night: NightEntry
    comparison: ContenderComparison

    @property
    def undecided(self) -> int:
        """The number of steps without a decided verdict."""
        verdicts = [step.judged.verdict for step in self.comparison.steps]
        return sum(verdict is None or TRAITS[verdict].is_open for verdict in verdicts)

    @property
    def mean(self) -> float | None:
        """The geometric mean of its ratios of throughput."""
        _, means = self.comparison.geometric_means()
        return means.get(self.comparison.steps[0].judged.metric) if self.comparison.steps else None

    @property
    def visible(self) -> Mapping[str, float | None]:
        """The smallest visible change of throughput by step, as a fraction; None when it is unknown."""
        return {step.step: step.smallest_visible for step in self.comparison.steps}


@dataclass(frozen=True)
class BoxState:
    """The latest night of a box."""

    box: str
    started_at: datetime
    uid: str
    failures: Mapping[str, str]
    """What its last night lacks: branch, perhaps with a step, and why."""


def latest_comparisons(comparisons: Comparisons, nights: PlaceNights) -> tuple[LatestComparison, ...]:
    """Return every branch of an environment against the base, in the latest night that has both."""
    found: dict[str, LatestComparison] = {}
    wanted = set(nights.contenders)
    for night in reversed(nights.nights):
        if not wanted:
            break
        if night.base is None or night.base not in night.built:
            continue
        here = sorted(wanted & night.built)
        wanted -= set(here)
        for branch in here:
            one = comparisons.of(night.uid, night.versions[night.base], night.versions[branch])
            if one is not None:
                found[branch] = LatestComparison(nights.place, branch, night, one)
    return tuple(found[branch] for branch in sorted(found))
