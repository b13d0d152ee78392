"""The overview of a site: what is new, what is open, and the latest night of every environment."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import Connection

from history.changes.level_shift import Direction
from history.changes.report import ChangeReport
from history.comparison.compare import is_regression
from history.comparison.result import ContenderComparison
from history.comparison.verdict import Verdict
from history.errors import stored_version
from history.series.series import Point, read_series
from history.stats.change_points.online_cusum import MIN_NIGHTS
from history.store.records import ChangeStatus, Environment
from report.values.bisect_page import BisectPage
from report.values.box_states import LONGEST_NIGHT, BoxState, read_box_states
from report.values.catalog import Catalog, NightEntry, PlaceNights, SessionKind
from report.values.commits import Commits
from report.values.comparisons import Comparisons, base_of
from suites.metrics import METRICS, Metric, Role

FOR_THE_WORSE = (Direction.WORSE, Direction.MIXED)
"""The directions of changes of which at least one series got worse."""

MAX_CARDS = 8
"""The changes for the worse that the first screen shows; the list of changes has all."""

SHOWN_NIGHTS = 40
"""The last nights of a change's main series that are drawn."""

NIGHTS_BEFORE = 10
"""The nights before a change that are drawn in any case, so that it is seen."""

SETTLED_DAYS = 14
"""How many days a change stays on the overview after it was closed, acknowledged or explained."""


@dataclass(frozen=True)
class LatestComparison:
    """A branch in the latest night of an environment that has it and its base, judged by one metric."""

    place: Environment
    branch: str
    night: NightEntry
    comparison: ContenderComparison
    nights: int
    """The nights of the branch in the environment."""

    @property
    def metric(self) -> Metric:
        """The metric that its steps are judged by."""
        return METRICS[self.comparison.judged_metrics[0]]

    @property
    def undecided(self) -> int:
        """The number of steps without a decided verdict."""
        return sum(step.is_open for step in self.comparison.steps)

    @property
    def worse(self) -> int:
        """The number of steps that are worse: with one, `compare` exits with 1."""
        return sum(is_regression(step) for step in self.comparison.steps)

    def count(self, verdict: Verdict) -> int:
        """Return the number of steps with a verdict, without those that are worse in spite of it."""
        return sum(
            step.judged.verdict is verdict and (verdict is Verdict.REGRESSION or not is_regression(step))
            for step in self.comparison.steps
        )

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
class ChangeNews:
    """An open change as the overview tells it."""

    report: ChangeReport
    is_new: bool
    """Whether it was found in the last night."""

    points: tuple[Point, ...]
    """The last nights of its main series."""

    bisect: BisectPage | None
    """The latest bisect that looks for it."""

    commits: Commits
    """Those between its nights."""


@dataclass(frozen=True)
class Overview:
    """The first screen: what is new, what is open, and what could not be measured."""

    boxes: tuple[BoxState, ...]
    worse: tuple[ChangeNews, ...]
    """The most important open changes for the worse, at most MAX_CARDS, the most important first."""

    open_worse: tuple[int, int]
    """How many open changes for the worse are new, and how many there are."""

    others: tuple[ChangeReport, ...]
    """Open changes for the better, and those without a better direction, latest first."""

    settled: tuple[ChangeReport, ...]
    """Changes closed, acknowledged or explained within SETTLED_DAYS, latest first."""

    latest: tuple[LatestComparison, ...]
    """All branches in their latest session, without calibrations."""

    by_hand: tuple[LatestComparison, ...]
    """The comparisons of the latest sessions that are no nights."""

    @property
    def nightly(self) -> tuple[BoxState, ...]:
        """The boxes that have nights, and are not retired."""
        return tuple(box for box in self.boxes if box.has_nights and not box.is_retired)

    @property
    def last_night(self) -> datetime | None:
        """When the last night of all boxes began; None without nights."""
        return max((box.at for box in self.nightly), default=None)

    @property
    def blind(self) -> tuple[BoxState, ...]:
        """The boxes on which nothing could be measured in their last night."""
        return tuple(box for box in self.nightly if box.is_blind)

    @property
    def missing(self) -> tuple[BoxState, ...]:
        """The boxes that have nights and did not report in the last one."""
        return tuple(box for box in self.nightly if box.is_missing)

    @property
    def of_last_night(self) -> tuple[LatestComparison, ...]:
        """The comparisons of the last night, and those by hand that are not older."""
        return tuple(entry for entry in (*self.latest, *self.by_hand) if self.is_of_last_night(entry))

    def is_of_last_night(self, entry: LatestComparison) -> bool:
        """Return whether a comparison is of the last night; without nights, of the latest sessions."""
        last = self.last_night
        if last is None:
            return entry.night.measured_at is None
        return last - entry.night.started_at <= LONGEST_NIGHT

    @property
    def verdicts(self) -> tuple[LatestComparison, ...]:
        """The comparisons whose verdict is the news: too few nights are there to search for changes.

        Those with most steps that are worse come first, then those with most undecided steps.
        """
        found = [entry for entry in self.of_last_night if entry.nights < MIN_NIGHTS]
        return tuple(sorted(found, key=_badness, reverse=True))

    @property
    def told_verdicts(self) -> tuple[LatestComparison, ...]:
        """Those of `verdicts` that are worse in any step; a single one in any case."""
        if len(self.verdicts) == 1:
            return self.verdicts
        return tuple(entry for entry in self.verdicts if entry.worse)


