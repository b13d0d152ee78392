"""The order in which a branch had its versions, whichever box measured them and at what hour.

Boxes measure the same commit hours apart. By their clocks, last night of a late box is after the beginning of
tonight on an early one, though it measured an earlier commit.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, func, select

from history.series.series import IDS_PER_QUERY, Night
from history.store.database import plain_rows
from history.store.schema import nights
from history.timestamps import from_text

NightRange = tuple[Night, Night]
"""A night before something, and one after it."""


@dataclass(frozen=True)
class VersionOrder:
    """When versions of branches were first measured, on any box."""

    first: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    """By branch and version."""

    def places(self, branch: str, ranges: Sequence[NightRange]) -> list[tuple[datetime, datetime]]:
        """Return where ranges of nights of a branch begin and end, so that they can be compared.

        These are the times at which their versions were first measured. If a range has the same version at
        both ends, or an earlier one at its end, as after a wrong clock, its versions are in no order,
        and all ranges have the times of their nights.
        """
        found = [(self._place(branch, before), self._place(branch, after)) for before, after in ranges]
        if all(before < after for before, after in found):
            return found
        return [(before.started_at, after.started_at) for before, after in ranges]

    def _place(self, branch: str, night: Night) -> datetime:
        return self.first.get((branch, night.version), night.started_at)


def read_version_order(connection: Connection, wanted: Iterable[tuple[str, Night]]) -> VersionOrder:
    """Return the order of the versions of some nights, each with its branch."""
    by_branch: defaultdict[str, set[str]] = defaultdict(set)
    for branch, night in wanted:
        by_branch[branch].add(night.version)
    first: dict[tuple[str, str], datetime] = {}
    for branch, versions in by_branch.items():
        names = sorted(versions)
        for start in range(0, len(names), IDS_PER_QUERY):
            query = (
                select(nights.c.version, func.min(nights.c.started_at))
                .where(nights.c.branch == branch, nights.c.version.in_(names[start : start + IDS_PER_QUERY]))
                .group_by(nights.c.version)
            )
            first |= {(branch, version): from_text(at) for version, at in plain_rows(connection, query)}
    return VersionOrder(first)
