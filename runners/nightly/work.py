"""The work of a night on a box: releases without a result, and branches that have moved since theirs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from build.engines import ENGINES
from build.errors import TidemarkError
from build.extension import EXTENSIBLE, commit_of
from build.home import Home
from build.installs import recorded_install
from build.sources.git import mirror
from build.sources.repository import git_address
from build.version import Engine, Version, parse_revision, parse_version
from history.series.night import configuration_name, release_branch
from history.series.results import KnownResult, known_results
from history.series.task_states import TaskOutcome
from history.store.records import Environment
from runners.measuring.request import Exact, Request, Sampled
from runners.measuring.variants import Variants
from runners.nightly.keys.tracked import Tracked, install_branch
from runners.nightly.plan import Plan, Task
from runners.nightly.variant_plan import at_commit
from suites.additions.variant import EXTENSIONS
from suites.definition import load_suite
from suites.keys.durability import Durability

COMMIT_DIGITS = 12
"""The hex digits of a commit in the name of a version."""


NIGHT_PASSES = 1
"""The counted passes of a version and step in a night: what looks changed is counted again the same night."""


@dataclass(frozen=True)
class Tip:
    """The current tip of a branch, or why it is unknown."""

    branch: str
    """The branch with its engine: `postgres@master`."""

    version: Version | None
    """The version of its commit: `postgres@git:5bf748b86b12`; None when it could not be fetched."""

    problem: str = ""
    """Why it could not be fetched."""


@dataclass(frozen=True)
class PlannedSession:
    """A session that a night is to carry out."""

    task: Task
    request: Request
    environment: Environment


@dataclass(frozen=True)
class Target:
    """A version or branch that the plan tracks, in a task of a box, and what became of it."""

    task: Task
    environment: Environment
    tracked: str
    """`postgres@master` for a branch, `postgres@18.6` for a release, as the plan names it."""

    version: Version | None
    """The version of its tip; None for a branch that could not be fetched."""

    outcome: TaskOutcome = TaskOutcome.PENDING
    reason: str = ""
    """Why it has no result, in full; empty when it has one."""

    was_fetched: bool = False
    """Whether it is a branch whose tip was asked for when the night began."""

    since: datetime | None = None
    """Since when no night has left it with a result, if that was before this night."""

    @property
    def is_pending(self) -> bool:
        """Whether it is still to be measured."""
        return self.outcome is TaskOutcome.PENDING

    @property
    def name(self) -> str:
        """The branch with its commit, or the release: `postgres@master (5bf748b86b12)`."""
        if self.version is None or str(self.version) == self.tracked:
            return self.tracked
        # Of a release that moves, an extension does.
        last = self.version.variant.rpartition("-")[2] if self.version.is_release else self.version.ref
        return f"{self.tracked} ({last.removeprefix('git:')})"

    @property
    def place(self) -> str:
        """The suite and the profile."""
        return f"{self.task.suite} {self.task.profile}"


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

    targets: tuple[Target, ...] = ()
    """Everything that the plan tracks there."""


@dataclass(frozen=True)
class NightWork:
    """The work of a night."""

    spots: tuple[Spot, ...]
    """The spots in order of priority."""

    @property
    def sessions(self) -> tuple[PlannedSession, ...]:
        """The sessions to carry out, in order of priority."""
        return tuple(spot.session for spot in self.spots if spot.session is not None)

    @property
    def targets(self) -> tuple[Target, ...]:
        """Everything that the plan tracks on the box."""
        return tuple(target for spot in self.spots for target in spot.targets)


def find_work(
    plan: Plan,
    box: str,
    hostname: str,
    connection: Connection,
    home: Home,
    others: Sequence[Connection] = (),
) -> NightWork:
    """Return what the history lacks for a box, in order of priority; `others` are further histories of it.

    A branch that cannot be fetched is a target without a version; work that does not need it is still found.
    """
    tips = {engine: tuple(_tips(engine, tracked, home)) for engine, tracked in plan.engines.items()}
    commits = {tip.branch: tip for tip in _extension_tips(plan, home)}
    bases = {engine: _base(tracked, home) for engine, tracked in plan.engines.items()}
    found = []
    for task in plan.tasks_of(box):
        for engine in plan.engines_of(task):
            tracked = plan.engines[engine]
            environment = environment_of(request_of(task, (tracked.base_version,)), hostname)
            every = [
                _at_commit(target, commits)
                for target in _targets(plan, engine, task, environment, tips[engine])
            ]
            targets = _looked_up(plan, every, environment, (connection, *others))
            base = bases[engine]
            if base.version is None:
                targets = _without_base(targets, base)
            session = _session(plan, engine, task, environment, targets, base.version)
            examined = frozenset(f"{engine}@{branch}" for branch in tracked.branches)
            # The build of an install prefix before a change is gone, and cannot confirm it.
            fetched = (target for target in every if target.was_fetched and not _is_install(target))
            examined |= {branch_of(target) for target in fetched}
            found.append(Spot(task, engine, environment, session, examined, targets))
    return NightWork(tuple(found))


def _is_install(target: Target) -> bool:
    return target.version is not None and target.version.is_install


def tracked_names(plan: Plan, engine: Engine) -> tuple[str, ...]:
    """Return what a plan tracks of an engine: releases, branches, prefixes; of one without any, the base."""
    tracked = plan.engines[engine]
    names = tuple(f"{engine}@{release}" for release in (*tracked.releases, *tracked.moving))
    return names or (tracked.base,)


def branch_of(target: Target) -> str:
    """Return the branch of a target's series: `postgres@18` of `postgres@18.6`."""
    tracked = parse_version(target.tracked)
    return release_branch(tracked) if tracked.is_release else target.tracked


