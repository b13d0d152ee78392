"""The details of a change: everything that the history knows of it, for one page."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sqlalchemy import Connection, select

from history.changes.report import ChangeReport
from history.changes.repository import Member
from history.comparison.result import ContenderComparison
from history.comparison.rounds.background import why_left_out
from history.comparison.verdict import Judged
from history.errors import stored_object, stored_version
from history.series.environment_changes import changes_between
from history.series.series import Night, Point, base_beside, nights_of, read_series
from history.store.alert_outbox import telling
from history.store.reader import Reader
from history.store.schema import builds, configurations, runs
from history.store.session_reads import session_of
from report.values.catalog import Catalog
from report.values.comparisons import compared
from report.values.night_intervals import NightInterval, NightIntervals
from report.values.session_page import VersionSetup, flattened
from suites.metrics import METRICS

MAX_CHARTS = 8
"""The series of a change that are drawn; its table has all."""

NIGHTS_BEFORE = timedelta(days=90)
"""How far a chart reaches back before a change."""


@dataclass(frozen=True)
class MemberSeries:
    """A series of a change with its nights around it."""

    member: Member
    base: str | None
    points: tuple[Point, ...]
    notes: tuple[tuple[Night, str], ...]
    """What else changed in its environment, by the first night after it."""

    visible: float | None
    """The smallest visible change of its step, as a fraction; None when it is unknown."""

    intervals: Mapping[int, NightInterval] = field(default_factory=dict)
    """The intervals of nights that its metric judged, and that had rounds when their pages were written."""


@dataclass(frozen=True)
class ChangeDetails:
    """A change with what the pages show of it."""

    report: ChangeReport
    series: tuple[MemberSeries, ...]
    """At most MAX_CHARTS, the main series first."""

    confirmation: ContenderComparison | None
    """The new commit against the old one in the confirming session, while it has rounds."""

    setups: tuple[VersionSetup, ...]
    """Settings and manifests before and after it, in the nights of the main series."""

    issue: tuple[str, int, str] | None
    """Repository, number and state of its issue."""

    costs: Mapping[str, tuple[Member, ...]]
    """The series of the change by step, in which costs stand beside throughput."""

    kernels: Mapping[str, str]
    """The kernel of each box in the night after it."""

    @property
    def confirmed_step(self) -> Judged | None:
        """The step of the confirmation, judged by its metric; None while it has no rounds."""
        confirmed, found = self.report.confirmation, self.confirmation
        steps = found.steps if found is not None and confirmed is not None else ()
        return next((step.judged for step in steps if confirmed and step.step == confirmed.key.step), None)

    @property
    def confirmed_rounds(self) -> Iterator[tuple[int, float, str]]:
        """The paired rounds of the confirmation in the main series: number, ratio, and why it does not count.

        The reason is empty for those that count.
        """
        confirmed, found = self.report.confirmation, self.confirmation
        pairs = () if found is None else found.paired
        for step in pairs:
            if confirmed is not None and step.step == confirmed.key.step:
                metric = confirmed.key.metric
                left_out = why_left_out(step, metric)
                for number, ratio in enumerate(step.ratios(metric, step.last_round(metric)), start=1):
                    if ratio is not None:
                        yield number, ratio, left_out.get(number, "")


IntervalsOf = Callable[[str], NightIntervals]
"""Gives the intervals of a night by the uid of its session."""


def read_details(
    history: Reader, catalog: Catalog, report: ChangeReport, intervals_of: IntervalsOf = lambda uid: {}
) -> ChangeDetails:
    """Return the details of a change."""
    main = report.main_series
    others = [member for member in report.change.members if member is not main]
    with history.database.reading() as connection:
        drawn = tuple(_series(connection, member) for member in (main, *others)[:MAX_CHARTS])
        setups = tuple(_setup(connection, night) for night in (main.last_before, main.first_after))
        issue = issue_of(connection, report.change.fingerprint)
        kernels = {
            member.key.environment.box: session_of(connection, member.first_after.session_id).machine.kernel
            for member in report.change.members
        }
    drawn = tuple(
        replace(
            _with_sight(history, catalog, member_series),
            intervals=_intervals(catalog, member_series, intervals_of),
        )
        for member_series in drawn
    )
    comparison = _confirmed(history, catalog, report)
    by_step: dict[str, tuple[Member, ...]] = {}
    for member in report.change.members:
        by_step[member.key.step] = (*by_step.get(member.key.step, ()), member)
    return ChangeDetails(report, drawn, comparison, setups, issue, by_step, kernels)


def _series(connection: Connection, member: Member) -> MemberSeries:
    key = member.key
    base = base_beside(connection, key.environment, key.branch)
    since = member.last_before.started_at - NIGHTS_BEFORE
    points = read_series(connection, key, base, since)
    nights = nights_of(connection, key.environment, key.branch, since)
    marked = changes_between(connection, nights, base) if base is not None else {}
    notes = {at: marker.within({key.step}) for at, marker in marked.items()}
    return MemberSeries(
        member,
        base,
        points,
        tuple((nights[at], str(marker)) for at, marker in sorted(notes.items()) if marker),
        None,
    )


def _intervals(
    catalog: Catalog, member_series: MemberSeries, intervals_of: IntervalsOf
) -> Mapping[int, NightInterval]:
    key = member_series.member.key
    nights = [catalog.by_id[point.night.session_id] for point in member_series.points]
    ids = [entry.id for entry in nights if entry.judged_by == key.metric]
    found = {id_: intervals_of(catalog.by_id[id_].uid).get(key.branch, {}).get(key.step) for id_ in ids}
    return {id_: interval for id_, interval in found.items() if interval is not None}


def _with_sight(history: Reader, catalog: Catalog, member_series: MemberSeries) -> MemberSeries:
    """Return a series with what its step can see in the latest of its nights with rounds."""
    key = member_series.member.key
    if key.metric in METRICS and METRICS[key.metric].is_counted:
        return replace(member_series, visible=catalog.threshold_of(key.metric))
    last = next((point.night for point in reversed(member_series.points) if point.relative is not None), None)
    nights = catalog.place_named(key.environment)
    if last is None or nights is None or member_series.base is None:
        return member_series
    entry = next((night for night in nights.nights if night.session_id == last.session_id), None)
    if entry is None or member_series.base not in entry.versions:
        return member_series
    versions = (entry.versions[member_series.base], entry.versions[key.branch])
    found = compared(history, catalog.by_id[entry.session_id], *versions, key.metric, (key.step,))
    if found is None or not found.steps or found.steps[0].judged.metric != key.metric:
        return member_series
    return replace(member_series, visible=found.steps[0].smallest_visible)


def _confirmed(history: Reader, catalog: Catalog, report: ChangeReport) -> ContenderComparison | None:
    confirmed = report.confirmation
    if confirmed is None:
        return None
    versions = [stored_version(night.version) for night in (confirmed.before, confirmed.after)]
    entry = catalog.sessions[confirmed.uid]
    return compared(history, entry, str(versions[0]), str(versions[1]), confirmed.key.metric)


def _setup(connection: Connection, night: Night) -> VersionSetup:
    query = (
        select(configurations.c.settings, builds.c.manifest)
        .join_from(runs, builds, runs.c.build_id == builds.c.id)
        .join(configurations, runs.c.configuration_id == configurations.c.id)
        .where(runs.c.session_id == night.session_id, runs.c.version == night.version)
        .limit(1)
    )
    row = connection.execute(query).first()
    if row is not None:
        settings = {name: str(value) for name, value in stored_object(row.settings).items()}
        return VersionSetup(night.version, settings, dict(flattened(stored_object(row.manifest))))
    manifest = connection.execute(select(builds.c.manifest).where(builds.c.id == night.build_id)).scalar()
    return VersionSetup(night.version, {}, dict(flattened(stored_object(manifest))) if manifest else {})


def issue_of(connection: Connection, fingerprint: str) -> tuple[str, int, str] | None:
    """Return repository, number and state of the issue of a change; None without one."""
    alert = telling(connection, fingerprint)
    if alert is None or alert.issue is None:
        return None
    return alert.repository or "", alert.issue, str(alert.issue_state)
