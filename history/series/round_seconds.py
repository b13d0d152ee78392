"""How long rounds and counted passes took, by step, as the history has recorded them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, func, select

from build.host import slowdown
from history.errors import stored_options
from history.store.records import EXACT, ONLY, RUNNABLE, RunStatus
from history.store.schema import machines, runs, sessions
from history.timestamps import from_text

LOOKED_AT = 10
"""The latest sessions that are looked at."""


@dataclass(frozen=True)
class RecordedSeconds:
    """Seconds that a round takes for one version, by step."""

    timed: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, float] = field(default_factory=dict)
    """The same for a counted pass of its own."""

    loading: float | None = None
    """The seconds from the start of a session to its first round, for one version; None where not known."""


def recorded_seconds(connection: Connection, hostname: str, suite: str, profile: str) -> RecordedSeconds:
    """Return the means of the latest sessions of a machine with each step; steps without any are left out.

    They are those where nobody else wants a core, as far as sessions record how many did.
    """
    query = (
        select(sessions.c.id, sessions.c.options, sessions.c.started_at, machines.c.cores)
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .where(machines.c.hostname == hostname, sessions.c.suite == suite, sessions.c.profile == profile)
        .order_by(sessions.c.started_at.desc())
        .limit(LOOKED_AT)
    )
    timed: dict[str, float] = {}
    counted: dict[str, float] = {}
    loading = None
    for row in connection.execute(query).mappings():
        options, cores = stored_options(row["options"]), max(1, row["cores"])
        found = session_seconds(connection, row["id"], options)
        others, length, names = (options.get(name) for name in (RUNNABLE, "seconds", "versions"))
        others = float(others) if isinstance(others, int | float) else 0.0
        fixed = float(length) if isinstance(length, int | float) else 0.0
        versions = max(1, len(names)) if isinstance(names, list) else 1
        alone, together = slowdown(others, 1, cores), slowdown(others, min(cores, versions), cores)
        timed = {**{step: beyond(took, fixed, 1 / alone) for step, took in found.timed.items()}, **timed}
        counted = {**{step: took / together for step, took in found.counted.items()}, **counted}
        if loading is None and (first := _first_round(connection, row["id"])) is not None:
            took = (first - from_text(row["started_at"])).total_seconds()
            loading = max(0.0, took) / versions / alone
    return RecordedSeconds(timed, counted, loading)


def beyond(took: float, fixed: float, factor: float) -> float:
    """Return how long a round takes whose time beyond that of its slices, which is `fixed`, gets longer."""
    return min(took, fixed) + max(0.0, took - fixed) * factor


def _first_round(connection: Connection, session: int) -> datetime | None:
    query = select(func.min(runs.c.started_at)).where(runs.c.session_id == session)
    began = connection.execute(query).scalar_one_or_none()
    return None if began is None else from_text(began)


def session_seconds(connection: Connection, session: int, options: Mapping[str, object]) -> RecordedSeconds:
    """Return the means of the finished rounds of a session, which has these options."""
    exact, rounds = options.get(EXACT), options.get("rounds")
    is_counted = isinstance(exact, dict) and exact.get("when") == ONLY
    cap = rounds.get("cap") if isinstance(rounds, dict) else None
    columns = (runs.c.step, runs.c.repetition, runs.c.started_at, runs.c.ended_at)
    where = (runs.c.session_id == session, runs.c.status == RunStatus.FINISHED)
    by_round: defaultdict[tuple[bool, str, int], list[tuple[str, str]]] = defaultdict(list)
    for step, number, started, ended in connection.execute(select(*columns).where(*where)):
        # Passes of their own have the numbers after those of all rounds.
        alone = is_counted or (isinstance(cap, int) and number > cap)
        by_round[alone, step, number].append((started, ended))
    took: defaultdict[tuple[bool, str], list[float]] = defaultdict(list)
    for (alone, step, _), spans in by_round.items():
        begin, end = min(start for start, _ in spans), max(end for _, end in spans)
        took[alone, step].append((from_text(end) - from_text(begin)).total_seconds() / len(spans))
    means = {key: sum(several) / len(several) for key, several in took.items()}
    return RecordedSeconds(
        {step: mean for (alone, step), mean in means.items() if not alone},
        {step: mean for (alone, step), mean in means.items() if alone},
    )
