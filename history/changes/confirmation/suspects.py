"""Suspects: series of a branch whose last night, or latest nights together, are worth measuring again.

A false suspect costs an hour of a machine, but nobody's time, so that the threshold is low. Additional rounds
decide about every suspect (history/changes/confirmation/decide.py).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from sqlalchemy import Connection, func, select

from history.changes.confirmation import store
from history.changes.confirmation.anomaly_score import BranchLogRatios, RoundNoise, tonight_probabilities
from history.changes.confirmation.decide import HALF
from history.changes.confirmation.request import ConfirmationRequest
from history.changes.confirmation.store import Confirmation
from history.changes.detection import evidence, rule_of
from history.changes.level_shift import Direction, Shift, StoredChange, direction_of
from history.comparison.result import groups_of
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import Night, base_beside
from history.stats.change_points import Known
from history.store.records import ChangeStatus, Environment
from history.store.schema import series
from history.store.session_reads import session_of
from suites.metrics import PRIMARY, judged_metrics

FALSE_SUSPECTS_A_NIGHT = 0.3
"""The mean number of false suspects in a quiet night of a box."""

WAYS_OF_SUSPICION = 2
"""In which a series becomes a suspect: by the last night alone, and by the latest nights together."""

TOGETHER_FROM = 40
"""The nights of a series from which on its latest nights together tell anything."""

NIGHTS_READ = 200
"""The nights from which a level and its noise are estimated."""


@dataclass(frozen=True)
class Suspect:
    """A series that seems to have changed."""

    step: str
    metric: str
    before: Night
    """The last night whose value is closer to the level than to tonight's value."""

    probability: float
    """The two-sided probability of such a distance from the level when nothing changed."""

    shift: float
    """The logarithm of tonight's value over the level."""


@dataclass(frozen=True)
class ScreenedNight:
    """The last night of a branch in one environment, with its suspects."""

    night: Night
    suspects: tuple[Suspect, ...] = ()
    """The suspects, least probable first."""

    returned: tuple["ReturnedChange", ...] = ()
    """The open changes that seem to be gone."""

    of_version: tuple[Night, ...] = ()
    """The nights with tonight's version, in order; more than one when it was measured repeatedly."""


@dataclass(frozen=True)
class ReturnedChange:
    """An open change that seems to be gone."""

    change: StoredChange
    steps: tuple[str, ...]
    before: Night
    """A night before it in all series of the environment."""

    threshold: float
    """Half of the smallest size among its series, as a fraction."""


def series_count(connection: Connection, box: str) -> int:
    """Return the number of series of a box that can be suspects by their noise."""
    by_noise = [metric for metric in judged_metrics() if rule_of(metric).by_noise]
    query = select(func.count()).where(series.c.box == box, series.c.metric.in_(by_noise))
    return int(connection.execute(query).scalar_one())


def find_suspects(
    connection: Connection,
    environment: Environment,
    branch: str,
    changes: Sequence[StoredChange],
    least: float,
) -> ScreenedNight | None:
    """Return the suspects of the last night of a branch; None when the branch has no new version.

    `changes` are the stored changes of the branch and suite. `least` is the practical threshold, as a
    fraction; a suspect differs from its level by at least half of it, or as its metric's row says. What is
    negligible is none.
    """
    base = base_beside(connection, environment, branch)
    if base is None:
        return None
    matrix = read_matrix(connection, environment, branch, base, judged_metrics(), NIGHTS_READ)
    last = _nights_of_last_version(matrix)
    if not last or len(last) == len(matrix.nights):
        return None
    matrix = _without_earlier_nights(matrix, len(last))
    returned = tuple(_returned(matrix, changes))
    returned_steps = {step for change in returned for step in change.steps}
    reported = _confirmed(changes, matrix.nights[-1])
    groups = groups_of(session_of(connection, matrix.nights[-1].session_id))
    ratios = BranchLogRatios(matrix, changes, groups)
    limit = FALSE_SUSPECTS_A_NIGHT / max(1, series_count(connection, environment.box))
    noise = RoundNoise(connection, matrix)
    known = store.load(connection, [series_id for series_id, _, _ in matrix.series])
    found = [
        *_suspects(ratios, noise, limit, least),
        *_gathered(
            ratios, [*ratios.earlier_levels(), *_examined(ratios, known)], limit / WAYS_OF_SUSPICION, least
        ),
    ]
    suspects = [
        suspect
        for suspect in found
        if suspect.step not in returned_steps and not _is_reported(suspect, reported)
    ]
    suspects.sort(key=lambda suspect: suspect.probability)
    return ScreenedNight(matrix.nights[-1], tuple(suspects), returned, last)


