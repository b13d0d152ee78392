"""How a stored change is found again, and the fingerprints by which people name it."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from history.changes import repository
from history.changes.level_shift import Shift, ShiftOutcome
from history.changes.repository import Change, Member


def fingerprint(shift: Shift) -> str:
    """Return the fingerprint of a change: a digest of its first shift's branch, suite, box and night."""
    parts = (
        shift.branch,
        shift.environment.suite,
        shift.environment.box,
        shift.first_after.started_at.isoformat(),
    )
    return _digest(*parts)


def free_fingerprint(connection: Connection, cluster: Sequence[ShiftOutcome]) -> str:
    """Return the fingerprint of a new change that no stored one has.

    Two changes can begin in one night: as more nights come, a change is dated elsewhere, and what is raised
    then begins where it seemed to. The series tell them apart.
    """
    taken = repository.load_fingerprints(connection)
    name = fingerprint(cluster[0].origin)
    while name in taken:
        name = _digest(name, *sorted(str(outcome.shift.series_id) for outcome in cluster))
    return name


@dataclass(frozen=True)
class FoundAgain:
    """A cluster of shifts, and the stored change that it is."""

    cluster: Sequence[ShiftOutcome]
    change: Change | None
    """None for a new change."""

    moved: Sequence[int] = ()
    """The ids of the series of the stored change that another cluster has now."""


def found_again(clusters: Sequence[Sequence[ShiftOutcome]], stored: Sequence[Change]) -> list[FoundAgain]:
    """Return each cluster with the stored change that it is now.

    They have series in common, with overlapping nights. A change that has come apart, as when its series are
    dated a night apart, stays with the cluster that has most of them, of equal ones with one that nothing
    explains.
    """
    by_series: defaultdict[int, list[tuple[int, Shift]]] = defaultdict(list)
    for number, cluster in enumerate(clusters):
        for outcome in not_refuted(cluster):
            by_series[outcome.shift.series_id] += [(number, shift) for shift in outcome.shifts]
    common: list[tuple[int, bool, int, int]] = []
    having: list[Mapping[int, set[int]]] = []
    for place, change in enumerate(stored):
        by_cluster: defaultdict[int, set[int]] = defaultdict(set)
        for member in change.members:
            for number, shift in by_series.get(member.series_id, ()):
                if _overlap(member, shift):
                    by_cluster[number].add(member.series_id)
        having.append(by_cluster)
        for number, ids in by_cluster.items():
            common.append((-len(ids), bool(clusters[number][0].shift.explained), number, place))
    place_of: dict[int, int] = {}
    for _, _, number, place in sorted(common):
        if number not in place_of and place not in place_of.values():
            place_of[number] = place
    return [
        FoundAgain(cluster, stored[place_of[number]], _moved(number, cluster, having[place_of[number]]))
        if number in place_of
        else FoundAgain(cluster, None)
        for number, cluster in enumerate(clusters)
    ]


def _moved(number: int, cluster: Sequence[ShiftOutcome], having: Mapping[int, set[int]]) -> Sequence[int]:
    others = {series_id for other, ids in having.items() if other != number for series_id in ids}
    return sorted(others - {outcome.shift.series_id for outcome in cluster})


def not_refuted(cluster: Sequence[ShiftOutcome]) -> Sequence[ShiftOutcome]:
    """Return the shifts of a cluster that no measurement has refuted; all of them if every one is refuted."""
    return [outcome for outcome in cluster if not outcome.shift.refuted] or cluster


def is_same(change: Change, cluster: Iterable[ShiftOutcome]) -> bool:
    """Return whether they have a series in common, with ranges of nights that overlap."""
    shifts = {outcome.shift.series_id: outcome.shifts for outcome in cluster}
    return any(
        _overlap(member, shift) for member in change.members for shift in shifts.get(member.series_id, ())
    )


def _overlap(member: Member, shift: Shift) -> bool:
    return (
        member.last_before.started_at < shift.first_after.started_at
        and shift.last_before.started_at < member.first_after.started_at
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
