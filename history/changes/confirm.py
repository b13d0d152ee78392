"""From the rounds of a session that confirms to what it found, series by series."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, RowMapping, insert, select

from history.changes import repository
from history.changes.confirmation import CONFIDENCE, METRIC_CONFIDENCE, ConfirmationRequest, Confirms
from history.changes.repository import Member
from history.comparison.intervals import Intervals, looks_of
from history.comparison.pairs import StepPairs, pair_steps
from history.comparison.verdict import MetricChange, change_of
from history.series.matrix import SeriesMatrix, read_matrix
from history.series.series import base_branch
from history.stats.estimators import Interval
from history.stats.repeated_intervals import Noise
from history.store.records import Environment, Run
from history.store.schema import confirmations, nights, sessions
from history.store.session_reads import latest_noise, session_of
from history.timestamps import from_text
from suites.metrics import PRIMARY, judged_metrics

HALF = 0.5
"""Of a change: it is gone when more than this part of it surely is."""

LEVEL_NIGHTS = 70
"""Nights of a level at most, as the watch has it."""

LOOKED_BACK = 400
"""Nights among which those of a level are: a session may come to a history later than its nights."""


def insert_findings(
    connection: Connection, session_id: int, options: Mapping[str, Any], runs: Sequence[Run]
) -> None:
    """Write what a session that confirms found, of whatever rounds it has.

    Nothing when a night that it names is not in this history. It must not have been derived before.
    """
    confirms = Confirms.of(options)
    assert confirms is not None
    before, after = (_night(connection, uid, confirms.branch) for uid in (confirms.before, confirms.night))
    versions = options.get("versions", ())
    if before is None or after is None or len(versions) != 2:
        return
    place = Environment(after["box"], after["suite"], after["configuration"])
    base = base_branch(connection, place)
    if base is None:
        return
    matrix = read_matrix(connection, place, confirms.branch, base, judged_metrics(), LOOKED_BACK)
    starts = level_starts(repository.load(connection, branch=confirms.branch, suite=place.suite))
    until = from_text(before["started_at"])
    known = _members(connection, confirms)
    paired = pair_steps(runs, *versions)
    intervals = _intervals(connection, session_id, paired)
    measured = {}
    for series_id, step, metric in matrix.series:
        pairs = next((each for each in paired if each.step == step), None)
        interval = None if pairs is None else intervals.of(pairs, metric)
        if interval is not None:
            measured[series_id] = interval
    findings = findings_of(confirms, measured, known)
    rows = []
    for row, (series_id, _, _) in enumerate(matrix.series):
        level = level_of(matrix, row, starts.get(series_id, ()), until)
        if series_id in findings and level is not None:
            interval = measured[series_id]
            rows.append(
                {
                    "session_id": session_id,
                    "series_id": series_id,
                    "question": confirms.question,
                    "before_id": before["session_id"],
                    "after_id": after["session_id"],
                    "finding": findings[series_id],
                    "level_before": math.exp(level),
                    "ratio": interval.estimate,
                    "ratio_low": interval.low,
                    "ratio_high": interval.high,
                    "rounds": interval.n,
                    "confidence": CONFIDENCE,
                }
            )
    if rows:
        connection.execute(insert(confirmations), rows)


def level_starts(known: Iterable[repository.Change]) -> Mapping[int, tuple[datetime, ...]]:
    """The nights at which known changes began another level, by series."""
    found: dict[int, tuple[datetime, ...]] = {}
    for change in known:
        for each in change.members:
            ends = () if each.gone is None else (each.gone.started_at,)
            found[each.series_id] = (*found.get(each.series_id, ()), each.first_after.started_at, *ends)
    return found


def level_of(matrix: SeriesMatrix, row: int, starts: Sequence[datetime], until: datetime) -> float | None:
    """The level of a series up to a night, that night included, as a logarithm; None without a value.

    The median over the nights since its last change.
    """
    since = max((each for each in starts if each <= until), default=None)
    there = [
        place
        for place, night in enumerate(matrix.nights)
        if night.started_at <= until and (since is None or night.started_at >= since)
    ]
    values = matrix.ratios[row, there]
    values = values[values > 0][-LEVEL_NIGHTS:]  # a gap is nan, and not above zero
    return float(np.median(np.log(values))) if len(values) else None


def is_gone(interval: Interval, log_size: float) -> bool:
    """Whether an interval of the ratio to what was before a change leaves out half of it, and more."""
    left = HALF * log_size
    return math.log(interval.low) > left if log_size < 0 else math.log(interval.high) < left


def _night(connection: Connection, uid: str, branch: str) -> RowMapping | None:
    query = (
        select(nights)
        .join_from(nights, sessions, sessions.c.id == nights.c.session_id)
        .where(sessions.c.uid == uid, nights.c.branch == branch)
    )
    return connection.execute(query).mappings().one_or_none()


def _members(connection: Connection, confirms: Confirms) -> Mapping[int, Member]:
    if confirms.question is ConfirmationRequest.NEW:
        return {}
    return {
        member.series_id: member
        for change in repository.load(connection, branch=confirms.branch)
        if change.fingerprint == confirms.change
        for member in change.members
    }


def _intervals(connection: Connection, session_id: int, paired: Sequence[StepPairs]) -> Intervals:
    session = session_of(connection, session_id)

    def calibrated(metric: str) -> Mapping[str, Noise]:
        found = latest_noise(connection, session, metric, session.started_at)
        return {step: each.noise for step, each in found.items()}

    return Intervals(paired, METRIC_CONFIDENCE, looks_of(session), calibrated)


def findings_of(
    confirms: Confirms, measured: Mapping[int, Interval], known: Mapping[int, Member]
) -> Mapping[int, MetricChange]:
    """What the intervals say, by series; of a change that may be gone, of its members only."""
    if confirms.question is ConfirmationRequest.NEW:
        return {each: change_of(interval, confirms.threshold) for each, interval in measured.items()}
    members = {each: member for each, member in known.items() if each in measured}
    gone = {each for each, member in members.items() if is_gone(measured[each], _log_size(member))}
    primary = {each for each, member in members.items() if member.key.metric == PRIMARY}
    if primary and primary <= gone:
        # Rounds end when the primary metric is decided, which leaves noisier costs open. These follow it,
        # unless what is known of them says otherwise.
        gone |= {
            each for each, member in members.items() if is_gone(_point(measured[each]), _log_size(member))
        }
    return {each: MetricChange.SAME if each in gone else MetricChange.UNKNOWN for each in members}


def _log_size(member: Member) -> float:
    return math.log(member.level_after / member.level_before)


def _point(interval: Interval) -> Interval:
    return replace(interval, low=interval.estimate, high=interval.estimate)