def _is_reported(suspect: Suspect, reported: set[tuple[str, Night]]) -> bool:
    return any(
        step == suspect.step and suspect.before.started_at <= before.started_at for step, before in reported
    )


def _examined(ratios: BranchLogRatios, confirmed: Sequence[Confirmation]) -> Iterator[Known]:
    """Yield the rows and nights up to which commits were measured side by side, as levels that went on.

    What the nights until then looked like was asked, and answered as far as rounds can tell: only later ones
    are evidence. Of a group all of its series must have been measured.
    """
    column = {night.session_id: number for number, night in enumerate(ratios.matrix.nights)}
    measured: dict[int, set[int]] = {}
    for found in confirmed:
        if found.question is ConfirmationRequest.NEW and found.after.session_id in column:
            measured.setdefault(column[found.after.session_id], set()).add(found.series_id)
    for night, series_ids in measured.items():
        for row, scored in enumerate(ratios.rows):
            if series_ids.issuperset(scored.series_ids):
                yield Known(row, night + 1, math.nan)


def _gathered(
    ratios: BranchLogRatios, known: Sequence[Known], limit: float, least: float
) -> Iterator[Suspect]:
    """Iterate over the suspects by the latest nights together: steps too small for one night to show."""
    nights = ratios.matrix.nights
    metrics = [row.metric for row in ratios.rows]
    for row, its_evidence in enumerate(evidence(metrics, ratios.logs, known)):
        if its_evidence is None or not math.isfinite(ratios.logs[row, -1]):
            continue
        _, distance = rule_of(metrics[row]).suspect(metrics[row], limit, least)
        level = ratios.level(row)
        if level is None or ratios.matrix.is_negligible(row, level, level + its_evidence.size):
            continue
        before = _last_built(nights, its_evidence.first)
        if its_evidence.probability > limit or abs(its_evidence.size) <= distance or before is None:
            continue
        for step in ratios.steps_of(row):
            yield Suspect(step, metrics[row], before, its_evidence.probability, its_evidence.size)


def _last_built(nights: Sequence[Night], last: int) -> Night | None:
    """Return the last night up to a column with a version that was built, and is not the last one."""
    built = (night for night in reversed(nights[: last + 1]) if night.build_id is not None)
    return next((night for night in built if night.version != nights[-1].version), None)


def _confirmed(changes: Sequence[StoredChange], tonight: Night) -> set[tuple[str, Night]]:
    """Return the steps of open changes confirmed in earlier nights, each with the night before the change.

    Confirming rounds end when throughput is decided, so that a cost which they left undecided is a suspect
    every night since. Its step is reported already, and the watch raises the cost if it persists.
    """
    return {
        (outcome.shift.step, outcome.shift.last_before)
        for change in changes
        if change.status is ChangeStatus.OPEN
        for outcome in change.outcomes
        if outcome.shift.confirmed and outcome.shift.first_after.started_at < tonight.started_at
    }


def _nights_of_last_version(matrix: SeriesMatrix) -> tuple[Night, ...]:
    """Return the trailing nights with the version of the last one."""
    trailing = takewhile(lambda night: night.version == matrix.nights[-1].version, reversed(matrix.nights))
    return tuple(trailing)[::-1]