def _badness(entry: LatestComparison) -> tuple[int, int, int]:
    return entry.worse, entry.count(Verdict.REGRESSION), entry.undecided


class ChangeLeads(Protocol):
    """Knows what leads from a change to its commit."""

    def bisect(self, report: ChangeReport) -> BisectPage | None:
        """Return the latest bisect that looks for a change; None without one."""

    def commits(self, report: ChangeReport) -> Commits:
        """Return the commits between the nights of a change."""


def read_overview(
    connection: Connection,
    catalog: Catalog,
    reports: Sequence[ChangeReport],
    latest: Sequence[LatestComparison],
    by_hand: Sequence[LatestComparison],
    leads: ChangeLeads,
) -> Overview:
    """Return the first screen of a site."""
    boxes = read_box_states(connection, catalog)
    last = max((box.at for box in boxes if box.has_nights), default=catalog.data_until)
    opened = [report for report in reports if report.change.status is ChangeStatus.OPEN]
    worse = [report for report in opened if report.change.direction in FOR_THE_WORSE]
    ordered = sorted(worse, key=lambda report: _importance(report, last), reverse=True)
    newest = catalog.data_until
    return Overview(
        boxes,
        tuple(
            ChangeNews(
                report,
                _is_new(report, last),
                _last_points(connection, report),
                leads.bisect(report),
                leads.commits(report),
            )
            for report in ordered[:MAX_CARDS]
        ),
        (sum(_is_new(report, last) for report in worse), len(worse)),
        _latest_first(report for report in opened if report.change.direction not in FOR_THE_WORSE),
        _latest_first(
            report
            for report in reports
            if report.change.status is not ChangeStatus.OPEN
            and newest is not None
            and newest - report.change.updated_at <= timedelta(days=SETTLED_DAYS)
        ),
        tuple(
            entry
            for entry in latest
            if catalog.by_id[entry.night.session_id].kind is not SessionKind.CALIBRATION
        ),
        tuple(by_hand),
    )


def _latest_first(reports: Iterable[ChangeReport]) -> tuple[ChangeReport, ...]:
    return tuple(sorted(reports, key=lambda report: report.change.updated_at, reverse=True))


def _is_new(report: ChangeReport, last: datetime | None) -> bool:
    """Return whether a change was found in the last night, or after it; without nights, by the data."""
    return last is not None and report.change.found_at >= last - LONGEST_NIGHT


def _importance(report: ChangeReport, last: datetime | None) -> tuple[bool, bool, float]:
    """Return the sort key of an open change: new ones first, throughput before costs, then by size."""
    main = report.main_series
    is_throughput = METRICS[main.key.metric].role is Role.THROUGHPUT
    return _is_new(report, last), is_throughput, abs(math.log(main.ratio))


def _last_points(connection: Connection, report: ChangeReport) -> tuple[Point, ...]:
    """Return the last nights of the main series of a change, and at least one before it."""
    main = report.main_series
    points = read_series(connection, main.key, report.base)
    before = [number for number, point in enumerate(points) if point.night == main.last_before]
    first = max(0, len(points) - SHOWN_NIGHTS)
    return points[min([first, *(max(0, number - NIGHTS_BEFORE) for number in before)]) :]


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
        here = sorted(wanted & {(branch, entry.judged_by) for branch in night.built - {night.base}})
        wanted -= set(here)
        for branch, metric in here:
            base, version = night.versions[night.base], night.versions[branch]
            if not catalog.is_of_service(entry.uid):
                known = [stored_version(name) for name in (base, *night.versions.values())]
                base = str(base_of(stored_version(version), known))
            compared = comparisons.of(entry, base, version)
            if compared is not None and compared.steps:
                found[branch, metric] = LatestComparison(
                    nights.place, branch, night, compared, len(nights.of_branch(branch))
                )
    return tuple(found[key] for key in sorted(found))


def comparisons_by_hand(comparisons: Comparisons, catalog: Catalog) -> Iterator[LatestComparison]:
    """Yield every contender of the latest sessions that have rounds and are no nights."""
    sessions = [
        entry
        for entry in catalog.sessions.values()
        if entry.kind is SessionKind.COMPARISON and entry.has_rounds and not entry.is_apart
    ]
    for entry in sessions:
        if sessions[-1].started_at - entry.started_at > LONGEST_NIGHT:
            continue
        versions = [*map(stored_version, entry.versions)]
        for contender in versions[1:]:
            base, version = str(base_of(contender, versions)), str(contender)
            compared = comparisons.of(entry, base, version)
            if compared is not None and compared.steps:
                both = {base: base, version: version}
                night = NightEntry(entry.id, entry.uid, entry.started_at, base, both, frozenset(both))
                place = Environment(entry.box, entry.suite, entry.profile)
                yield LatestComparison(place, version, night, compared, 0)
