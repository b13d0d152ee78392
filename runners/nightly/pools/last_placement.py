"""What the boxes of a pool agreed on last, kept on each for nights in which the history cannot be reached."""

import json
from pathlib import Path

from build.files import json_value, write_atomically
from build.home import Home
from history.placement.hashing import SharedTask
from history.placement.pool import PoolNight
from runners.nightly.plan import Plan


def remember(home: Home, night: PoolNight | None) -> None:
    """Keep the placements of a night of a pool; without a pool there is nothing to keep."""
    if night is None:
        return
    rows = [[task.suite, task.configuration, task.branch, box] for task, box in sorted(night.placed.items())]
    write_atomically(_path(home), json.dumps({"pool": night.pool, "placed": rows}) + "\n")


def recall(home: Home, plan: Plan, box: str, reason: str) -> PoolNight | None:
    """Return the last known placements, with why they are used as a problem; None for a box without a pool.

    A box that knows none measures nothing of the pool: two boxes could continue one series.
    """
    pool = plan.boxes[box].pool
    if pool is None:
        return None
    placed: dict[SharedTask, str] = {}
    try:
        kept = json_value(_path(home).read_text(encoding="utf-8"))
        if kept["pool"] == pool:
            placed = {SharedTask(*map(str, task)): str(holder) for *task, holder in kept["placed"]}
    except (OSError, ValueError, KeyError, TypeError):
        placed = {}
    known = "what was placed last is measured" if placed else "nothing of the pool is measured"
    return PoolNight(pool, box, placed, problems=(f"pool {pool}: {known}: {reason}",))


def _path(home: Home) -> Path:
    return home.path / "pool.json"
