"""The fingerprints of changes, by which a stored change is found again."""

import hashlib
from collections.abc import Sequence

from sqlalchemy import Connection

from history.changes import repository
from history.changes.level_shift import Shift, ShiftOutcome


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
    name = fingerprint(cluster[0].shift)
    while name in taken:
        name = _digest(name, *sorted(str(outcome.shift.series_id) for outcome in cluster))
    return name


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
