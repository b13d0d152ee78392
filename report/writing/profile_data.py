"""CPU profiles as data of the site: folded stacks, which the browser subtracts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from history.comparison.profile_diff import total
from report import addresses
from report.writing.series_data import call
from suites.profiling.stacks import StepProfile

MIN_SHARE = 0.0002
"""A stack with a smaller share of the samples is left out: it is less than a pixel wide."""


@dataclass(frozen=True)
class ProfileEntry:
    """A profile of the site."""

    uid: str
    started_at: datetime
    box: str
    suite: str
    step: str
    version: str

    @property
    def name(self) -> str:
        """What links call it."""
        return addresses.digest(self.uid, self.step, self.version)

    @property
    def path(self) -> str:
        """Where its stacks lie."""
        return addresses.profile_data(self.uid, self.step, self.version)


def stacks_script(entry: ProfileEntry, profile: StepProfile) -> str:
    """Return the stacks of a profile, with nanoseconds per query, as a script."""
    least = profile.samples * MIN_SHARE
    scale = 1000 * profile.microseconds_per_sample
    kept = {stack: round(count * scale) for stack, count in profile.stacks.items() if count >= least}
    return call("profile", entry.name, {"total": round(1000 * total(profile)), "stacks": kept})


def profile_index(entries: Sequence[ProfileEntry]) -> str:
    """Return the list of profiles as a script."""
    rows = [
        [
            entry.name,
            entry.path,
            addresses.file_name(entry.uid),
            f"{entry.started_at:%Y-%m-%d}",
            entry.box,
            entry.suite,
            entry.step,
            entry.version,
        ]
        for entry in entries
    ]
    return call("profiles", rows)
