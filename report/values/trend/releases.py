"""When a branch moved on to another release."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from history.errors import stored_version
from report.values.catalog import PlaceNights


@dataclass(frozen=True)
class NewRelease:
    """The first night of a branch with another release than before."""

    when: datetime
    branch: str
    before: str
    version: str


def releases_of(nights: PlaceNights) -> Iterator[NewRelease]:
    """Yield the releases of all branches of an environment, the base among them, in order.

    The tip of a branch moves on from night to night; that is no release.
    """
    last: dict[str, str] = {}
    for night in nights.nights:
        for branch, version in night.versions.items():
            before = last.get(branch, version)
            if version != before and stored_version(version).is_release:
                yield NewRelease(night.started_at, branch, before, version)
            last[branch] = version
