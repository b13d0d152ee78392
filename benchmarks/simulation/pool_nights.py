"""Simulated nights of a pool: how long they take on each box, and what moves when a box comes or goes.

Tasks and their minutes are simulated; history/placement/ decides who measures what, in a history of its own,
as in a pool of real boxes.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from history.open import open_store
from history.placement.hashing import Demand, SharedTask
from history.placement.pool import GONE_NIGHTS, begin_night
from history.store.writer import Store

TASKS = 60
MEDIAN_MINUTES, SPREAD = 10.0, 0.5
"""The minutes of a version in a session of a task, and the standard deviation of their logarithm."""

NIGHTLY = 0.1
"""The standard deviation of the logarithm of a night's minutes over what is known of them."""

MAX_BOXES = 8
BEGIN = datetime(2026, 1, 1, 2, tzinfo=UTC)

Placed = dict[SharedTask, str]


@dataclass(frozen=True)
class Moved:
    """What moved when one box came or went."""

    tasks: float
    """The tasks that moved, over the share of one box; for a box that left over what it had."""

    minutes: float
    """The same in minutes."""

    others: int
    """The tasks that moved between two boxes of which neither came or went."""


class SimulatedPool:
    """Boxes with tasks of several branches, each measured beside the base of its task."""

    def __init__(self, seed: int, branches: int = 1) -> None:
        draws = random.Random(f"pool {seed} {branches}")
        names = [f"suite-{draws.randrange(10**6)}-{number}" for number in range(TASKS // branches)]
        self._minutes = {name: MEDIAN_MINUTES * draws.lognormvariate(0, SPREAD) for name in names}
        self._tasks = [
            SharedTask(name, "short relaxed 60s", f"postgres@REL_{number}_STABLE")
            for name in names
            for number in range(branches)
        ]
        self._draws = draws

    def length(self, placed: Placed) -> float:
        """Return the minutes of a night in which all branches moved: those of the box that takes longest."""
        tonight = {
            name: minute * self._draws.lognormvariate(0, NIGHTLY) for name, minute in self._minutes.items()
        }
        sessions = Counter((box, task.suite) for task, box in placed.items())
        lengths: Counter[str] = Counter()
        for (box, suite), contenders in sessions.items():
            lengths[box] += tonight[suite] * (1 + contenders)  # type: ignore[assignment]
        return max(lengths.values())

    def ratio(self, count: int) -> float:
        """Return the length of a night on so many boxes over that on one."""
        with _history() as store:
            placed = self._night(store, _names(count), 0)
        return self.length(placed) / self.length(dict.fromkeys(self._tasks, "alone"))

    def joined(self, count: int) -> Moved:
        """Return what moves when a box joins, after which there are so many."""
        boxes = _names(count)
        with _history() as store:
            before = self._night(store, boxes[1:], 0)
            after = self._night(store, boxes, 1)
        share = {"tasks": TASKS / count, "minutes": self._sum(before) / count}
        return self._moved(before, after, boxes[0], **share)

    def left(self, count: int) -> Moved:
        """Return what moves when one of so many boxes has no night any more."""
        boxes = _names(count)
        with _history() as store:
            before = self._night(store, boxes, 0)
            for day in range(1, GONE_NIGHTS + 2):
                after = self._night(store, boxes, day, running=boxes[1:])
        own = {task for task, box in before.items() if box == boxes[0]}
        return self._moved(before, after, boxes[0], tasks=len(own), minutes=self._sum(own))

    def _night(
        self, store: Store, boxes: Sequence[str], day: int, running: Sequence[str] | None = None
    ) -> Placed:
        """Begin a night on all boxes; return where the tasks are after the last of them has."""
        demands = {task: Demand(2 * self._minutes[task.suite], frozenset(boxes)) for task in self._tasks}
        for number, box in enumerate(running or boxes):
            at = BEGIN + timedelta(days=day, minutes=number)
            with store.database.writing() as connection:
                placed = begin_night(connection, "pool", boxes, demands, box, box, at).placed
        return dict(placed)

    def _moved(self, before: Placed, after: Placed, box: str, tasks: float, minutes: float) -> Moved:
        moved = {task for task in before if before[task] != after[task]}
        others = sum(box not in (before[task], after[task]) for task in moved)
        return Moved(len(moved) / tasks, self._sum(moved) / minutes, others)

    def _sum(self, tasks: Collection[SharedTask]) -> float:
        return sum(self._minutes[task.suite] for task in tasks)


def _names(count: int) -> list[str]:
    return [f"box-{number}" for number in range(count)]


@contextmanager
def _history() -> Iterator[Store]:
    with TemporaryDirectory() as folder, open_store(Path(folder) / "history.db") as store:
        yield store
