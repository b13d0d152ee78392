"""What a box of a pool measures: the tasks of the plan for single branches, placed through the history."""

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from build.version import Engine, parse_version
from history.placement.hashing import Demand, SharedTask
from history.placement.pool import PoolNight, begin_night
from history.series.night import release_branch
from history.store.records import Environment, SessionStatus
from history.store.schema import nights, sessions
from history.store.writer import Store
from history.timestamps import from_text, to_text
from runners.measuring.request import Request
from runners.nightly.plan import Plan, PoolPlan, Task
from runners.nightly.work import Spot, environment_of, request_of

KNOWN_DAYS = 30
"""The days whose sessions say how long a task takes."""

OVERHEAD = 2.0
"""Minutes of a session over those of its load, where no session is known: loading, copying, resetting."""

VERSIONS = 2
"""The versions in the night of a shared task: its branch and the base."""


def begin_in_pool(plan: Plan, box: str, hostname: str, store: Store) -> PoolNight | None:
    """Agree with the other boxes of a pool on who measures what; None for a box without a pool."""
    pool = plan.boxes[box].pool
    if pool is None:
        return None
    boxes = plan.boxes_of(pool)
    # Not in the transaction that writes, for which recording boxes would wait: minutes may be a moment old.
    with store.database.reading() as connection:
        demands = find_demands(plan, boxes, connection, store.now())
    with store.database.writing() as connection:
        return begin_night(connection, pool, boxes, demands, box, hostname, store.now())


def is_mine(night: PoolNight | None, environment: Environment, branch: str) -> bool:
    """Whether a box is to measure a branch in an environment; without a pool it is."""
    return night is None or night.is_mine(shared_task(environment, branch))


def elsewhere(night: PoolNight | None, environment: Environment, branch: str) -> str | None:
    """Return the other box of the pool that measures a branch in an environment; None without one."""
    holder = None if night is None else night.placed.get(shared_task(environment, branch))
    return None if night is None or holder == night.box else holder


def examined_spots(plan: Plan, night: PoolNight | None, spots: Sequence[Spot]) -> list[Spot]:
    """Return where a box examines suspicions: its own ones, or with `confirm = "other"` those of others.

    Then it looks at its own only for tasks that no other box can measure.
    """
    if night is None or plan.pools.get(night.pool, PoolPlan()).confirm == "own":
        return list(spots)
    found = []
    for spot in spots:
        here = spot.environment
        alone = {name for name in spot.branches if shared_task(here, name) not in night.seconds}
        found.append(replace(spot, branches=frozenset(alone)))
        theirs = defaultdict(set)
        for branch in (f"{spot.engine}@{name}" for name in plan.engines[spot.engine].branches):
            if night.seconds.get(shared_task(here, branch)) == night.box:
                theirs[night.placed[shared_task(here, branch)]].add(branch)
        for box, branches in sorted(theirs.items()):
            if box in night.hostnames:
                there = replace(here, box=night.hostnames[box])
                found.append(Spot(spot.task, spot.engine, there, None, frozenset(branches), box))
    return found


def shared_task(environment: Environment, branch: str) -> SharedTask:
    """Return what a pool places of an environment: it is the same on all boxes."""
    return SharedTask(environment.suite, environment.configuration, branch)


def find_demands(
    plan: Plan, boxes: Collection[str], connection: Connection, at: datetime
) -> dict[SharedTask, Demand]:
    """Return what the boxes of a pool share, with the minutes that the history says, or the profile."""
    known = _known_minutes(connection, at - timedelta(days=KNOWN_DAYS))
    found: dict[SharedTask, Demand] = {}
    for task in plan.tasks:
        able = frozenset(boxes) & frozenset(task.boxes or boxes)
        if not able:
            continue
        for engine in plan.engines_of(task):
            request = request_of(task, (plan.engines[engine].base_version,))
            environment = environment_of(request, "")
            minutes = known.get((environment.suite, environment.configuration)) or _planned_minutes(request)
            for branch in branches_of(plan, task, engine):
                shared = shared_task(environment, branch)
                before = found.get(shared, Demand(minutes, frozenset()))
                found[shared] = Demand(minutes, before.boxes | able)
    return found


def branches_of(plan: Plan, task: Task, engine: Engine) -> Iterator[str]:
    """Yield the branches of a task, with those of releases and past commits; or else the base's."""
    tracked = plan.engines[engine]
    found = [f"{engine}@{branch}" for branch in tracked.moving]
    found += [release_branch(parse_version(f"{engine}@{release}")) for release in tracked.releases]
    found += [backfill.branch for backfill in task.backfill if backfill.engine is engine]
    yield from dict.fromkeys(found or [release_branch(tracked.base_version)])


def _planned_minutes(request: Request) -> float:
    load = len(request.steps) * request.repetitions * request.profile.seconds
    return max(VERSIONS * OVERHEAD * load / 60, 0.01)


def _known_minutes(connection: Connection, since: datetime) -> Mapping[tuple[str, str], float]:
    """Return the minutes of a night of one branch beside its base, by suite and configuration."""
    key = (nights.c.suite, nights.c.configuration, sessions.c.id, sessions.c.started_at, sessions.c.ended_at)
    query = (
        select(*key, func.count())
        .join_from(nights, sessions, sessions.c.id == nights.c.session_id)
        .where(sessions.c.status == SessionStatus.FINISHED, sessions.c.started_at >= to_text(since))
        .group_by(*key)
    )
    minutes = defaultdict(list)
    for suite, configuration, _, began, ended, versions in map(tuple, connection.execute(query)):
        seconds = (from_text(ended) - from_text(began)).total_seconds()
        minutes[suite, configuration].append(VERSIONS * seconds / versions / 60)
    # Of interrupted sessions that went on the next day there are few.
    return {where: statistics.median(several) for where, several in minutes.items()}
