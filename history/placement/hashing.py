"""Which box of a pool measures what: hashing with bounded loads, as pure functions.

Highest random weight: every box has a pseudo-random score for each task, and the highest one gets it (Thaler
and Ravishankar, 1998). A box takes no more than a little above the mean of all, as in consistent hashing with
bounded loads (Mirrokni, Thorup and Zadimoghaddam, 2018); here loads are minutes. What is placed stays, so
that a box that joins or leaves moves nothing between the others.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

SLACK = 1.1
"""The minutes of a box at most, as a multiple of the mean of its pool, as far as single tasks allow it."""


@dataclass(frozen=True, order=True)
class SharedTask:
    """What a pool places as a whole: a task of the plan for one branch."""

    suite: str
    configuration: str
    branch: str

    @property
    def group(self) -> tuple[str, str, str]:
        """The fields that are hashed. Branches of one engine share their base, so they belong together."""
        return (self.suite, self.configuration, self.branch.partition("@")[0])

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.branch}, {self.suite} {self.configuration}"


@dataclass(frozen=True)
class Demand:
    """What a shared task needs."""

    minutes: float
    """How long a night of it takes; above 0."""

    boxes: frozenset[str]
    """The boxes that may measure it."""


Placement = Mapping[SharedTask, str]
"""The box of each shared task."""


def score(task: SharedTask, box: str) -> int:
    """Return how much a box wants a task: 64 bits that look random and are the same everywhere."""
    text = "\0".join((*task.group, box))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def loads(
    demands: Mapping[SharedTask, Demand], placed: Placement, boxes: Collection[str]
) -> dict[str, float]:
    """Return the minutes of each box."""
    minutes = dict.fromkeys(boxes, 0.0)
    for task, box in placed.items():
        minutes[box] += demands[task].minutes
    return minutes


def spread(
    demands: Mapping[SharedTask, Demand],
    boxes: Collection[str],
    placed: Placement,
    newcomers: Collection[str] = (),
) -> dict[SharedTask, str]:
    """Return a box for every task that is not placed on one of `boxes`, and the others as they are.

    Newcomers come first, up to their fair share: what has to move anyway moves to them. Tasks that none of
    `boxes` may measure are left out. The order of the arguments does not matter.
    """
    found = {task: box for task, box in placed.items() if box in boxes and box in demands[task].boxes}
    minutes = loads(demands, found, boxes)
    share = _share(demands, boxes)
    limits = {box: share if box in newcomers else share * SLACK for box in boxes}
    for task in sorted(demands.keys() - found.keys(), key=lambda task: _largest_first(task, demands)):
        demand = demands[task]
        able = [box for box in boxes if box in demand.boxes]
        if not able:
            continue
        wanted = sorted(able, key=lambda box: (box not in newcomers, -score(task, box), box))
        fitting = (box for box in wanted if minutes[box] + demand.minutes <= limits[box])
        # What is longer than any limit goes to the box that has least to do.
        chosen = next(fitting, None) or min(wanted, key=lambda box: (minutes[box], wanted.index(box)))
        found[task] = chosen
        minutes[chosen] += demand.minutes
    return found


def share_with(
    demands: Mapping[SharedTask, Demand], boxes: Collection[str], placed: Placement, newcomer: str
) -> dict[SharedTask, str]:
    """Return the placement after a box has joined: it takes from the busiest, at most its fair share.

    That is one part of as many as there are boxes, in minutes and in tasks. `boxes` include the newcomer.
    """
    found = dict(placed)
    minutes = loads(demands, found, boxes)
    share = _share(demands, boxes)
    most = len(demands) // len(boxes)
    while sum(box == newcomer for box in found.values()) < most:
        room = share - minutes[newcomer]
        movable = [
            task
            for task, box in found.items()
            if minutes[box] > share
            and box != newcomer
            and newcomer in demands[task].boxes
            and demands[task].minutes <= room
            # Not if the box then had less than the newcomer: the two would only change places.
            and minutes[box] - demands[task].minutes >= minutes[newcomer]
        ]
        if not movable:
            break
        chosen = max(movable, key=lambda task: (minutes[found[task]], score(task, newcomer), task))
        minutes[found[chosen]] -= demands[chosen].minutes
        minutes[newcomer] += demands[chosen].minutes
        found[chosen] = newcomer
    return found


def second_box(task: SharedTask, demand: Demand, boxes: Collection[str], first: str) -> str | None:
    """Return the box that looks at a task's suspicions instead of its own; None without another one."""
    others = [box for box in boxes if box != first and box in demand.boxes]
    return max(others, key=lambda box: (score(task, box), box), default=None)


def _share(demands: Mapping[SharedTask, Demand], boxes: Collection[str]) -> float:
    return sum(demand.minutes for demand in demands.values()) / len(boxes)


def _largest_first(
    task: SharedTask, demands: Mapping[SharedTask, Demand]
) -> tuple[float, tuple[str, str, str], SharedTask]:
    return (-demands[task].minutes, task.group, task)
