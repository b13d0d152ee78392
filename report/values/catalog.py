"""The catalog of a history: its sessions, and the nights of every box, suite and configuration.

It is read once for a site, in a few queries whatever the size of the history.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, case, func, select

from history.comparison.options import CompareOptions
from history.errors import stored_options
from history.series.series import commit_in, with_commit
from history.store.database import plain_rows
from history.store.records import (
    CONFIRMS,
    IMPORTED,
    NO_NIGHT,
    Environment,
    RunStatus,
    SessionStatus,
    judged_metric,
)
from history.store.schema import (
    bisect_events,
    builds,
    calibrations,
    machines,
    nights,
    profiles,
    runs,
    sessions,
)
from history.timestamps import from_text
from report.values.clearance import Clearance
from suites.metrics import METRICS

USUAL_CHANGE = CompareOptions().threshold_percent / 100
"""What counts as a change where no plan says otherwise, as a fraction."""


class SessionKind(StrEnum):
    """What a session was for."""

    NIGHT = "night"
    COMPARISON = "comparison"
    CONFIRMATION = "confirmation"
    BISECT = "bisect"
    CALIBRATION = "calibration"
    IMPORTED = "imported"


@dataclass(frozen=True)
class SessionEntry:
    """A session as lists show it."""

    id: int
    uid: str
    box: str
    machine_id: int
    suite: str
    profile: str
    started_at: datetime
    ended_at: datetime | None
    status: SessionStatus
    versions: tuple[str, ...]
    """As they were requested, the base first; empty for sessions of the first releases of Tidemark."""

    kind: SessionKind

    runs: int
    """0 for a session that was pruned, or ended before its first run."""

    last_run: int
    """The id of its last run, by which a session that goes on is seen to have grown."""

    calibration: str
    """The uid of the latest calibration of its machine, suite and profile: what its steps see follows it."""

    judged_by: str
    """The metric that its verdicts are about."""

    threshold: float | None = None
    """The fraction beyond which a change counts that it was to confirm; None for any other session."""

    has_failed: bool = False
    """Whether every run of it failed."""

    has_rounds: bool = False
    """Whether any run of it finished."""

    is_apart: bool = False
    """Whether it can be no night whatever it measured: one of a bisect or a try, or with layouts."""

    is_by_service: bool = False
    """Whether nightly measured it, and nobody by hand."""

    @property
    def outcome(self) -> str:
        """Its status as pages tell it: one that ended and measured nothing is not just finished."""
        return f"{self.status}, every run failed" if self.has_failed else str(self.status)

    @property
    def state(self) -> str:
        """How far it is: its night does not change any more once it has ended."""
        return f"{self.status} {self.ended_at}"

    @property
    def signature(self) -> str:
        """What its pages are made of, in short: they are written again when it differs."""
        rounds = f"{self.runs} {self.last_run} {self.calibration}" if self.runs else "no rounds"
        return f"{self.kind} {self.state} {rounds}"


@dataclass(frozen=True)
class NightEntry:
    """A night of an environment: a session with its branches."""

    session_id: int
    uid: str
    started_at: datetime
    """Its place in the series: the start of the session, or the date of a past commit."""
    base: str | None
    """The branch of the base."""

    versions: Mapping[str, str]
    """The version of each branch; one that was not built is among them."""

    built: frozenset[str]
    """The branches that were built."""

    measured_at: datetime | None = None
    """For a past commit, when it was measured; None for a night."""

    commits: Mapping[str, str] = field(default_factory=dict)
    """The commit of each branch that was built from git, or of which an imported file names one."""

    def shown_version(self, branch: str) -> str | None:
        """Return the version of a branch with its commit; of a past one also the day it was measured on."""
        version = self.versions.get(branch)
        if version is None:
            return None
        shown = with_commit(version, self.commits.get(branch, ""))
        if self.measured_at is None or branch == self.base:
            return shown
        return f"{shown}, measured {self.measured_at:%Y-%m-%d}"


@dataclass(frozen=True)
class PlaceNights:
    """A box, suite and configuration with all its nights, in order."""

    place: Environment
    """As the history has it, with the host name."""

    nights: tuple[NightEntry, ...]

    @cached_property
    def base_of(self) -> Mapping[str, str]:
        """The base of each branch that has one: that of the latest night in which it was measured beside one.

        Branches of several engines have a base each.
        """
        return {
            branch: night.base
            for night in self.nights
            if night.base is not None
            for branch in night.versions
            if branch != night.base
        }

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """The bases of all branches, sorted."""
        return tuple(sorted(set(self.base_of.values())))

    @cached_property
    def branches(self) -> tuple[str, ...]:
        """All branches, sorted."""
        return tuple(sorted({branch for night in self.nights for branch in night.versions}))

    def contenders(self, base: str) -> tuple[str, ...]:
        """Return the branches that are measured beside a base, sorted."""
        return tuple(sorted(branch for branch, its_base in self.base_of.items() if its_base == base))

    def of_branch(self, branch: str) -> list[NightEntry]:
        """Return the nights of a branch."""
        return [night for night in self.nights if branch in night.versions]


@dataclass(frozen=True)
class Catalog:
    """Everything that a history holds, without its values."""

    sessions: Mapping[str, SessionEntry]
    """By uid, oldest first."""

    places: tuple[PlaceNights, ...]
    clearance: Clearance
    profiles: Mapping[int, tuple[tuple[str, str], ...]]
    """The steps and versions with CPU profiles, by the id of the session."""

    threshold: float
    """The fraction beyond which a change of what is timed is reported."""

    def threshold_of(self, metric: str) -> float:
        """Return the fraction beyond which a change of a metric is reported: its own, if it has one."""
        return METRICS[metric].threshold(self.threshold) if metric in METRICS else self.threshold

    @cached_property
    def by_id(self) -> Mapping[int, SessionEntry]:
        """The sessions by their id in this database."""
        return {entry.id: entry for entry in self.sessions.values()}

    @property
    def data_until(self) -> datetime | None:
        """The time of the newest data; None in an empty history."""
        return max(
            (session.ended_at or session.started_at for session in self.sessions.values()), default=None
        )

    @cached_property
    def nights_by_session(self) -> Mapping[int, NightEntry]:
        """The night of each session that is one, by the session's id."""
        return {night.session_id: night for place_nights in self.places for night in place_nights.nights}

    def is_of_service(self, uid: str) -> bool:
        """Whether nightly measured a session; without a uid it has looked at the box, no more."""
        return uid not in self.sessions or self.sessions[uid].is_by_service

    def is_night(self, night: NightEntry) -> bool:
        """Whether a night counts as one: a calibration is in the series too."""
        return self.by_id[night.session_id].kind is not SessionKind.CALIBRATION

    def place_named(self, place: Environment) -> PlaceNights | None:
        """Return an environment with its nights; None when it has none."""
        return next((place_nights for place_nights in self.places if place_nights.place == place), None)

    def nights_of_branch(self, branch: str) -> list[PlaceNights]:
        """Return the environments that a branch was measured in."""
        return [place_nights for place_nights in self.places if branch in place_nights.branches]

    @cached_property
    def branches(self) -> tuple[str, ...]:
        """All branches of all environments."""
        return tuple(sorted({branch for place_nights in self.places for branch in place_nights.branches}))


