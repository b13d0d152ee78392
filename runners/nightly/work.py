"""The work of a night on a box: releases without a result, and branches that have moved since theirs."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from build.engines import ENGINES
from build.errors import TidemarkError
from build.home import Home
from build.sources.git import mirror
from build.sources.source import git_address
from build.version import Engine, Version, parse_version
from history.series.night import branch_line, configuration_name
from history.store.records import Environment, SessionStatus
from history.store.schema import nights, sessions
from runners.measuring.request import Exact, Request, Sampled
from runners.measuring.variants import Variants
from runners.nightly.plan import Plan, Task, Tracked
from suites.definition import load_suite
from suites.durability import Durability

COMMIT_DIGITS = 12
"""The hex digits of a commit in the name of a version."""


NIGHT_PASSES = 1
"""The counted passes of a version and step in a night: what looks changed is counted again the same night."""


Mine = Callable[[Environment, str], bool]
"""Whether a box is to measure a branch in an environment. In a pool each branch is on one box."""


@dataclass(frozen=True)
class Tip:
    """The current tip of a branch."""

    branch: str
    """The branch with its engine: `postgres@master`."""

    version: Version
    """The version of its commit: `postgres@git:5bf748b86b12`."""


@dataclass(frozen=True)
class PlannedSession:
    """A session that a night is to carry out."""

    task: Task
    request: Request
    environment: Environment


@dataclass(frozen=True)
class Spot:
    """An engine in a task of a box, whether it has anything new or not."""

    task: Task
    engine: Engine
    environment: Environment
    session: PlannedSession | None
    """The session that measures what is new; None when nothing is new."""

    branches: frozenset[str] = frozenset()
    """The tracked branches whose suspicions the box is to examine there."""

    whose: str = ""
    """The box of the pool whose suspicions these are; empty for one's own."""


@dataclass(frozen=True)
class NightWork:
    """The work of a night, and the problems in finding it."""

    spots: tuple[Spot, ...]
    """The spots in order of priority."""

    problems: tuple[str, ...]

    @property
    def sessions(self) -> tuple[PlannedSession, ...]:
        """The sessions to carry out, in order of priority."""
        return tuple(spot.session for spot in self.spots if spot.session is not None)


def everything(environment: Environment, branch: str) -> bool:
    """Return whether a box without a pool is to measure a branch: it is."""
    return True


def find_work(
    plan: Plan,
    box: str,
    hostname: str,
    connection: Connection,
    home: Home,
    mine: Mine = everything,
    others: Sequence[Connection] = (),
) -> NightWork:
    """Return what the history lacks for a box, in order of priority; `others` are further histories of it.

    A git source that cannot be fetched is reported as a problem; work that does not need it is still found.
    """
    problems: list[str] = []
    tips: dict[Engine, list[Tip]] = {}
    for engine, tracked in plan.engines.items():
        tips[engine] = list(_tips(engine, tracked, home, problems))
    found = []
    for task in plan.tasks_of(box):
        for engine in plan.engines_of(task):
            tracked = plan.engines[engine]
            environment = environment_of(request_of(task, (parse_version(tracked.base),)), hostname)
            done = _done(connection, environment).union(*(_done(other, environment) for other in others))
            session = _session(plan, engine, tips[engine], task, environment, done, mine)
            branches = (f"{engine}@{branch}" for branch in tracked.branches)
            its = frozenset(branch for branch in branches if mine(environment, branch))
            found.append(Spot(task, engine, environment, session, its))
    return NightWork(tuple(found), tuple(problems))


def environment_of(request: Request, box: str) -> Environment:
    """Return the environment to which the nights of a request belong."""
    row = {
        "profile": request.profile_name,
        "durability": request.durability,
        "options": json.dumps(
            {
                "mode": request.profile.mode,
                "seconds": request.profile.seconds,
                "settings": dict(request.every.settings),
            }
        ),
    }
    return Environment(box, request.suite.name, configuration_name(row))


def _tips(engine: Engine, tracked: Tracked, home: Home, problems: list[str]) -> Iterator[Tip]:
    if not tracked.branches:
        return
    try:
        source = mirror(git_address(engine, tracked.git) or ENGINES[engine].upstream.git, engine, home)
    except TidemarkError as error:
        problems.append(f"{engine}: {error}")
        return
    for branch in tracked.branches:
        try:
            ref, _, variant = branch.partition("#")
            commit = source.fetch(ref).commit
        except TidemarkError as error:
            problems.append(f"{engine}@{branch}: {error}")
            continue
        yield Tip(f"{engine}@{branch}", Version(engine, f"git:{commit[:COMMIT_DIGITS]}", variant))


def _session(
    plan: Plan,
    engine: Engine,
    tips: list[Tip],
    task: Task,
    environment: Environment,
    done: Collection[str],
    mine: Mine,
) -> PlannedSession | None:
    tracked = plan.engines[engine]
    base = parse_version(tracked.base)
    releases = [parse_version(f"{engine}@{each}") for each in tracked.releases]
    new_releases = [
        each for each in releases if str(each) not in done and mine(environment, release_branch(each))
    ]
    moved = [tip for tip in tips if str(tip.version) not in done and mine(environment, tip.branch)]
    contenders = tuple(dict.fromkeys([*new_releases, *(tip.version for tip in moved)]))
    is_alone = not releases and not tips and mine(environment, release_branch(base))
    if not contenders and not (str(base) not in done and is_alone):
        return None
    named = {str(tip.version): tip.branch for tip in moved}
    # A variant of a release is followed from one release of the line to the next, as plain releases are.
    named |= {str(it): release_branch(it) for it in new_releases if it.variant}
    versions = (base, *contenders)
    request = request_of(task, versions, named, tracked.git, plan.definitions())
    return PlannedSession(task, request, environment)


def release_branch(version: Version) -> str:
    """Return the branch of a release: `postgres@18` of `postgres@18.6`, `postgres@18#uring` of a variant."""
    line = branch_line(version.plain)
    return f"{line}#{version.variant}" if version.variant else line


def request_of(
    task: Task,
    versions: tuple[Version, ...],
    branches: Mapping[str, str] | None = None,
    git: str | None = None,
    variants: Variants | None = None,
) -> Request:
    """Return the request of a task for versions, the base first; `branches` are by version, as in Request.

    `variants` are the definitions of the plan.
    """
    suite = load_suite(task.suite)
    profile = suite.profile(task.profile)
    return Request(
        versions=versions,
        suite=suite,
        profile_name=task.profile,
        steps=suite.select(task.steps, task.profile, task.clients),
        repetitions=task.rounds or profile.repetitions,
        until_decided=task.until_decided,
        perf=Sampled.AFTER if task.perf else None,
        durability=Durability(task.durability),
        exact=Exact.BESIDE if task.exact else Exact.NO,
        beside_passes=NIGHT_PASSES,
        keep_disturbed=task.keep_disturbed,
        seconds=task.seconds,
        resume=True,
        needs_contender=len(versions) > 1,
        branches=branches or {},
        variants=variants or {},
        unattended=True,
        git={} if git is None else {versions[0].engine: git},
    )


def _done(connection: Connection, environment: Environment) -> set[str]:
    """Return the versions with a result there, or that could not be built; neither will change."""
    query = (
        select(nights.c.version)
        .join_from(nights, sessions, sessions.c.id == nights.c.session_id)
        .where(
            nights.c.box == environment.box,
            nights.c.suite == environment.suite,
            nights.c.configuration == environment.configuration,
            sessions.c.status == SessionStatus.FINISHED,
        )
        .distinct()
    )
    return set(connection.execute(query).scalars())
