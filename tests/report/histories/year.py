"""A year of nights of one box: two steps, a branch with three changes, a release branch with two releases.

In one night a step failed, so that it has no mean of both steps.
"""

from datetime import timedelta

from history.changes.detector import judge
from tests.history.handmade import MACHINE, NIGHT
from tests.report.rich import BASE, BRANCH, RichHistory, commit

NIGHTS = 365
STEPS = ("insert", "delete")
RELEASES = {1: "postgres@18.4", 120: "postgres@18.5", 240: "postgres@18.6"}
"""The release that the release branch is at, from a night on."""

CHANGES = {90: 0.94, 200: 1.08, 300: 0.90}
"""By what `insert` of the branch changed in a night."""

FAILED = 150
"""The night in which `delete` failed."""

BEFORE_JUDGED = 30
"""After so many nights with a change the nights are judged, as they are in a real year after each night."""


def version_in(number: int) -> str:
    """Return the release that was measured in a night."""
    return [version for night, version in RELEASES.items() if night <= number][-1]


class YearHistory(RichHistory):
    """Writes the history."""

    def write(self, nights: int = NIGHTS) -> None:
        """Write all nights, and judge them after each change and at the end."""
        for number in range(1, nights + 1):
            self.moment = NIGHT + timedelta(days=number)
            self._night(number)
            if number - BEFORE_JUDGED in CHANGES:
                judge(self.store.database, clock=lambda: self.moment)
        judge(self.store.database, clock=lambda: self.moment)
        self.store.close()

    def _night(self, number: int) -> None:
        tip, release = commit(number), version_in(number)
        level = 1.0
        for night, factor in CHANGES.items():
            level *= factor if night <= number else 1.0
        speeds = {BASE: {}, release: dict.fromkeys(STEPS, 1.06), tip: {"insert": level}}
        self.session(
            f"year{number:03}",
            MACHINE,
            (BASE, release, tip),
            speeds,
            {tip: BRANCH},
            failing=number == FAILED,
            steps=STEPS,
            rounds=2,
        )
