"""Level shifts: their nights and direction, whether they persist, and which of them form a change."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from history.series.series import Night
from history.series.version_order import NightRange, VersionOrder
from history.store.records import ChangeStatus, Environment
from suites.metrics import METRICS, Better

UNDONE = 0.25
"""A later shift undoes an earlier one if at most this share of the earlier one is left."""

ALIKE = 0.5
"""A shift is an earlier one that came back if their log sizes differ by at most this share of the earlier."""


class Direction(StrEnum):
    """The direction of a change over nights, as a person judges it; verdicts of sessions have other words."""

    WORSE = "worse"
    BETTER = "better"
    MIXED = "mixed"
    """Some series of a change got worse, others better."""

    SHIFT = "shift"
    """The metric has no better direction, or the series alternates between two levels."""

    @property
    def phrase(self) -> str:
        """What a change in this direction is called: `change for the worse`."""
        return _PHRASES[self]


_PHRASES = {
    Direction.WORSE: "change for the worse",
    Direction.BETTER: "change for the better",
    Direction.MIXED: "trade",
    Direction.SHIFT: "change",
}


class Course(StrEnum):
    """What a series does where it changes."""

    STEP = "step"
    DRIFT = "drift"
    """It moves gradually all the way between the two nights."""

    ALTERNATION = "alternation"
    """It switches between two levels again and again."""


def direction_between(metric: str, before: float, after: float) -> Direction:
    """Return whether a move of a metric from one level to another is for the worse or for the better."""
    better = METRICS[metric].better
    if better is Better.NEITHER:
        return Direction.SHIFT
    return Direction.BETTER if better.gain(after - before) > 0 else Direction.WORSE


def leads(direction: Direction, change: Direction) -> bool:
    """Return whether a series that moved in a direction decides what a change is.

    It does if it moved as the change did; in a mixed change those decide that got worse.
    """
    return direction is (Direction.WORSE if change is Direction.MIXED else change)


@dataclass(frozen=True)
class Shift:
    """A change of level in one series. Levels are values over the base's of the same night."""

    series_id: int
    environment: Environment
    branch: str
    step: str
    metric: str
    last_before: Night
    """The last night that is certainly before it."""

    first_after: Night
    """The first night that is certainly after it."""

    raised: Night
    """The night after which it was raised."""

    before: float
    after: float
    low: float
    high: float
    """The bounds of the interval of after / before."""

    confidence: float
    confirmed: bool = False
    """Whether both versions were measured side by side, so that its two nights are exact."""

    explained: str = ""
    """What else changed between the two nights: machine, base, suite or tools; empty if nothing did."""

    refuted: str = ""
    """The measurement side by side that leaves it no commits to have happened between; empty without one."""

    course: Course = Course.STEP
    """What the series did between the two nights."""

    @property
    def log_size(self) -> float:
        """ln(after / before)."""
        return math.log(self.after / self.before)

    @property
    def direction(self) -> Direction:
        """Whether it is for the worse or for the better; an alternation between two levels is neither."""
        if self.course is Course.ALTERNATION:
            return Direction.SHIFT
        return direction_between(self.metric, self.before, self.after)

    @property
    def range(self) -> NightRange:
        """The last night before it, and the first one after it."""
        return self.last_before, self.first_after

    def overlaps(self, other: "Shift") -> bool:
        """Return whether both can have happened at the same time, in one environment."""
        return (
            self.last_before.started_at < other.first_after.started_at
            and other.last_before.started_at < self.first_after.started_at
        )


@dataclass(frozen=True)
class LevelReturn:
    """A series that is back at its old level, as measured with both versions side by side."""

    series_id: int
    before: Night
    """The night before the change with whose version it was compared."""

    first_after: Night
    """The first night back at the old level."""


