"""What is known of a machine's noise: written by a calibration, read by every later judgement."""

import math
from collections.abc import Mapping, Sequence
from statistics import stdev

from sqlalchemy import Connection, insert, select

from history.pairing import pair_steps
from history.records import Run, StepNoise
from history.schema import calibrations, machines, sessions
from history.statistics import MINIMUM_REPETITIONS
from suites.measurement import METRICS


def insert_noise(connection: Connection, session_id: int, noise: Sequence[StepNoise]) -> None:
    """Write what a session of identical builds says about the noise of its steps."""
    rows = [vars(each) | {"session_id": session_id} for each in noise]
    if rows:
        connection.execute(insert(calibrations), rows)


def latest_noise(
    connection: Connection, fingerprint: str, suite: str, profile: str, metric: str
) -> Mapping[str, StepNoise]:
    """The noise of each step by the latest calibration of this machine, suite and profile that has it."""
    query = (
        select(calibrations)
        .join_from(calibrations, sessions, calibrations.c.session_id == sessions.c.id)
        .join(machines, sessions.c.machine_id == machines.c.id)
        .where(
            machines.c.fingerprint == fingerprint,
            sessions.c.suite == suite,
            sessions.c.profile == profile,
            calibrations.c.metric == metric,
        )
        .order_by(sessions.c.started_at, sessions.c.id)
    )
    return {
        row["step"]: StepNoise(
            row["step"], row["metric"], row["sd"], row["degrees_of_freedom"], row["rounds"]
        )
        for row in connection.execute(query).mappings()
    }


def noise_of(runs: Sequence[Run], base: str, twin: str) -> list[StepNoise]:
    """The noise of every step and metric that has a ratio, from the rounds of two identical builds.

    The sample standard deviation of the log ratios around their own mean; at least three rounds.
    """
    found = []
    for step in pair_steps(runs, base, twin):
        for metric in METRICS:
            before, after = step.values(metric)
            if len(before) < MINIMUM_REPETITIONS or min((*before, *after)) <= 0:
                continue
            logs = [math.log(new / old) for old, new in zip(before, after, strict=True)]
            if (spread := stdev(logs)) > 0:
                found.append(StepNoise(step.step, metric, spread, len(logs) - 1, len(logs)))
    return found
