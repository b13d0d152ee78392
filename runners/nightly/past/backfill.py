"""Backfill: past commits of a branch are measured beside the base until every date has a point."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np
from sqlalchemy import Connection, select

from build.engines import ENGINES
from build.errors import TidemarkError
from build.home import Home
from build.progress import Progress, Silent
from build.sources.git import mirror
from build.sources.repository import git_address
from build.version import Engine, Version
from history.changes import confirmation
from history.changes.detector import judge
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.results import own_failures
from history.series.series import Night, base_beside
from history.store.records import Environment, FailureCause, SessionStatus
from history.store.schema import sessions
from history.store.writer import Store
from runners.bisect.run.ahead import CompilingAhead
from runners.bisect.run.builds import Unusable, build_of, provider
from runners.measuring.passes.base_work import BaseWork
from runners.measuring.request import Exact, Request, counted_alone
from runners.measuring.session import SessionOutcome, run_session
from runners.measuring.variants import definition_of
from runners.nightly.backfill_plan import Backfill
from runners.nightly.confirm import ExaminedSuspicion, examine, suspicion_of
from runners.nightly.past.filling import (
    Dates,
    ExaminedPair,
    ExaminePair,
    Filled,
    MeasureCommit,
    PastCommit,
    PastState,
    filled,
    has_value,
    next_action,
    next_date,
)
from runners.nightly.past.past_commits import measurable, past_commits
from runners.nightly.plan import Plan, Task
from runners.nightly.work import COMMIT_DIGITS, PlannedSession, base_of, environment_of, request_of
from suites.definition import load_suite
from suites.generators.registry import build_programs_of
from suites.keys.profile import Mode
from suites.metrics import judged_metrics

MAX_PROBLEMS = 3
"""Problems after which a backfill ends: the machine is to blame, and every further session would fail."""


@dataclass(frozen=True)
class BackfillPlace:
    """A branch of a task that is to be backfilled, with its commits."""

    task: Task
    asked: Backfill
    environment: Environment
    commits: tuple[PastCommit, ...]
    base_work: BaseWork = field(default_factory=BaseWork, compare=False)
    """The base works once in a run: its sessions differ in the commit alone."""

    @property
    def engine(self) -> Engine:
        """The engine of the branch."""
        return self.asked.engine

    @property
    def dates(self) -> Dates:
        """The dates that are to have a point."""
        return Dates(self.asked.since_moment, timedelta(days=self.asked.days))

    def version(self, commit: str) -> Version:
        """Return the version of a commit, which is a variant if the branch is."""
        return Version(self.engine, f"git:{commit[:COMMIT_DIGITS]}", self.asked.version.variant)

    def __str__(self) -> str:
        """One line for people."""
        since, task = self.asked.since_moment, self.task
        return f"{self.asked.branch} since {since:%Y-%m-%d}, {task.suite} {task.profile}"


@dataclass
class BackfillResult:
    """What a backfill did on a box."""

    carried_out: list[tuple[PlannedSession, SessionOutcome]] = field(default_factory=list)
    examined: list[ExaminedSuspicion] = field(default_factory=list)
    """Pairs of commits around what looked like a change, and what measuring them against each other gave."""

    in_vain: dict[Version, str] = field(default_factory=dict)
    """The commits that do not compile, with the reason."""

    left_open: dict[Version, str] = field(default_factory=dict)
    """The commits that could not be built for another reason: the next run tries them again."""

    state: list[tuple[str, Filled, bool]] = field(default_factory=list)
    """How far every place is: its name, its dates, and whether anything is left to do there."""

    problems: list[str] = field(default_factory=list)


class BackfillRun:
    """Backfills places in turn for as long as there is time. All state is in the history."""

    def __init__(self, plan: Plan, box: str, home: Home, store: Store, progress: Progress) -> None:
        self._plan, self._home, self._store, self._progress = plan, home, store, progress
        self._confirm_seconds = plan.boxes[box].confirm_minutes * 60
        self._failed: dict[str, set[str]] = {}
        """Commits without a session in this run, by place: the next run tries them again."""
        self._ahead = CompilingAhead()
        self._unexamined: list[ExaminedPair] = []
        """Pairs without a session in this run."""
        self.result = BackfillResult()

    def places(self, asked: Iterable[tuple[Task, Backfill]], hostname: str) -> list[BackfillPlace]:
        """Return the places of backfills; a branch whose commits cannot be read is a problem."""
        found = []
        for task, backfill in asked:
            tracked = self._plan.engines[backfill.engine]
            request = request_of(task, (tracked.base_version,))
            if backfill.counted and request.profile.mode is Mode.LONG:
                self.result.problems.append(
                    f"{backfill.branch}: {task.suite} {task.profile} is in long mode, which counts no "
                    "instructions: give the task another profile"
                )
                continue
            environment = environment_of(request, hostname)
            address = git_address(backfill.engine, tracked.git) or ENGINES[backfill.engine].upstream.git
            try:
                source = mirror(address, backfill.engine, self._home)
                commits = past_commits(source, backfill.engine, backfill.version.ref, backfill.since_moment)
            except TidemarkError as error:
                self.result.problems.append(f"{backfill.branch}: {error}")
                continue
            found.append(BackfillPlace(task, backfill, environment, commits))
        return found

    def run(self, places: Sequence[BackfillPlace], seconds_left: Callable[[], float]) -> BackfillResult:
        """Measure what is missing, one session of each place in turn, until nothing is or the time is over.

        No place takes more than its share of the seconds that are left in the beginning.
        """
        try:
            return self._in_turn(places, seconds_left)
        finally:
            self._ahead.end()

    def _in_turn(self, places: Sequence[BackfillPlace], seconds_left: Callable[[], float]) -> BackfillResult:
        unfinished, total = list(places), seconds_left()
        spent = dict.fromkeys(map(str, places), 0.0)
        while waiting := [spot for spot in unfinished if spent[str(spot)] < total * spot.asked.share]:
            for place in waiting:
                began = seconds_left()
                if began <= 0 or len(self.result.problems) >= MAX_PROBLEMS:
                    return self._with_state(places, unfinished)
                if not self._step(place, began):
                    unfinished.remove(place)
                spent[str(place)] += began - seconds_left()
        return self._with_state(places, unfinished)

    def _step(self, place: BackfillPlace, seconds: float) -> bool:
        """Carry out one session; return whether there was anything to do."""
        least = self._plan.regression_percent / 100
        action = next_action(self._state(place), place.dates, least, self._plan.confirm)
        if isinstance(action, MeasureCommit):
            self._measure(place, action)
        elif action is not None:
            self._examine(place, action, min(seconds, self._confirm_seconds))
        return action is not None

    def _with_state(
        self, places: Iterable[BackfillPlace], unfinished: Collection[BackfillPlace]
    ) -> BackfillResult:
        for place in places:
            self.result.state.append(
                (str(place), filled(self._state(place), place.dates), place in unfinished)
            )
        return self.result

    def _state(self, place: BackfillPlace) -> PastState:
        with self._store.database.reading() as connection:
            state = read_state(connection, place)
        failed = frozenset(self._failed.get(str(place), ()))
        return replace(state, in_vain=state.in_vain | failed, examined=(*state.examined, *self._unexamined))

    def _measure(self, place: BackfillPlace, action: MeasureCommit) -> None:
        commit, tracked = action.commit, self._plan.engines[place.engine]
        version = place.version(commit.commit)
        versions = (base_of(tracked, self._home), version)
        branches = {str(version): place.asked.branch}
        request = request_of(place.task, versions, branches, tracked.git, self._plan.definitions(versions))
        request = replace(request, stands_at={str(version): commit.stands_at}, perf=None)
        if place.asked.counted:
            request = counted_alone(request)
        why = f", around a change in {', '.join(action.lead.steps)}" if action.lead else ""
        self._progress.note(f"backfill of {place}: {version} of {commit.stands_at:%Y-%m-%d}{why}")
        outcome = self._carried_out(
            request, self._progress, str(place), lambda: self._compile_ahead(place, commit), place.base_work
        )
        if outcome is None or not outcome.uid or outcome.failed:
            self._failed.setdefault(str(place), set()).add(commit.commit)
        if outcome is not None:
            self._told(place, request, outcome)

    def _compile_ahead(self, place: BackfillPlace, commit: PastCommit) -> None:
        """Have the commit compiled that fills the next gap once `commit` has its point, if there is one."""
        wanted = next_date(self._state(place), place.dates, (commit.stands_at,))
        if wanted is None:
            return
        version, git = place.version(wanted.commit), self._plan.engines[place.engine].git
        variant = definition_of(version, self._plan.definitions((version,)))
        provided = provider(self._home, Silent(), build_programs_of(load_suite(place.task.suite)), variant)
        self._ahead.start(version, lambda: build_of(version.plain, git, self._home, provided))

    def _told(self, place: BackfillPlace, request: Request, outcome: SessionOutcome) -> None:
        """Add a session to the result, with what the machine is to blame for as a problem."""
        self.result.problems += [f"{version}: {why}" for version, why in outcome.not_built.items()]
        self.result.problems += [
            f"{version}: {why}"
            for version, why in outcome.failed.items()
            if why.cause is FailureCause.MACHINE
        ]
        if outcome.uid:
            self.result.carried_out.append((PlannedSession(place.task, request, place.environment), outcome))

    def _examine(self, place: BackfillPlace, action: ExaminePair, seconds: float) -> None:
        """Measure two commits against each other, after the judge has learnt of the changes found before."""
        judge(self._store.database)
        before, after, lead = action.before, action.after, action.lead
        branch, least = place.asked.branch, self._plan.regression_percent / 100
        with self._store.database.reading() as connection:
            question = confirmation.whether_new(
                connection, branch, before, after, lead.steps, least, lead.by_counts
            )
        suspicion = suspicion_of(self._plan, place.task, question, is_past=True)
        examined = examine(suspicion, seconds, self._store, self._progress, self._carried_out)
        if examined is None or not examined.outcome.settles:
            self._unexamined.append(ExaminedPair(before.started_at, after.started_at, is_step=False))
        if examined is not None:
            self.result.examined.append(examined)

    def _carried_out(
        self,
        request: Request,
        progress: Progress,
        what: str,
        meanwhile: Callable[[], None] = lambda: None,
        earlier: BaseWork | None = None,
    ) -> SessionOutcome | None:
        """Return the outcome of a session; None when it could not be carried out, which is reported.

        `meanwhile` is called before a session that counts and times nothing, which bears a compile beside it.
        What the base did `earlier` is not done again.
        """
        variant = definition_of(request.versions[-1], request.variants)
        programs = build_programs_of(request.suite)
        provided = provider(self._home, progress, programs, variant)
        try:
            given = {}
            for name in request.versions:
                if name.is_release:
                    continue
                build = build_of(name.plain, request.git.get(name.engine), self._home, provided)
                if isinstance(build, Unusable):
                    is_own = build.cause is FailureCause.VERSION
                    (self.result.in_vain if is_own else self.result.left_open)[name] = build.reason
                    progress.note(f"{name} is left out: {build.reason}")
                    return None
                given[name] = replace(build, version=name)
                self._ahead.taken(name)
            if request.exact is Exact.ONLY:
                meanwhile()
            else:
                self._ahead.end()
            return run_session(request, self._home, self._store, progress, given, earlier=earlier)
        except (TidemarkError, OSError) as error:  # such as a full disk
            self.result.problems.append(f"{what}: {error}")
            progress.note(f"the session ended: {error}")
            return None


def read_state(connection: Connection, place: BackfillPlace) -> PastState:
    """Return what the history knows of a place; sessions that did not finish do not count."""
    environment, branch = place.environment, place.asked.branch
    base = base_beside(connection, environment, branch)
    names = {str(place.version(commit.commit)): commit.commit for commit in place.commits}
    failed = own_failures(connection, environment, names)
    if base is None:
        matrix = SeriesMatrix(environment, branch, None, (), (), np.empty((0, 0)))
        return PastState(place.commits, matrix, frozenset(names[version] for version in failed))
    matrix = read_matrix(connection, environment, branch, base, judged_metrics())
    query = select(sessions.c.id, sessions.c.uid).where(
        sessions.c.suite == environment.suite, sessions.c.status == SessionStatus.FINISHED
    )
    finished = {session_id: str(uid) for session_id, uid in map(tuple, connection.execute(query))}
    columns = [number for number, night in enumerate(matrix.nights) if night.session_id in finished]
    nights = tuple(matrix.nights[column] for column in columns)
    matrix = replace(matrix, nights=nights, ratios=matrix.ratios[:, columns])
    known = {night.version for night, there in zip(nights, has_value(matrix), strict=True) if there}
    in_vain = {names[version] for version in failed.keys() - known}
    commits = measurable(place.commits, nights)
    places = {finished[night.session_id]: night for night in nights}
    examined = tuple(_examined(connection, matrix, places))
    return PastState(commits, matrix, frozenset(in_vain), examined)


def _examined(
    connection: Connection, matrix: SeriesMatrix, places: Mapping[str, Night]
) -> Iterator[ExaminedPair]:
    """Yield the pairs of points that finished sessions measured against each other; `places` are by uid."""
    steps = {
        (answer.before.session_id, answer.after.session_id)
        for answer in confirmation.load(connection, {series_id for series_id, _, _ in matrix.series})
        if answer.is_step
    }
    for confirms in confirmation.asked(connection, matrix.environment.suite):
        if {confirms.before, confirms.night} <= places.keys():
            before, after = places[confirms.before], places[confirms.night]
            pair = (before.session_id, after.session_id)
            yield ExaminedPair(before.started_at, after.started_at, pair in steps)
