"""Which past commit is measured next: the middle of the widest gap, then closer around what looks changed.

Pure functions of what has been measured, so that a backfill that was stopped goes on where it was.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from history.changes.leads import Lead, find_leads
from history.series.matrix import SeriesMatrix
from history.series.series import Night

MAX_IN_VAIN = 3
"""The commits of one date that may be impossible to build or to measure before it stays a gap."""

MAX_EXAMINED = 3
"""The pairs of commits that are measured against each other for one lead."""


@dataclass(frozen=True)
class PastCommit:
    """A commit of a branch, and its place in the series."""

    commit: str
    """40 hex digits."""

    stands_at: datetime
    """Its date; later than that of the commit before it, whatever the clocks of their authors said."""


@dataclass(frozen=True)
class Dates:
    """The dates that a backfill is to fill."""

    since: datetime
    every: timedelta

    def until(self, last: datetime) -> list[datetime]:
        """Return the dates up to that of the last commit."""
        count = max(-1, (last - self.since) // self.every)
        return [self.since + number * self.every for number in range(count + 1)]


@dataclass(frozen=True)
class ExaminedPair:
    """Two points that were measured against each other, by their places in the series."""

    before: datetime
    after: datetime
    is_step: bool
    """Whether they certainly differ."""


@dataclass(frozen=True)
class PastState:
    """What is known of a branch in one environment."""

    commits: tuple[PastCommit, ...]
    """The commits that can matter, oldest first."""

    matrix: SeriesMatrix
    """The judged series over all points, past commits and nights, in the order of the commits."""

    in_vain: frozenset[str]
    """The commits that cannot be built or measured."""

    examined: tuple[ExaminedPair, ...] = ()


@dataclass(frozen=True)
class MeasureCommit:
    """Measure a commit beside the base."""

    commit: PastCommit
    lead: Lead | None = None
    """What looks changed around it; None when it fills a gap."""


@dataclass(frozen=True)
class ExaminePair:
    """Measure the commits of two points against each other."""

    before: Night
    after: Night
    lead: Lead


@dataclass(frozen=True)
class Filled:
    """How far a backfill has come."""

    dates: int
    filled: int
    in_vain: int
    """Dates of which no commit can be measured."""

    widest: timedelta
    """The widest gap between two points within the dates."""


Action = MeasureCommit | ExaminePair


def next_action(state: PastState, dates: Dates, least: float, confirm: bool = True) -> Action | None:
    """Return what to measure next; None when every date has a point and no lead is open.

    `least` is the practical threshold as a fraction. Without `confirm`, commits are not examined.
    """
    commit = next_date(state, dates)
    if commit is not None:
        return MeasureCommit(commit)
    for lead in find_leads(state.matrix, least):
        action = _follow(state, lead) if confirm else _closer(state, lead)
        if action is not None:
            return action
    return None


def next_date(state: PastState, dates: Dates, taken: Sequence[datetime] = ()) -> PastCommit | None:
    """Return the commit that fills the widest gap best: the one nearest to its middle, of equals the oldest.

    The two ends come first. `taken` are places that count as measured, as they are going to be.
    """
    there = sorted({*measured_at(state), *taken})
    wanted = [commit for _, commit in _open_dates(state, dates, there) if commit is not None]
    if not wanted:
        return None
    if not there or wanted[0].stands_at < there[0]:
        return wanted[0]
    if wanted[-1].stands_at > there[-1]:
        return wanted[-1]
    best: tuple[timedelta, PastCommit] | None = None
    for before, after in pairwise(there):
        within = [commit for commit in wanted if before < commit.stands_at < after]
        if within and (best is None or after - before > best[0]):
            middle = before + (after - before) / 2
            best = after - before, min(within, key=lambda commit: abs(commit.stands_at - middle))
    return best[1] if best else wanted[0]


def filled(state: PastState, dates: Dates) -> Filled:
    """Return how far the dates are filled."""
    wanted = dates.until(state.commits[-1].stands_at) if state.commits else []
    wanted = [date for date in wanted if date >= state.commits[0].stands_at]
    still = dict(_open_dates(state, dates, measured_at(state)))
    in_vain = sum(commit is None for commit in still.values())
    ends = [*wanted[:1], *(at for at in measured_at(state) if wanted and wanted[0] < at < wanted[-1])]
    ends += wanted[-1:]
    widest = max((after - before for before, after in pairwise(ends)), default=timedelta())
    return Filled(len(wanted), len(wanted) - len(still), in_vain, widest)


def measured_at(state: PastState) -> list[datetime]:
    """Return the places of the points that have a value, in order."""
    there = has_value(state.matrix)
    return [night.started_at for night, known in zip(state.matrix.nights, there, strict=True) if known]


def has_value(matrix: SeriesMatrix) -> list[bool]:
    """Return for each night whether any series has a value, [nights]."""
    return [bool(present) for present in (matrix.ratios > 0).sum(axis=0)]


def _open_dates(
    state: PastState, dates: Dates, there: Sequence[datetime]
) -> Iterator[tuple[datetime, PastCommit | None]]:
    """Yield the dates without a point, each with the last commit up to it; None if it cannot have one.

    `there` are the places of the points.
    """
    if not state.commits:
        return
    stands = [commit.stands_at for commit in state.commits]
    lower = dates.since - dates.every
    for date in dates.until(stands[-1]):
        end = bisect_right(stands, date)
        before, lower = lower, date
        if not end:
            continue
        # Nothing may have been committed between two dates: then the commit of the earlier one is current.
        begin = min(bisect_right(stands, before), end - 1)
        if bisect_right(there, date) > bisect_left(there, min(stands[begin], before + timedelta.resolution)):
            continue
        yield date, _last_usable(state, state.commits[begin:end])


def _last_usable(state: PastState, commits: Sequence[PastCommit]) -> PastCommit | None:
    """Return the last commit that is not known to be unusable; None after MAX_IN_VAIN."""
    tried = commits[: -MAX_IN_VAIN - 1 : -1]
    return next((commit for commit in tried if commit.commit not in state.in_vain), None)


def _follow(state: PastState, lead: Lead) -> Action | None:
    """Return the next action about a lead; None when it is settled."""
    nights = state.matrix.nights
    first, last = nights[lead.first].started_at, nights[lead.last].started_at
    pairs = [pair for pair in state.examined if pair.before < last and first < pair.after]
    if any(pair.is_step or (pair.before <= first and last <= pair.after) for pair in pairs):
        return None
    if len(pairs) >= MAX_EXAMINED:
        return None
    closer = _closer(state, lead)
    if closer is not None:
        return closer
    before, after = _around(state.matrix, lead)
    narrow = (nights[before].started_at, nights[after].started_at)
    if any((pair.before, pair.after) == narrow for pair in pairs):
        before, after = lead.first, lead.last
    return ExaminePair(nights[before], nights[after], lead)


def _closer(state: PastState, lead: Lead) -> MeasureCommit | None:
    """Return the commit in the middle of the likeliest gap; None when nothing is left there."""
    before, after = _around(state.matrix, lead)
    nights = state.matrix.nights
    commit = middle(state.commits, nights[before].started_at, nights[after].started_at, state.in_vain)
    return None if commit is None else MeasureCommit(commit, lead)


def _around(matrix: SeriesMatrix, lead: Lead) -> tuple[int, int]:
    """Return the points around the likeliest place of a change: the last before it that has a value."""
    there = has_value(matrix)
    return max(column for column in range(lead.index) if there[column]), lead.index


def middle(
    commits: Sequence[PastCommit], before: datetime, after: datetime, in_vain: Collection[str]
) -> PastCommit | None:
    """Return the middle one of the commits strictly between two places; None without any."""
    within = [past for past in commits if before < past.stands_at < after and past.commit not in in_vain]
    return within[len(within) // 2] if within else None