@dataclass(frozen=True)
class ShiftOutcome:
    """A shift, and whether it persists."""

    shift: Shift
    gone: Night | None = None
    """The first night that is certainly back at the old level; None while the shift persists."""

    returns_of: tuple[Shift, ...] = ()
    """The earlier shifts that have come back with this one, in order; empty for one that is new."""

    @property
    def origin(self) -> Shift:
        """The first of the shifts that it is."""
        return self.shifts[0]

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The shifts that it is, in order; the last one is the present one."""
        return *self.returns_of, self.shift


class StoredChange(Protocol):
    """A stored change, as far as its shifts: what those that look for the next change need of it."""

    @property
    def fingerprint(self) -> str:
        """The name of the change."""

    @property
    def status(self) -> ChangeStatus:
        """What became of the change as a whole."""

    @property
    def outcomes(self) -> tuple[ShiftOutcome, ...]:
        """The shifts of its series."""


def level_starts(changes: Iterable[StoredChange]) -> Mapping[int, tuple[datetime, ...]]:
    """Return the times of the nights at which changes began another level, by series."""
    starts: defaultdict[int, tuple[datetime, ...]] = defaultdict(tuple)
    for change in changes:
        for outcome in change.outcomes:
            ends = () if outcome.gone is None else (outcome.gone.started_at,)
            starts[outcome.shift.series_id] += (outcome.shift.first_after.started_at, *ends)
    return starts


def shift_outcomes(
    events: Iterable[Shift | LevelReturn], earlier: Iterable[ShiftOutcome] = ()
) -> tuple[ShiftOutcome, ...]:
    """Return every shift with its end; one that undoes an earlier shift is not listed.

    One that has come back is listed once, with the nights between which it came back. What undoes an
    improvement is listed too if one of both was confirmed. The `events` of a series must be in the order of
    their nights; `earlier` are outcomes from before them.
    """
    by_series: defaultdict[int, list[ShiftOutcome]] = defaultdict(list)
    for course in earlier:
        by_series[course.shift.series_id].append(course)
    for event in events:
        add = _add_return if isinstance(event, LevelReturn) else _add_shift
        add(by_series[event.series_id], event)  # type: ignore[arg-type]
    return tuple(outcome for outcomes in by_series.values() for outcome in outcomes)


def _add_shift(outcomes: list[ShiftOutcome], shift: Shift) -> None:
    for number in reversed(range(len(outcomes))):
        earlier = outcomes[number]
        if shift.first_after.started_at <= earlier.shift.first_after.started_at:
            continue
        if _is_switch(shift, earlier.shift):
            return
        if earlier.gone is None and _undoes(shift, earlier.shift):
            outcomes[number] = replace(earlier, gone=shift.first_after)
            if _loses(shift, earlier.shift):
                break
            return
        if _is_counted(shift, earlier):
            return
        if earlier.gone is not None and _comes_back(shift, earlier.shift):
            back = outcomes.pop(_come_back(shift, outcomes[: number + 1]))
            outcomes.append(ShiftOutcome(shift, returns_of=back.shifts))
            return
    outcomes.append(ShiftOutcome(shift))


def _come_back(shift: Shift, outcomes: Sequence[ShiftOutcome]) -> int:
    """Return the position of the shift that has come back: of those that can have, the nearest in level."""
    gone = [
        number
        for number, outcome in enumerate(outcomes)
        if outcome.gone is not None and _comes_back(shift, outcome.shift)
    ]
    return min(reversed(gone), key=lambda number: abs(math.log(shift.before / outcomes[number].shift.before)))


def _add_return(outcomes: list[ShiftOutcome], back: LevelReturn) -> None:
    """End the first shift since the night that it was held against; later ones have returns of their own."""
    ended = [
        outcome
        for outcome in outcomes
        if outcome.gone is None
        and outcome.shift.first_after.started_at < back.first_after.started_at
        and _is_before(back.before, outcome.shift)
    ]
    if ended:
        first = min(ended, key=lambda outcome: outcome.shift.first_after.started_at)
        outcomes[outcomes.index(first)] = replace(first, gone=back.first_after)


def _is_before(night: Night, shift: Shift) -> bool:
    return night.started_at <= shift.last_before.started_at


def _is_switch(later: Shift, earlier: Shift) -> bool:
    """Return whether a shift is one more switch of a series that alternates."""
    is_between = _undoes(later, earlier) or (_comes_back(later, earlier) and _begins_alike(later, earlier))
    return earlier.course is Course.ALTERNATION and is_between


def _undoes(later: Shift, earlier: Shift) -> bool:
    left = math.log(later.after / earlier.before)
    return later.log_size * earlier.log_size < 0 and abs(left) <= UNDONE * abs(earlier.log_size)


def _loses(later: Shift, earlier: Shift) -> bool:
    """Return whether what undoes an improvement is a change for the worse of its own, which has to be told.

    One of both must have been confirmed: otherwise a false change and its end would be two.
    """
    return later.direction is Direction.WORSE and (later.confirmed or earlier.confirmed)


def _is_counted(later: Shift, earlier: ShiftOutcome) -> bool:
    """Return whether a shift is already covered by the outcome of an earlier one.

    These are the shift that undid it, detected again; one between the same two levels while it persists; one
    in either direction before its end. A stored outcome does not record how often the level alternated.
    """
    same_levels = _comes_back(later, earlier.shift) and _begins_alike(later, earlier.shift)
    if earlier.gone is None:
        return same_levels
    if later.first_after.started_at < earlier.gone.started_at:
        return same_levels or _undoes(later, earlier.shift)
    between = later.last_before.started_at <= earlier.gone.started_at
    return between and _undoes(later, earlier.shift) and not _loses(later, earlier.shift)


def _begins_alike(later: Shift, earlier: Shift) -> bool:
    return abs(math.log(later.before / earlier.before)) <= ALIKE * abs(earlier.log_size)


def _comes_back(later: Shift, earlier: Shift) -> bool:
    return abs(later.log_size - earlier.log_size) <= ALIKE * abs(earlier.log_size)


def can_coincide(shift: Shift, other: Shift, order: VersionOrder) -> bool:
    """Return whether two shifts of a branch can be the same event.

    In two environments, nights that begin at different hours have the same version: the versions decide.
    """
    if shift.environment == other.environment:
        return shift.overlaps(other)
    (begin, end), (others_begin, others_end) = order.places(shift.branch, [shift.range, other.range])
    return begin < others_end and others_begin < end


def group_shifts(
    outcomes: Iterable[ShiftOutcome], order: VersionOrder
) -> tuple[tuple[ShiftOutcome, ...], ...]:
    """Return the shifts grouped into changes: one branch and suite, and overlapping ranges of versions.

    A change may span several boxes, steps and metrics, and has one shift of each series; the most certain of
    all comes first; what has come back stays with what it was. Groups are formed greedily from the most
    certain shift, so that a wide range which overlaps two changes joins the more certain one instead of
    merging both.
    """
    groups: defaultdict[tuple[bool, Course, bool, str, str], list[ShiftOutcome]] = defaultdict(list)
    for outcome in outcomes:
        shift = outcome.shift
        key = (shift.course is not Course.STEP, shift.course, not shift.explained, shift.branch)
        groups[*key, shift.environment.suite].append(outcome)
    # What something else explains is in no change with what nothing does.
    # A drift lasts longer than most steps are apart: it belongs to none of them, and comes after them.
    return tuple(cluster for key in sorted(groups) for cluster in _clusters(groups[key], order))


def _clusters(group: Sequence[ShiftOutcome], order: VersionOrder) -> list[tuple[ShiftOutcome, ...]]:
    remaining = sorted(group, key=_most_certain_first)
    clusters = []
    while remaining:
        seed = remaining[0]
        by_series: dict[int, ShiftOutcome] = {}
        for outcome in remaining:
            if can_coincide(outcome.origin, seed.origin, order):
                by_series.setdefault(outcome.shift.series_id, outcome)
        clusters.append(tuple(by_series.values()))
        remaining = [
            outcome for outcome in remaining if by_series.get(outcome.shift.series_id) is not outcome
        ]
    return clusters


def _most_certain_first(outcome: ShiftOutcome) -> tuple[bool, bool, float, float, int]:
    """Return the sort key: confirmed shifts first, because their nights are exact, and refuted ones last."""
    shift = outcome.shift
    width = (shift.first_after.started_at - shift.last_before.started_at).total_seconds()
    return bool(shift.refuted), not shift.confirmed, -shift.confidence, width, shift.series_id


def direction_of(shifts: Iterable[Shift]) -> Direction:
    """Return the common direction of the shifts, ignoring metrics without a better direction."""
    directions = {shift.direction for shift in shifts} - {Direction.SHIFT}
    if len(directions) > 1:
        return Direction.MIXED
    return directions.pop() if directions else Direction.SHIFT