def environment_of(request: Request, box: str) -> Environment:
    """Return the environment to which the nights of a request belong."""
    row = {
        "profile": request.profile_name,
        "durability": request.durability,
        "options": json.dumps(
            {
                "mode": request.profile.mode,
                "seconds": request.profile.seconds,
                **request.every.to_json(),
                "layers": {**request.suite.layers, **request.every.layers},
                **request.profile.declared.options,
            }
        ),
    }
    return Environment(box, request.suite.name, configuration_name(row))


def base_of(tracked: Tracked, home: Home) -> Version:
    """Return the base as it is recorded: a prefix by the digest of its files. Raises PrefixError."""
    base = tracked.base_version
    return recorded_install(base, home).version if base.is_install else base


def _base(tracked: Tracked, home: Home) -> Tip:
    try:
        return Tip(tracked.base, base_of(tracked, home))
    except TidemarkError as error:
        return Tip(tracked.base, None, str(error))


def _without_base(targets: Sequence[Target], base: Tip) -> tuple[Target, ...]:
    """Return the targets of an engine whose base cannot be read, beside which they would be measured."""
    reason = f"the base {base.branch} cannot be measured: {base.problem}"
    return tuple(
        replace(target, outcome=TaskOutcome.UNREACHABLE, reason=reason) if target.is_pending else target
        for target in targets
    )


def _tips(engine: Engine, tracked: Tracked, home: Home) -> Iterator[Tip]:
    for entry in tracked.installs:
        name = f"{engine}@{install_branch(entry)}"
        try:
            yield Tip(name, recorded_install(parse_revision(f"{engine}@{entry}"), home).version)
        except TidemarkError as error:
            yield Tip(name, None, str(error))
    if not tracked.branches:
        return
    address = git_address(engine, tracked.git) or ENGINES[engine].upstream.git
    for branch in tracked.branches:
        name = f"{engine}@{branch}"
        try:
            ref, _, variant = branch.partition("#")
            commit = mirror(address, engine, home).fetch(ref).commit
        except TidemarkError as error:
            yield Tip(name, None, str(error))
        else:
            yield Tip(name, Version(engine, f"git:{commit[:COMMIT_DIGITS]}", variant))


