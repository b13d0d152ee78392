"""`./tidemark status`: what the nightly service is doing, and whether its results arrive."""

import argparse
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from build.home import Home, locate
from history.errors import HistoryError
from history.escaping.json_strings import json_text
from history.open import existing_history, open_reader
from history.spool.journal import waiting_in
from runners.fitness.agent_release import agent_releases
from runners.fitness.kernel import Kernel
from runners.nightly.health import BoxHealth, TaskHealth, box_healths, full_disk
from runners.nightly.heartbeat import State, Status, status
from runners.nightly.plan import find_box, load_plan, plan_history
from runners.nightly.plan_rules.open_changes import open_change_lines
from runners.nightly.status_text import heard_of, status_text, task_lines
from runners.occupancy.pause import Pause, last_pause


def main(arguments: argparse.Namespace) -> int:
    """Print the status; return 0 when nobody has to act, 1 when somebody has, or when nothing ever ran."""
    now, home = datetime.now(UTC), locate()
    pause = last_pause(home)
    found = status(home.heartbeat, now, None if pause is None else pause.until)
    paused = pause if pause is not None and pause.is_in_force(now) else None
    waits = [str(waiting) for waiting in waiting_in(home.spool)]
    health, changes, trouble = _health(arguments, home, found, pause, now)
    problems = [problem for problem in (trouble, full_disk(home.path)) if problem]
    # Nights begin by the timer all the same: nobody is called for it, and the watch knows the day.
    agents = [agent.line(now) for agent in agent_releases(Kernel()) if agent.is_old(now)]
    is_waiting = found.state is State.NEVER and paused is not None
    is_well = found.state in (State.RUNNING, State.ENDED) or is_waiting
    is_well = is_well and not problems and (health is None or health.is_well)
    if arguments.format == "json":
        beat = asdict(found.beat) if found.beat else {}
        tasks = [_as_json(task) for task in health.tasks] if health else []
        of_pause = paused.as_json() if paused else None
        whole = {"state": found.state, "healthy": is_well, **beat, "paused": of_pause, "waiting": waits}
        whole |= {"problems": problems, "runners": agents, "tasks": tasks, "changes": changes}
        print(json_text(whole, indent=1))
    else:
        lines = task_lines(health, now) if health else []
        print("\n".join([status_text(found, now, paused), *problems, *agents, *waits, *lines, *changes]))
    return 0 if is_well else 1


def _health(
    arguments: argparse.Namespace, home: Home, found: Status, pause: Pause | None, now: datetime
) -> tuple[BoxHealth | None, list[str], str]:
    """Return the health of the box of this machine and the open changes, or why they are unknown."""
    beat = found.beat
    named = arguments.plan or (beat.plan if beat else "")
    if not named:  # nothing ever ran, or an older Tidemark did
        return None, [], ""
    plan = load_plan(Path(named))
    box = arguments.box or (beat.box if beat and beat.box in plan.boxes else None)
    box = find_box(plan, box, platform.node())
    is_first = found.state is State.RUNNING
    try:
        history = existing_history(str(plan_history(plan, home)))
        with open_reader(history) as reader, reader.database.reading() as connection:
            health = box_healths(plan, connection, now, [box], heard_of(found, pause))[0]
            return health, list(open_change_lines(plan, connection, now)), ""
    except HistoryError as error:
        return None, [], "" if is_first else f"whether results arrive is unknown: {error}"


def _as_json(health: TaskHealth) -> dict[str, Any]:
    newest, state = health.newest, health.state
    return {
        "suite": health.task.suite,
        "profile": health.task.profile,
        "tracked": health.tracked,
        "newest": newest and {"version": newest.version, "measured_at": newest.measured_at.isoformat()},
        "outcome": state and state.outcome,
        "since": state and state.since.isoformat(),
        "checked_at": state and state.checked_at.isoformat(),
        "overdue": health.is_overdue,
        "why": health.why,
    }
