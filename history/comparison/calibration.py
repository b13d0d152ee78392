"""What is known of a machine's noise, as a calibration writes it."""

import math
from collections.abc import Sequence

from sqlalchemy import Connection, insert

from history.comparison.pairs import pair_steps
from history.stats.estimators import MINIMUM_REPETITIONS, variance
from history.store.records import Run, StepNoise
from history.store.schema import calibrations
from suites.metrics import METRICS

ROUNDING = 1e-12
"""Log ratios that lie closer together than this are the same: quotients are rounded, each way differently."""


def insert_noise(connection: Connection, session_id: int, noise: Sequence[StepNoise]) -> None:
    """Write what a session of identical builds says about the noise of its steps."""
    rows = [vars(each) | {"session_id": session_id} for each in noise]
    if rows:
        connection.execute(insert(calibrations), rows)


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