def read_catalog(
    connection: Connection, *, is_public: bool = False, threshold: float = USUAL_CHANGE
) -> Catalog:
    """Return the catalog of an open history; `threshold` is that of the plan, as a fraction."""
    entries = _sessions(connection)
    clearance = Clearance(is_public, next(iter(entries), ""))
    profiled = (
        select(runs.c.session_id, runs.c.step, runs.c.version)
        .distinct()
        .join_from(profiles, runs, profiles.c.run_id == runs.c.id)
        .order_by(runs.c.session_id, runs.c.step, runs.c.version)
    )
    by_session: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    for session_id, step, version in connection.execute(profiled):
        by_session[session_id].append((step, version))
    return Catalog(
        entries,
        _places(connection, {entry.id: entry.uid for entry in entries.values()}),
        clearance,
        {session_id: tuple(found) for session_id, found in by_session.items()},
        threshold,
    )


def _sessions(connection: Connection) -> dict[str, SessionEntry]:
    failed, finished = (
        func.sum(case((runs.c.status == status, 1), else_=0))
        for status in (RunStatus.FAILED, RunStatus.FINISHED)
    )
    counts = {
        row[0]: row[1:]
        for row in plain_rows(
            connection,
            select(runs.c.session_id, func.count(), func.max(runs.c.id), failed, finished).group_by(
                runs.c.session_id
            ),
        )
    }
    with_nights = set(plain_rows(connection, select(nights.c.session_id).distinct()))
    in_bisects = {row[0] for row in plain_rows(connection, select(bisect_events.c.session_uid).distinct())}
    calibrating = {row[0] for row in plain_rows(connection, select(calibrations.c.session_id).distinct())}
    query = (
        select(
            *(sessions.c[name] for name in ("id", "uid", "machine_id", "suite", "profile", "started_at")),
            *(sessions.c.ended_at, sessions.c.status, sessions.c.options, machines.c.hostname),
            sessions.c.command,
        )
        .join_from(sessions, machines, sessions.c.machine_id == machines.c.id)
        .order_by(sessions.c.started_at, sessions.c.uid)
    )
    rows = plain_rows(connection, query)
    calibrated = {row[2:5]: row[1] for row in rows if row[0] in calibrating}
    entries = {}
    for id_, uid, machine_id, suite, profile, started, ended, status, text, box, command in rows:
        options = stored_options(text)
        count, last, failures, rounds = counts.get(id_, (0, 0, 0, 0))
        entries[uid] = SessionEntry(
            id_,
            uid,
            box,
            machine_id,
            suite,
            profile,
            from_text(started),
            ended and from_text(ended),
            SessionStatus(status),
            tuple(options.get("versions") or ()),
            _kind(options, uid in in_bisects, id_ in calibrating, (id_,) in with_nights),
            count,
            last,
            calibrated.get((machine_id, suite, profile), ""),
            judged_metric(options),
            _threshold(options),
            0 < count == failures,
            rounds > 0,
            any(options.get(name) for name in NO_NIGHT),
            command.split()[1:2] == ["nightly"],
        )
    return entries


