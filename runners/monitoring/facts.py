"""Everything that is known of the service on a box, from which all of its views are made."""

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from build.cache.pruning import GIGABYTE
from build.home import Home
from history.backups.rotation import share_a_disk
from history.errors import RESTORE, HistoryError
from history.open import existing_history, open_reader
from history.store.schema_status import newest
from runners.fitness.agent_release import agent_releases
from runners.fitness.kernel import Kernel
from runners.monitoring.history_facts import HistoryFacts, read_history
from runners.monitoring.local_facts import CurrentFacts, StoredFacts, read_current, read_stored
from runners.nightly.health import full_disk
from runners.nightly.heartbeat import State
from runners.nightly.plan import Plan, plan_history
from runners.nightly.status_text import heard_of
from runners.own_version import own_version


@dataclass(frozen=True)
class PlannedLimits:
    """What a plan allows a box; None without a plan."""

    budget_seconds: float
    builds_bytes: float
    logs_days: int
    backups: int
    backups_beside: bool
    """Whether the copies of a history in a file are on its own file system."""


@dataclass(frozen=True)
class ServiceFacts:
    """What is known of the service on a box. Views add nothing to it."""

    box: str
    """The name of the box in the plan; empty while it is unknown."""

    version: str
    """The commit of this Tidemark, or `unknown`."""

    schema: int
    """The schema of histories that this Tidemark writes."""

    limits: PlannedLimits | None
    current: CurrentFacts
    stored: StoredFacts
    history: HistoryFacts | None
    runners: tuple[str, ...]
    """GitHub's runners on the machine whose release is so old that they get no jobs, or soon none."""

    problems: tuple[str, ...]
    """What needs somebody, beside the state and overdue results, a sentence each."""

    @property
    def is_well(self) -> bool:
        """Whether nobody has to act. Before the first night that is so while the box is paused alone."""
        state = self.current.found.state
        is_waiting = state is State.NEVER and self.current.current_pause is not None
        is_running = state in (State.RUNNING, State.ENDED) or is_waiting
        return is_running and not self.problems and (self.history is None or self.history.health.is_well)


def box_facts(plan: Plan, box: str, home: Home, now: datetime, connection: Connection | None) -> ServiceFacts:
    """Return what is known of a box; without a connection to its history what only that knows is left out."""
    current = read_current(home, now)
    heard = heard_of(current.found, current.pause)
    history = None if connection is None else read_history(plan, box, connection, now, heard)
    return _facts(home, box, _limits(plan, box, home), current, history, "")


def facts_with_history(plan: Plan | None, box: str, home: Home, now: datetime) -> ServiceFacts:
    """Return what is known of a box, for which its history is opened, and never written to.

    Without a plan the history is that of the home, and nothing is expected of the box. That there is none,
    or that it cannot be read, is a problem, unless its first night is running or still to come; so is one
    that knows nothing of the box although a night of it has ended.
    """
    current = read_current(home, now)
    history, problem = None, ""
    try:
        target = existing_history(str(home.history if plan is None else plan_history(plan, home)))
        if plan is None:
            return _facts(home, box, None, current, None, "")
        with open_reader(target) as reader, reader.database.reading() as connection:
            history = read_history(plan, box, connection, now, heard_of(current.found, current.pause))
        beat = current.found.beat
        if beat is not None and beat.box == box and beat.has_recorded and not history.knows_box:
            problem = f"a night of {box} has ended, and the history has nothing of it: {target}; {RESTORE}"
    except HistoryError as error:
        is_before_first = current.found.state in (State.RUNNING, State.NEVER)
        is_before_first = is_before_first and not any(home.summaries.glob("*.md"))
        problem = "" if is_before_first else f"whether results arrive is unknown: {error}"
    return _facts(home, box, None if plan is None else _limits(plan, box, home), current, history, problem)


def renewed(facts: ServiceFacts, home: Home, now: datetime) -> ServiceFacts:
    """Return facts in which what takes milliseconds was read again."""
    return replace(facts, current=read_current(home, now))


def _facts(
    home: Home,
    box: str,
    limits: PlannedLimits | None,
    current: CurrentFacts,
    history: HistoryFacts | None,
    problem: str,
) -> ServiceFacts:
    stored = read_stored(home)
    problems = tuple(filter(None, (problem, full_disk(home.path), stored.problem)))
    # Nights begin by the timer all the same: nobody is called for it, and the watch knows the day.
    agents = agent_releases(Kernel())
    runners = tuple(agent.line(current.at) for agent in agents if agent.is_old(current.at))
    return ServiceFacts(box, own_version(), newest(), limits, current, stored, history, runners, problems)


def _limits(plan: Plan, box: str, home: Home) -> PlannedLimits:
    kept = plan.retention
    return PlannedLimits(
        plan.boxes[box].budget_minutes * 60,
        kept.builds_gb * GIGABYTE,
        kept.logs_days,
        plan.backups,
        share_a_disk(plan_history(plan, home), home.backups),
    )
