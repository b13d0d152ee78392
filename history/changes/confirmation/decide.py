"""Derivation of the findings of a confirming session from its rounds, series by series."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, RowMapping, select

from build.version import Engine
from history.changes.confirmation import store
from history.changes.confirmation.request import ConfirmationRequest, Confirms
from history.changes.confirmation.store import SeriesFinding
from history.changes.level_shift import Shift, StoredChange, level_starts
from history.comparison.intervals import Intervals, looks_of
from history.comparison.pairs import StepPairs, pair_steps
from history.comparison.verdict import MetricChange, as_reported, change_of
from history.errors import stored_version
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import base_beside
from history.stats.estimators import Interval, geometric_mean
from history.stats.noise_model import Noise
from history.store.records import Environment, Run, Session
from history.store.schema import nights, sessions
from history.store.session_reads import bursts_of, latest_noise, session_of
from history.timestamps import from_text
from suites.metrics import METRICS, PRIMARY, judged_metrics

CONFIDENCE = 0.999
"""The probability that all intervals of a confirming session hold, of all steps and judged metrics, at all
looks."""

_TOGETHER = [
    metric
    for metric in judged_metrics()
    if METRICS[metric].beside_of == PRIMARY and not METRICS[metric].is_counted
]
METRIC_CONFIDENCE = 1 - (1 - CONFIDENCE) / len(_TOGETHER)
"""The confidence of the intervals of one metric, by Bonferroni over those that one session can have: metrics
need not be independent. Sessions of held connections have fewer. Counts have intervals of another kind."""

HALF = 0.5
"""The share of a change that must have gone, according to the interval, for it to count as gone."""

LEVEL_NIGHTS = 70
"""The nights of a level at most, as in the nightly watch."""

NIGHTS_SEARCHED = 400
"""The nights that are read to find those of a level: a session may be merged long after its nights."""


def decide(
    connection: Connection,
    session_id: int,
    options: Mapping[str, Any],
    runs: Sequence[Run],
    changes: Sequence[StoredChange],
) -> None:
    """Decide what a confirming session was asked, from the rounds that it has, and store the findings.

    `changes` are the stored changes of its branch. Stores nothing when one of its nights is not in this
    history. The session must not have been derived before.
    """
    confirms = Confirms.of(options)
    assert confirms is not None
    before, after = (_night(connection, uid, confirms.branch) for uid in (confirms.before, confirms.night))
    versions = options.get("versions", ())
    if before is None or after is None or len(versions) != 2:
        return
    environment = Environment(after["box"], after["suite"], after["configuration"])
    base = base_beside(connection, environment, confirms.branch)
    if base is None:
        return
    matrix = read_matrix(connection, environment, confirms.branch, base, judged_metrics(), NIGHTS_SEARCHED)
    starts, until = level_starts(changes), from_text(before["started_at"])
    session = session_of(connection, session_id)
    base_version, contender = versions
    paired = pair_steps(runs, base_version, contender, bursts_of(connection, session_id, options))
    engines = {stored_version(version).engine for version in versions}
    intervals = _intervals(connection, session, paired, engines)
    measured = {}
    for series_id, step, metric in matrix.series:
        pairs = next((pairs for pairs in paired if pairs.step == step), None)
        interval = None if pairs is None else intervals.of(pairs, metric)
        if interval is not None:
            measured[series_id] = interval
    thresholds = _thresholds(matrix, confirms, paired)
    findings = findings_of(confirms, measured, _members(changes, confirms), thresholds)
    rows = []
    for row, (series_id, _, _) in enumerate(matrix.series):
        level = level_of(matrix, row, starts.get(series_id, ()), until)
        if series_id in findings and level is not None:
            interval = as_reported(measured[series_id], findings[series_id], thresholds[series_id])
            rows.append(SeriesFinding(series_id, findings[series_id], math.exp(level), interval))
    both = (before["session_id"], after["session_id"])
    store.insert_findings(connection, session_id, confirms.question, both, CONFIDENCE, rows)


def _thresholds(matrix: SeriesMatrix, confirms: Confirms, paired: Sequence[StepPairs]) -> dict[int, float]:
    """Return the fraction beyond which each series has changed: that of its metric, if it has its own.

    A negligible difference of what the version before has is none.
    """
    steps = {pairs.step: pairs for pairs in paired}
    found = {}
    for series_id, step, metric in matrix.series:
        threshold = METRICS[metric].threshold(confirms.threshold)
        before = steps[step].values(metric)[0] if step in steps else []
        usual = geometric_mean(before)
        found[series_id] = threshold if usual is None else METRICS[metric].threshold_at(usual, threshold)
    return found


def level_of(matrix: SeriesMatrix, row: int, starts: Sequence[datetime], until: datetime) -> float | None:
    """Return the logarithmic level of a series up to a night, inclusive; None without a value.

    It is the median over the nights since the last change.
    """
    since = max((start for start in starts if start <= until), default=None)
    columns = [
        column
        for column, night in enumerate(matrix.nights)
        if night.started_at <= until and (since is None or night.started_at >= since)
    ]
    values = matrix.ratios[row, columns]
    values = values[values > 0][-LEVEL_NIGHTS:]  # a gap is nan, which is not above zero
    return float(np.median(np.log(values))) if len(values) else None


def is_gone(interval: Interval, log_size: float) -> bool:
    """Return whether more than HALF of a change is gone, at the confidence of the interval.

    `interval` is of the ratio to the version before the change, whose logarithmic size is `log_size`.
    """
    limit = HALF * log_size
    return math.log(interval.low) > limit if log_size < 0 else math.log(interval.high) < limit


def _night(connection: Connection, uid: str, branch: str) -> RowMapping | None:
    query = (
        select(nights)
        .join_from(nights, sessions, sessions.c.id == nights.c.session_id)
        .where(sessions.c.uid == uid, nights.c.branch == branch)
    )
    return connection.execute(query).mappings().one_or_none()


def _members(changes: Iterable[StoredChange], confirms: Confirms) -> Mapping[int, Shift]:
    """Return the members of the change that may be gone, by series; none of a new one."""
    return {
        outcome.shift.series_id: outcome.shift
        for change in changes
        if confirms.question is ConfirmationRequest.GONE and change.fingerprint == confirms.change
        for outcome in change.outcomes
    }


def _intervals(
    connection: Connection, session: Session, paired: Sequence[StepPairs], engines: Set[Engine]
) -> Intervals:
    def calibrated(metric: str) -> Mapping[str, Noise]:
        noise_by_step = latest_noise(connection, session, metric, session.started_at)
        return {step: noise.noise for step, noise in noise_by_step.items()}

    return Intervals(
        paired,
        METRIC_CONFIDENCE,
        looks_of(session),
        calibrated,
        exact=engines,
        layouts=session.layouts,
        in_turn=session.is_long,
    )


def findings_of(
    confirms: Confirms,
    measured: Mapping[int, Interval],
    change_members: Mapping[int, Shift],
    thresholds: Mapping[int, float],
) -> Mapping[int, MetricChange]:
    """Return the findings by series; for a change that may be gone, only those of its members.

    `measured` are the intervals by series, `change_members` the members of that change by series, and
    `thresholds` the fractions beyond which a series has changed.
    """
    if confirms.question is ConfirmationRequest.NEW:
        return {
            series_id: change_of(interval, thresholds[series_id]) for series_id, interval in measured.items()
        }
    members = {series_id: member for series_id, member in change_members.items() if series_id in measured}
    gone = {
        series_id for series_id, member in members.items() if is_gone(measured[series_id], member.log_size)
    }
    primary = {series_id for series_id, member in members.items() if member.metric == PRIMARY}
    if primary and primary <= gone:
        # Rounds end when the primary metric is decided, so that noisier costs can remain undecided. They
        # follow the primary metric unless their own estimate contradicts it.
        gone |= {
            series_id
            for series_id, member in members.items()
            if is_gone(_point(measured[series_id]), member.log_size)
        }
    return {
        series_id: MetricChange.SAME if series_id in gone else MetricChange.UNKNOWN for series_id in members
    }


def _point(interval: Interval) -> Interval:
    return replace(interval, low=interval.estimate, high=interval.estimate)
