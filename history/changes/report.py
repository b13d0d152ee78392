"""The report of a change: everything that is shown of it, read from the history once.

Issue texts, summaries of nights, listings and pages are adapters on it, which never access a database.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from history.changes import confirmation
from history.changes.confirmation import Confirmation
from history.changes.courses import course_between
from history.changes.level_shift import Course
from history.changes.repository import Change, Member
from history.comparison.profile_diff import FunctionChange, differential
from history.metric_words import moved_by, subject_of
from history.numbers import size_text
from history.series.environment_changes import changes_between
from history.series.series import Night, Point, base_beside, base_branches, nights_of, read_series
from history.store.bisects import Bisect, of_change
from history.store.profiles import counted_profiles_of, profiles_of
from history.store.records import Session
from history.store.session_reads import session_of
from suites.metrics import METRICS, Role

MAX_FUNCTIONS = 5
"""The functions in a report at most."""


MIN_COUNTED_SHARE = 0.05
"""The least share of a change of instructions that a function has in a report."""


@dataclass(frozen=True)
class EnvironmentChange:
    """A change of machine, base, suite or tools from one night to the next."""

    box: str
    night: Night
    """The first night after it."""

    text: str


@dataclass(frozen=True)
class ChangeReport:
    """A change with everything that the history has on it. Nothing in it reads the database later."""

    change: Change
    """The series with their levels, ratios and confirmations, and the status with its reason."""

    base: str | None
    """The branch that the levels are relative to; None when no night has a base."""

    names_base: bool
    """Whether the base must be named wherever the change is: its nights could have another one.

    That is so in an imported table, whose base a person named, and where nights had several bases.
    """

    later: tuple[Point, ...]
    """The nights of the main series after the first one with the change, without gaps."""

    gained: tuple[FunctionChange, ...]
    """The functions whose CPU time or instructions per query grew most in the main series, the largest first.

    Of a change of instructions they are counted, and have a part of it. It is empty without profiles of both
    commits.
    """

    environment: tuple[EnvironmentChange, ...]
    """What else changed between the nights before and after it, by box and night."""

    bisect: Bisect | None
    """The latest bisect that looked for it and has a verdict."""

    session: Session
    """The session of the first night with it."""

    course: Course = Course.STEP
    """What the main series did: a step, or more than a step, in which no bisect finds one commit."""

    nights: int = 0
    """The nights over which it drifted or alternated; 0 for a step."""

    switches: int = 0
    """How often it switched between its two levels; 0 if it does not alternate."""

    @property
    def commits(self) -> tuple[str | None, str | None]:
        """The commits of the nights before and after it; None for a version not from git."""
        return self.change.last_before.commit or None, self.change.first_after.commit or None

    @property
    def is_gained_counted(self) -> bool:
        """Whether `gained` has instructions per query; otherwise it has CPU time."""
        return any(function.calls is not None for function in self.gained)

    @property
    def main_series(self) -> Member:
        """The series that is shown first, of those that moved as the change did: the largest throughput."""
        return main_series(self.change)

    @property
    def headline(self) -> str:
        """What the change is: `insert and 3 more 7.0 % slower`.

        Of a trade what got worse, then what got better: `reset of insert 29.0 % slower; insert 12.0 %
        faster`.
        """
        if self.course is Course.ALTERNATION:
            subject, size = _subject(self.change.members), abs(self.main_series.ratio - 1)
            return f"{subject}: {self.switches} switches between two levels {100 * size:.1f} % apart"
        parts = (self.change.leading, self.change.opposite)
        told = "; ".join(_moved(members) for members in parts if members)
        return f"{told}, gradually over {self.nights} nights" if self.course is Course.DRIFT else told

    @property
    def members(self) -> tuple[Member, ...]:
        """The series of the change, those first that moved as it did."""
        leading = self.change.leading
        return (*leading, *(member for member in self.change.members if member not in leading))

    @property
    def confirmation(self) -> Confirmation | None:
        """The confirmation in its first night; of several, that of the series that is shown first."""
        return next(
            (member.confirmed for member in sorted(self.members, key=self._order) if member.confirmed), None
        )

    def _order(self, member: Member) -> tuple[bool, tuple[bool, float]]:
        is_throughput, size = _prominence(member)
        return member not in self.change.leading, (not is_throughput, -size)

    @property
    def return_confirmation(self) -> Confirmation | None:
        """The confirmation that it is gone."""
        return next((member.gone_confirmed for member in self.change.members if member.gone_confirmed), None)


def main_series(change: Change) -> Member:
    """Return the series of a change that is shown first, of those that moved as the change did.

    Throughput comes before costs, then the largest change.
    """
    return most_prominent(change.leading)


def most_prominent(members: Sequence[Member]) -> Member:
    """Return the series that some are told by: throughput comes before costs, then the largest change."""
    return max(members, key=_prominence)


def _prominence(member: Member) -> tuple[bool, float]:
    return METRICS[member.key.metric].role is Role.THROUGHPUT, abs(math.log(member.ratio))


def _moved(members: Sequence[Member]) -> str:
    """Return how some series moved that moved alike, by the most prominent one."""
    main = most_prominent(members)
    return f"{_subject(members)} {size_text(main.ratio)} {moved_by(main.key.metric, main.ratio)}"


def _subject(members: Sequence[Member]) -> str:
    """Return of what some series are, by the most prominent one: `insert and 3 more`."""
    main = most_prominent(members)
    more = len({member.key.step for member in members}) - 1
    return subject_of(main.key.metric, f"{main.key.step} and {more} more" if more > 0 else main.key.step)


def report_changes(connection: Connection, changes: Iterable[Change]) -> tuple[ChangeReport, ...]:
    """Return the reports of some changes, in their order."""
    return tuple(_report(connection, change) for change in changes)


def _report(connection: Connection, change: Change) -> ChangeReport:
    main = main_series(change)
    base = base_beside(connection, main.key.environment, change.branch)
    session = session_of(connection, change.first_after.session_id)
    course, nights, switches = _course(connection, main, base)
    return ChangeReport(
        change,
        base,
        names_base=session.is_imported or len(base_branches(connection, main.key.environment)) > 1,
        later=_later(connection, main, base),
        gained=_gained(connection, change, main),
        environment=tuple(_environment(connection, change)),
        bisect=next(iter(of_change(connection, change.fingerprint)), None),
        course=course,
        nights=nights,
        switches=switches,
        session=session,
    )


def _later(connection: Connection, member: Member, base: str | None) -> tuple[Point, ...]:
    since = read_series(connection, member.key, base, member.first_after.started_at)
    return tuple(point for point in since if point.relative is not None and point.night != member.first_after)


def _course(connection: Connection, member: Member, base: str | None) -> tuple[Course, int, int]:
    """Return what a series did between the nights of its change, over how many, and the switches."""
    points = read_series(connection, member.key, base)
    at = [
        number
        for number, point in enumerate(points)
        if point.night in (member.last_before, member.first_after)
    ]
    found = course_between(points, at[0], at[-1]) if at else None
    if found is None:
        return Course.STEP, 0, 0
    nights = at[-1] - at[0] + 1
    if found.alternation is not None:
        return Course.ALTERNATION, nights, len(found.alternation.switches)
    return Course.DRIFT, nights, 0


def _gained(connection: Connection, change: Change, member: Member) -> tuple[FunctionChange, ...]:
    """Return the functions by the profiles of the confirming session, else by those of the two nights."""
    step, both = member.key.step, (change.last_before, change.first_after)
    sessions = [tuple(night.session_id for night in both)]
    if member.confirmed is not None:
        confirming = confirmation.session_id(connection, member.confirmed)
        sessions.insert(0, (confirming, confirming))
    is_counted = member.key.metric in METRICS and METRICS[member.key.metric].is_counted
    read = counted_profiles_of if is_counted else profiles_of
    for pair in sessions:
        sides = zip(pair, both, strict=True)
        profiles = [read(connection, session, step, night.version) for session, night in sides]
        if all(profiles):
            gained = differential(*profiles).gained(MAX_FUNCTIONS)
            # Counts have no intervals: what is no part of the change may be the noise of a pass.
            return tuple(
                function
                for function in gained
                if not is_counted or (function.own_share or 0.0) >= MIN_COUNTED_SHARE
            )
    return ()


def _environment(connection: Connection, change: Change) -> Iterable[EnvironmentChange]:
    for environment in sorted(
        {member.key.environment for member in change.members}, key=lambda environment: environment.box
    ):
        base = base_beside(connection, environment, change.branch)
        if base is None:
            continue
        since = nights_of(connection, environment, change.branch, change.last_before.started_at)
        nights = [night for night in since if night.started_at <= change.first_after.started_at]
        steps = {member.key.step for member in change.members if member.key.environment == environment}
        for position, marker in changes_between(connection, nights, base).items():
            if marker.within(steps):
                yield EnvironmentChange(environment.box, nights[position], str(marker.within(steps)))
