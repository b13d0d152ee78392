"""A history of ten boxes that measure one branch against one base, and of one with another engine's base.

One of the ten has a name of sixty characters, and the first one has a night whose interval is very wide.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from history.changes.detector import judge
from history.store.records import RunRecord
from tests.history.handmade import MACHINE, NIGHT
from tests.report.rich import BASE, BRANCH, RichHistory, commit

LONG_NAME = "perf-lab-frankfurt-rack-17-unit-04-epyc-9454p-numa-off-db10"
BOXES = (*(f"db{number:02}" for number in range(1, 10)), LONG_NAME)
ODD_BASE = "odd-base"
STEP = "insert"
NIGHTS = 8
SCATTER = (0.75, 1.0, 1.3)
WIDE = 5
"""The night of the first box whose rounds scatter, so that its interval is very wide."""


class TenBoxes(RichHistory):
    """Writes the history; each box has a level of its own."""

    def write(self, nights: int = NIGHTS) -> None:
        """Write all nights of all boxes, and judge them."""
        for number in range(1, nights + 1):
            for place, box in enumerate((*BOXES, ODD_BASE)):
                self.moment = NIGHT + timedelta(days=number, minutes=20 * place)
                base = BASE if box != ODD_BASE else "mysql@8.4.3"
                self._night(number, box, base, 1 + place / 100)
        judge(self.store.database, clock=lambda: self.moment)
        self.store.close()

    def _run(
        self, version: str, step: str, position: int, repetition: int, qps: float, *rest: Any
    ) -> RunRecord:
        scattered = qps * SCATTER[repetition - 1] if self.scatters and version != BASE else qps
        return super()._run(version, step, position, repetition, scattered, *rest)

    def _night(self, number: int, box: str, base: str, level: float) -> None:
        machine = replace(MACHINE, hostname=box, fingerprint=f"f00d{box}")
        tip = commit(number)
        self.scatters = box == BOXES[0] and number == WIDE
        self.session(
            f"{box}n{number:03}",
            machine,
            (base, tip),
            {base: {}, tip: dict.fromkeys((STEP, "delete"), level)},
            {tip: BRANCH},
            steps=(STEP, "delete"),
        )