def _without_earlier_nights(matrix: SeriesMatrix, of_last: int) -> SeriesMatrix:
    """Return the matrix without all but the last of the `of_last` trailing nights of one version.

    There are several, for example, when a session was repeated days later.
    """
    kept = [*range(len(matrix.nights) - of_last), len(matrix.nights) - 1]
    nights = tuple(matrix.nights[column] for column in kept)
    return replace(matrix, nights=nights, ratios=matrix.ratios[:, kept])


def _suspects(ratios: BranchLogRatios, noise: RoundNoise, limit: float, least: float) -> Iterator[Suspect]:
    for row, probability in enumerate(tonight_probabilities(ratios, noise)):
        level, tonight = ratios.level(row), float(ratios.logs[row, -1])
        metric = ratios.rows[row].metric
        ways = WAYS_OF_SUSPICION if len(ratios.columns(row)) >= TOGETHER_FROM else 1
        most, distance = rule_of(metric).suspect(metric, limit / ways, least)
        if level is None or not (probability <= most and abs(tonight - level) > distance):
            continue
        if ratios.matrix.is_negligible(row, level, tonight):
            continue
        for step in ratios.steps_of(row):
            before = _last_before(ratios, row, level, tonight)
            if before is not None:
                yield Suspect(step, metric, before, float(probability), tonight - level)


def _last_before(ratios: BranchLogRatios, row: int, level: float, tonight: float) -> Night | None:
    """Return the last night of another version that is closer to the level than to tonight's value.

    An outlier that was not confirmed is skipped in this way. Without such a night it is the last of another
    version that was built, or None.
    """
    nights = ratios.matrix.nights
    others = [
        column
        for column in ratios.columns(row)
        if nights[column].version != nights[-1].version and nights[column].build_id is not None
    ]
    values = ratios.logs[row]
    near = [column for column in others if abs(values[column] - level) <= abs(values[column] - tonight)]
    return nights[max(near or others)] if others else None


def _returned(matrix: SeriesMatrix, changes: Sequence[StoredChange]) -> Iterator[ReturnedChange]:
    """Iterate over open changes of which most series are closer tonight to the level before than after.

    What takes an improvement back is no return, but a change for the worse between commits of its own.
    """
    row = {series_id: number for number, (series_id, _, _) in enumerate(matrix.series)}
    tonight = matrix.nights[-1]
    for change in changes:
        direction = direction_of(outcome.shift for outcome in change.outcomes)
        if change.status is not ChangeStatus.OPEN or direction is Direction.BETTER:
            continue
        members = [
            outcome.shift
            for outcome in change.outcomes
            if outcome.shift.series_id in row
            and outcome.gone is None
            and outcome.shift.first_after.started_at < tonight.started_at
            and matrix.ratios[row[outcome.shift.series_id], -1] > 0
        ]
        near = [
            member
            for member in members
            if _is_nearer(float(matrix.ratios[row[member.series_id], -1]), member)
        ]
        before = min(
            (member.last_before for member in members), key=lambda night: night.started_at, default=None
        )
        if before is None or before.build_id is None or 2 * len(near) <= len(members):
            continue
        if before.version != tonight.version:
            steps = tuple(dict.fromkeys(member.step for member in members))
            yield ReturnedChange(change, steps, before, _half(members))


def _is_nearer(value: float, member: Shift) -> bool:
    before, after = math.log(value / member.before), math.log(value / member.after)
    return abs(before) < abs(after)


def _half(members: Sequence[Shift]) -> float:
    """Return half of the smallest size, as a fraction: of throughput if it changed, else of all members."""
    throughput = [member for member in members if member.metric == PRIMARY] or members
    return -math.expm1(-min(abs(member.log_size) for member in throughput) * HALF)