def _threshold(options: Mapping[str, Any]) -> float | None:
    confirms = options.get(CONFIRMS)
    threshold = confirms.get("threshold") if isinstance(confirms, dict) else None
    return threshold if isinstance(threshold, float) else None


def _kind(options: Mapping[str, Any], in_bisect: bool, calibrates: bool, is_night: bool) -> SessionKind:
    kinds = {
        SessionKind.IMPORTED: options.get(IMPORTED) is True,
        SessionKind.BISECT: in_bisect or bool(options.get("bisect")),
        SessionKind.CONFIRMATION: bool(options.get(CONFIRMS)),
        SessionKind.CALIBRATION: calibrates,
        SessionKind.NIGHT: is_night,
    }
    return next((kind for kind, applies in kinds.items() if applies), SessionKind.COMPARISON)


def _places(connection: Connection, uids: Mapping[int, str]) -> tuple[PlaceNights, ...]:
    columns = (
        "box",
        "suite",
        "configuration",
        "started_at",
        "session_id",
        "branch",
        "version",
        "is_base",
        "build_id",
    )
    query = (
        select(*(nights.c[name] for name in columns), builds.c.source_digest)
        .outerjoin_from(nights, builds, builds.c.id == nights.c.build_id)
        .order_by(*(nights.c[name] for name in columns[:6]))
    )
    rows: defaultdict[Environment, dict[int, list[Any]]] = defaultdict(dict)
    for box, suite, configuration, *night in plain_rows(connection, query):
        rows[Environment(box, suite, configuration)].setdefault(night[1], []).append(night)
    return tuple(
        PlaceNights(place, tuple(_night(entries, uids) for entries in by_session.values()))
        for place, by_session in rows.items()
    )


def _night(rows: list[Any], uids: Mapping[int, str]) -> NightEntry:
    # The base of a past commit stands where it was measured, and so after it.
    started, session_id, measured = rows[0][0], rows[0][1], rows[-1][0]
    return NightEntry(
        session_id,
        uids[session_id],
        from_text(started),
        next((branch for _, _, branch, _, is_base, _, _ in rows if is_base), None),
        {branch: version for _, _, branch, version, _, _, _ in rows},
        frozenset(branch for _, _, branch, _, _, build, _ in rows if build is not None),
        None if measured == started else from_text(measured),
        {branch: commit for *_, branch, _, _, _, digest in rows if (commit := commit_in(digest))},
    )
