"""Shifts of a level: between which nights, which way, undone or come back, and which belong together."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from history.series.series import Night
from history.store.records import Environment
from suites.metrics import METRICS, Better

UNDONE = 0.25
"""A later shift undoes an earlier one when at most this part of it is left."""

ALIKE = 0.5
"""A shift is an earlier one come back when its logarithm is within this part of the earlier one's."""


class Direction(StrEnum):
    """Which way a level went, as a person judges it."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    MIXED = "mixed"
    """Of a change: some series regressed, others improved."""

    SHIFT = "shift"
    """Neither way is the good one."""


@dataclass(frozen=True)
class Shift:
    """A change of level in one series. Levels are values over the base's of the same night."""

    series_id: int
    place: Environment
    branch: str
    step: str
    metric: str
    last_before: Night
    """The last night that is surely before it."""

    first_after: Night
    """The first night that is surely after it."""

    raised: Night
    """The night after which it was known."""

    before: float
    after: float
    low: float
    high: float
    """Interval of after / before."""

    confidence: float
    confirmed: bool = False
    """Whether both versions were measured side by side: its nights are then the exact ones."""

    explained: str = ""
    """What else changed between the two nights: machine, base, suite or tools; empty for nothing."""

    @property
    def log_size(self) -> float:
        """ln(after / before)."""
        return math.log(self.after / self.before)

    @property
    def direction(self) -> Direction:
        """A regression is less of what should be more, and the other way round."""
        better = METRICS[self.metric].better
        if better is Better.NEITHER:
            return Direction.SHIFT
        rose = self.after > self.before
        return Direction.IMPROVEMENT if rose is (better is Better.HIGHER) else Direction.REGRESSION

    def overlaps(self, other: "Shift") -> bool:
        """Whether both can be one moment, on one box or on two."""
        return (
            self.last_before.started_at < other.first_after.started_at
            and other.last_before.started_at < self.first_after.started_at
        )


@dataclass(frozen=True)
class Return:
    """A series that was found at its old level again, by measuring both versions side by side."""

    series_id: int
    before: Night
    """The night, before the change, whose version it was measured against."""

    first_after: Night
    """The first night at the old level."""


@dataclass(frozen=True)
class Course:
    """A shift and what became of it."""

    shift: Shift
    gone: Night | None = None
    """The first night that is surely at the old level again; None while the shift lasts."""


def courses(events: Iterable[Shift | Return], earlier: Iterable[Course] = ()) -> tuple[Course, ...]:
    """What became of each shift; those that only undo another one, or are one come back, are no shifts of
    their own.

    `events` of one series must be in the order of their nights; `earlier` are what is known of others.
    """
    by_series: defaultdict[int, list[Course]] = defaultdict(list)
    for course in earlier:
        by_series[course.shift.series_id].append(course)
    for event in events:
        take = _take_return if isinstance(event, Return) else _take
        take(by_series[event.series_id], event)  # type: ignore[arg-type]
    return tuple(each for found in by_series.values() for each in found)


def _take(known: list[Course], shift: Shift) -> None:
    for number in reversed(range(len(known))):
        earlier = known[number]
        if shift.first_after.started_at <= earlier.shift.first_after.started_at:
            continue
        if earlier.gone is None and _undoes(shift, earlier.shift):
            known[number] = Course(earlier.shift, shift.first_after)
            return
        if _is_counted(shift, earlier):
            return
        if earlier.gone is not None and _comes_back(shift, earlier.shift):
            known[number] = Course(earlier.shift)
            return
    known.append(Course(shift))


def _take_return(known: list[Course], back: Return) -> None:
    for number in reversed(range(len(known))):
        earlier = known[number]
        in_between = earlier.shift.first_after.started_at < back.first_after.started_at
        if earlier.gone is None and in_between and _is_before(back.before, earlier.shift):
            known[number] = Course(earlier.shift, back.first_after)
            return


def _is_before(night: Night, shift: Shift) -> bool:
    return night.started_at <= shift.last_before.started_at


def _undoes(later: Shift, earlier: Shift) -> bool:
    left = math.log(later.after / earlier.before)
    return later.log_size * earlier.log_size < 0 and abs(left) <= UNDONE * abs(earlier.log_size)


def _is_counted(later: Shift, earlier: Course) -> bool:
    """Whether a shift is part of what an earlier one's course says already.

    That is: the one that undid it, seen again; one between the same two levels while it lasts; one of either
    way before its end. A course that was remembered does not say how often it went to and fro.
    """
    same_levels = _comes_back(later, earlier.shift) and _begins_alike(later, earlier.shift)
    if earlier.gone is None:
        return same_levels
    if later.first_after.started_at < earlier.gone.started_at:
        return same_levels or _undoes(later, earlier.shift)
    between = later.last_before.started_at <= earlier.gone.started_at
    return between and _undoes(later, earlier.shift)


def _begins_alike(later: Shift, earlier: Shift) -> bool:
    return abs(math.log(later.before / earlier.before)) <= ALIKE * abs(earlier.log_size)


def _comes_back(later: Shift, earlier: Shift) -> bool:
    return abs(later.log_size - earlier.log_size) <= ALIKE * abs(earlier.log_size)


def together(found: Iterable[Course]) -> tuple[tuple[Course, ...], ...]:
    """Shifts of one branch and suite that can be one moment are one change, its surest shift first.

    On several boxes, in several steps and metrics. Taken greedily from the surest: a wide range that touches
    two changes joins the one that is surer, and does not make one of both.
    """
    groups: defaultdict[tuple[str, str], list[Course]] = defaultdict(list)
    for each in found:
        groups[each.shift.branch, each.shift.place.suite].append(each)
    return tuple(one for group in groups.values() for one in _clusters(group))


def _clusters(group: Sequence[Course]) -> list[tuple[Course, ...]]:
    left = sorted(group, key=_surest_first)
    clusters = []
    while left:
        seed = left[0]
        clusters.append(tuple(each for each in left if each.shift.overlaps(seed.shift)))
        left = [each for each in left if not each.shift.overlaps(seed.shift)]
    return clusters


def _surest_first(course: Course) -> tuple[bool, float, float, int]:
    """What was confirmed knows its two nights, and is not drawn into a change whose nights are a guess."""
    shift = course.shift
    width = (shift.first_after.started_at - shift.last_before.started_at).total_seconds()
    return not shift.confirmed, -shift.confidence, width, shift.series_id


def direction_of(shifts: Iterable[Shift]) -> Direction:
    """The direction they have in common, leaving out those of which neither way is good."""
    found = {each.direction for each in shifts} - {Direction.SHIFT}
    if len(found) > 1:
        return Direction.MIXED
    return found.pop() if found else Direction.SHIFT