def _extension_tips(plan: Plan, home: Home) -> Iterator[Tip]:
    """Yield the variants with an extension, by name, at the commit that its ref has today."""
    for name, definition in plan.definitions().items():
        for extension in definition.extensions:
            try:
                commit = commit_of(extension, home).commit
            except TidemarkError as error:
                yield Tip(name, None, str(error))
            else:
                yield Tip(name, Version(EXTENSIBLE, "", at_commit(name, commit)))


def _at_commit(target: Target, commits: Mapping[str, Tip]) -> Target:
    """Return a target whose variant has an extension as a branch at the commit of that."""
    tip = commits.get(target.version.variant) if target.version else None
    if tip is None or target.version is None:
        return target
    if tip.version is None:
        return replace(target, version=None, outcome=TaskOutcome.UNREACHABLE, reason=tip.problem)
    return replace(target, version=replace(target.version, variant=tip.version.variant), was_fetched=True)


def _targets(
    plan: Plan, engine: Engine, task: Task, environment: Environment, tips: Sequence[Tip]
) -> Iterator[Target]:
    """Yield what the plan tracks of an engine in a task, as far as it is known without the history."""
    branches = {tip.branch: tip for tip in tips}
    for name in tracked_names(plan, engine):
        tip = branches.get(name)
        if tip is None:
            yield Target(task, environment, name, parse_version(name))
        elif tip.version is None:
            yield Target(task, environment, name, None, TaskOutcome.UNREACHABLE, tip.problem)
        else:
            yield Target(task, environment, name, tip.version, was_fetched=True)


def _looked_up(
    plan: Plan, targets: Sequence[Target], environment: Environment, histories: Sequence[Connection]
) -> tuple[Target, ...]:
    """Return targets with what histories know of them: a result, or a failure of their own."""
    names = {str(target.version) for target in targets if target.is_pending}
    known: dict[str, KnownResult] = {}
    for history in histories:
        for name, result in known_results(history, environment, names).items():
            if name not in known or known[name].failure:
                known[name] = result
    definitions = plan.definitions(target.version for target in targets if target.version)
    return tuple(_as_known(target, known.get(str(target.version)), definitions) for target in targets)


def _as_known(target: Target, result: KnownResult | None, definitions: Variants) -> Target:
    if not target.is_pending or result is None:
        return target
    if not result.failure:
        return replace(target, outcome=TaskOutcome.CURRENT)
    assert target.version is not None
    variant = target.version.variant
    defined = definitions[variant].to_json() if variant in definitions else {}
    if _besides_extensions(defined) != _besides_extensions(result.definition or {}):
        return target  # what failed was another server
    return replace(target, outcome=TaskOutcome.FAILED, reason=result.failure)


def _besides_extensions(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition without extensions, whose commit is in the name of the version."""
    return {key: value for key, value in definition.items() if key != EXTENSIONS}


def _session(
    plan: Plan,
    engine: Engine,
    task: Task,
    environment: Environment,
    targets: Sequence[Target],
    base: Version | None,
) -> PlannedSession | None:
    """Return the session that measures the pending targets beside the base; None when there are none."""
    tracked = plan.engines[engine]
    if base is None:
        return None
    pending = [(target, target.version) for target in targets if target.is_pending and target.version]
    if not pending:
        return None
    contenders = (version for _, version in pending if version != base)
    versions = (base, *dict.fromkeys(contenders))
    # A variant of a release is followed from one release of the line to the next, as plain releases are.
    named = {
        str(version): branch_of(target)
        for target, version in pending
        if version.variant or not version.is_release
    }
    request = request_of(task, versions, named, tracked.git, plan.definitions(versions))
    return PlannedSession(task, request, environment)


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
    suite = load_suite(task.suite).with_declared(task.memory, task.disk)
    profile = suite.profile(task.profile)
    return Request(
        versions=versions,
        suite=suite,
        profile_name=task.profile,
        steps=suite.select(task.steps, task.profile, task.clients),
        repetitions=task.rounds or profile.repetitions,
        blocks=task.rounds,
        until_decided=task.until_decided or profile.until_decided,
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
