"""The overview of a site: the latest night of every environment, with what is decided and what is not."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from history.comparison.result import ContenderComparison
from history.store.records import Environment
from report.values.catalog import Catalog, NightEntry, PlaceNights
from report.values.comparisons import Comparisons
from suites.metric import Metric
from suites.metrics import METRICS


@dataclass(frozen=True)
class LatestComparison:
    """A branch in the latest night of an environment that has it and its base, judged by one metric."""

    place: Environment
    branch: str
    night: NightEntry
    comparison: ContenderComparison

    @property
    def metric(self) -> Metric:
        """The metric that its steps are judged by."""
        return METRICS[self.comparison.judged_metrics[0]]

    @property
    def undecided(self) -> int:
        """The number of steps without a decided verdict."""
        return sum(step.is_open for step in self.comparison.steps)

    @property
    def mean(self) -> float | None:
        """The geometric mean of its ratios."""
        _, means = self.comparison.geometric_means()
        return means.get(self.metric.name)

    @property
    def visible(self) -> Mapping[str, float | None]:
        """The smallest visible change by step, as a fraction; None when it is unknown.

        What is counted shows every change beyond its own threshold.
        """
        return {
            step.step: step.judged.threshold if self.metric.is_counted else step.smallest_visible
            for step in self.comparison.steps
        }


@dataclass(frozen=True)
class BoxState:
    """The latest night of a box."""

    box: str
    started_at: datetime
    uid: str
    failures: Mapping[str, str]
    """What its last night lacks: branch, perhaps with a step, and why."""


def latest_comparisons(
    comparisons: Comparisons, catalog: Catalog, nights: PlaceNights
) -> tuple[LatestComparison, ...]:
    """Return every branch of an environment against the base, in the latest night that has both.

    A branch is there once for each metric that sessions are judged by, as far as its nights have been.
    """
    found: dict[tuple[str, str], LatestComparison] = {}
    wanted = {
        (branch, catalog.by_id[night.session_id].judged_by)
        for night in nights.nights
        for branch in night.built - {night.base}
    }
    for night in reversed(nights.nights):
        if not wanted:
            break
        if night.base is None or night.base not in night.built:
            continue
        entry = catalog.by_id[night.session_id]
        here = sorted(wanted & {(branch, entry.judged_by) for branch in night.built - {nights.base}})
        wanted -= set(here)
        for branch, metric in here:
            compared = comparisons.of(entry, night.versions[night.base], night.versions[branch])
            if compared is not None and compared.steps:
                found[branch, metric] = LatestComparison(nights.place, branch, night, compared)
    return tuple(found[key] for key in sorted(found))
