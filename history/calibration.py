"""What is known of a machine's noise: written by a calibration, read by every later judgement."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, insert, select

from history.pairing import pair_steps
from history.records import CalibratedNoise, Run, SessionStart, StepNoise
from history.schema import calibrations, machines, sessions
from history.statistics import MINIMUM_REPETITIONS, variance
from history.times import from_text, to_text
from suites.measurement import METRICS

LIKE = ("mode", "seconds", "slice_seconds")
"""Options of a session that decide how much its rounds scatter."""

ROUNDING = 1e-12
"""Log ratios that lie closer together than this are the same: quotients are rounded, each way differently."""


def insert_noise(connection: Connection, session_id: int, noise: Sequence[StepNoise]) -> None:
    """Write what a session of identical builds says about the noise of its steps."""
    rows = [vars(each) | {"session_id": session_id} for each in noise]
    if rows:
        connection.execute(insert(calibrations), rows)


def latest_noise(
    connection: Connection, session: SessionStart, metric: str, until: datetime | None
) -> Mapping[str, CalibratedNoise]:
    """The noise of each step by the latest calibration of the machine, suite and profile of `session`.

    Rounds of another length or durability scatter otherwise: LIKE has to be the same in both. A session is
    never its own calibration. `until` leaves out calibrations that began later.
    """
    query = (
        select(calibrations, sessions.c.uid, sessions.c.started_at, sessions.c.options)
        .join_from(calibrations, sessions, calibrations.c.session_id == sessions.c.id)
        .join(machines, sessions.c.machine_id == machines.c.id)
        .where(
            machines.c.fingerprint == session.machine.fingerprint,
            sessions.c.suite == session.suite,
            sessions.c.profile == session.profile,
            sessions.c.durability == session.durability,
            sessions.c.uid != session.uid,
            calibrations.c.metric == metric,
        )
        .order_by(sessions.c.started_at, sessions.c.id)
    )
    if until is not None:
        query = query.where(sessions.c.started_at <= to_text(until))
    return {
        row["step"]: CalibratedNoise(
            row["step"],
            row["metric"],
            row["sd"],
            row["degrees_of_freedom"],
            row["rounds"],
            session=row["uid"],
            started_at=from_text(row["started_at"]),
        )
        for row in connection.execute(query).mappings()
        if _alike(json.loads(row["options"]), session.options)
    }


def _alike(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return all(one.get(name) == other.get(name) for name in LIKE)


def noise_of(runs: Sequence[Run], base: str, twin: str) -> list[StepNoise]:
    """The noise of every step and metric that has a ratio, from the rounds of two identical builds.

    The sample standard deviation of the log ratios around their own mean. Left out is what has fewer than
    MINIMUM_REPETITIONS rounds, and what is the same in all of them: a constant says nothing of later rounds.
    """
    found = []
    for step in pair_steps(runs, base, twin):
        for metric in METRICS:
            before, after = step.values(metric)
            if len(before) < MINIMUM_REPETITIONS or min((*before, *after)) <= 0:
                continue
            logs = [math.log(new / old) for old, new in zip(before, after, strict=True)]
            if max(logs) - min(logs) > ROUNDING:
                spread = math.sqrt(variance(logs))
                found.append(StepNoise(step.step, metric, spread, len(logs) - 1, len(logs)))
    return found
