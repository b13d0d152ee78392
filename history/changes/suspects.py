"""Which series of a branch look changed tonight: not enough for a change, enough to measure again.

A false suspicion costs an hour of a machine and no person's time, so that the bar is low; what it lets
through is decided by rounds of its own (history/changes/confirm.py).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from sqlalchemy import Connection, func, select

from history.changes.anomaly_score import Line, RoundNoise, probabilities
from history.changes.confirm import HALF
from history.changes.repository import Change, ChangeStatus, Member
from history.comparison.result import groups_of
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import Night, base_branch
from history.store.records import Environment
from history.store.schema import series
from history.store.session_reads import session_of
from suites.metrics import PRIMARY, judged_metrics

FALSE_SUSPECTS_A_NIGHT = 0.3
"""Series that may look changed by chance in a night of a box, on average over quiet nights."""

LOOKED_BACK = 200
"""Nights that a level and its noise are taken from."""


@dataclass(frozen=True)
class Suspect:
    """A series that looks changed."""

    step: str
    metric: str
    before: Night
    """The last night that lies nearer to the level than to tonight's value."""

    probability: float
    """Of being as far from the level, either way, when nothing changed."""

    shift: float
    """Tonight's value from the level, as a logarithm."""


@dataclass(frozen=True)
class Tonight:
    """The last night of a branch at a place, and what looks changed in it."""

    night: Night
    suspects: tuple[Suspect, ...] = ()
    """The least probable first."""

    returned: tuple["Returned", ...] = ()
    of_version: tuple[Night, ...] = ()
    """All nights that measured what tonight did, in order; more than one when it was measured again."""


@dataclass(frozen=True)
class Returned:
    """A change that looks gone."""

    change: Change
    steps: tuple[str, ...]
    before: Night
    """A night before it in all series of the place."""

    threshold: float
    """Half of the smallest of its sizes, as a fraction."""


def counted_series(connection: Connection, box: str) -> int:
    """The series of a box in which a change can be suspected."""
    query = select(func.count()).where(series.c.box == box, series.c.metric.in_(judged_metrics()))
    return int(connection.execute(query).scalar_one())


def look(
    connection: Connection, place: Environment, branch: str, known: Sequence[Change], least: float
) -> Tonight | None:
    """What looks changed, or gone, in the last night of a branch; None where the branch has not moved.

    `known` are the changes of the branch and suite, `least` is the size, as a fraction, from which on a
    change is worth a person's time: half of it has to show.
    """
    base = base_branch(connection, place)
    if base is None or base == branch:
        return None
    matrix = read_matrix(connection, place, branch, base, judged_metrics(), LOOKED_BACK)
    last = _nights_of_last(matrix)
    if not last or len(last) == len(matrix.nights):
        return None
    matrix = _held_against_others(matrix, len(last))
    returned = tuple(_returned(matrix, known))
    looks_gone = {step for change in returned for step in change.steps}
    confirmed = _confirmed(known, matrix.nights[-1])
    groups = groups_of(session_of(connection, matrix.nights[-1].session_id))
    line = Line(matrix, known, groups)
    bar = FALSE_SUSPECTS_A_NIGHT / max(1, counted_series(connection, place.box))
    noise = RoundNoise(connection, matrix)
    found = [
        each
        for each in _suspects(line, noise, bar, -math.log1p(-least) * HALF)
        if each.step not in looks_gone and (each.step, each.before) not in confirmed
    ]
    return Tonight(matrix.nights[-1], tuple(sorted(found, key=lambda each: each.probability)), returned, last)


def _confirmed(known: Sequence[Change], tonight: Night) -> set[tuple[str, Night]]:
    """Steps, and the night before a change of theirs that earlier nights confirmed and that is open.

    Those rounds end when throughput is decided. A cost that they left undecided looks changed every night
    since. Its step is reported already, and the watch raises the cost when it stays.
    """
    return {
        (each.key.step, each.last_before)
        for change in known
        if change.status is ChangeStatus.OPEN
        for each in change.members
        if each.confirmed is not None and each.first_after.started_at < tonight.started_at
    }


def _nights_of_last(matrix: SeriesMatrix) -> tuple[Night, ...]:
    """The nights at the end that have the version of the last one."""
    its = takewhile(lambda night: night.version == matrix.nights[-1].version, reversed(matrix.nights))
    return tuple(its)[::-1]


def _held_against_others(matrix: SeriesMatrix, of_last: int) -> SeriesMatrix:
    """Without the earlier nights of the last version, as of a session that was begun again days later."""
    kept = [*range(len(matrix.nights) - of_last), len(matrix.nights) - 1]
    nights = tuple(matrix.nights[place] for place in kept)
    return replace(matrix, nights=nights, ratios=matrix.ratios[:, kept])


def _suspects(line: Line, noise: RoundNoise, bar: float, least: float) -> Iterator[Suspect]:
    for row, probability in enumerate(probabilities(line, noise)):
        level, tonight = line.level(row), float(line.logs[row, -1])
        if level is None or not (probability <= bar and abs(tonight - level) > least):
            continue
        for step in line.steps_of(row):
            before = _last_before(line, row, level, tonight)
            if before is not None:
                yield Suspect(step, line.rows[row].metric, before, float(probability), tonight - level)


def _last_before(line: Line, row: int, level: float, tonight: float) -> Night | None:
    """The last night of another version nearer to the level; one that nothing confirmed is passed over."""
    nights = line.matrix.nights
    others = [
        column
        for column in line.columns(row)
        if nights[column].version != nights[-1].version and nights[column].build_id is not None
    ]
    values = line.logs[row]
    near = [each for each in others if abs(values[each] - level) <= abs(values[each] - tonight)]
    return nights[max(near or others)] if others else None


def _returned(matrix: SeriesMatrix, known: Sequence[Change]) -> Iterator[Returned]:
    """Open changes on whose series tonight lies nearer to the level before than to the one after, mostly."""
    row = {series_id: number for number, (series_id, _, _) in enumerate(matrix.series)}
    tonight = matrix.nights[-1]
    for change in known:
        if change.status is not ChangeStatus.OPEN:
            continue
        members = [
            each
            for each in change.members
            if each.series_id in row
            and each.gone is None
            and each.first_after.started_at < tonight.started_at
            and matrix.ratios[row[each.series_id], -1] > 0
        ]
        near = [each for each in members if _is_nearer(float(matrix.ratios[row[each.series_id], -1]), each)]
        before = min((each.last_before for each in members), key=lambda night: night.started_at, default=None)
        if before is None or before.build_id is None or 2 * len(near) <= len(members):
            continue
        if before.version != tonight.version:
            steps = tuple(dict.fromkeys(each.key.step for each in members))
            yield Returned(change, steps, before, _half(members))


def _is_nearer(value: float, member: Member) -> bool:
    before, after = math.log(value / member.level_before), math.log(value / member.level_after)
    return abs(before) < abs(after)


def _half(members: Sequence[Member]) -> float:
    """Half of the smallest size, as a fraction; of throughput, which ends the rounds, if it moved."""
    throughput = [each for each in members if each.key.metric == PRIMARY] or members
    sizes = [abs(math.log(each.level_after / each.level_before)) for each in throughput]
    return -math.expm1(-min(sizes) * HALF)
