"""What the page of a box shows: what it was over time, how noisy it is, what it sees, what it missed."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise

from sqlalchemy import Connection, select

from history.changes.boxes.notes import BoxNote
from history.comparison.intervals import smallest_worsening
from history.stats.noise_model import Noise
from history.stats.repeated_intervals import Design
from history.store.records import Machine
from history.store.schema import calibrations, dropped_rounds, machines, sessions
from history.store.session_reads import machine_of
from history.timestamps import from_text
from report.values.catalog import Catalog, SessionEntry, SessionKind
from report.values.failed_sessions import FailedSession
from suites.metrics import METRICS, Better, Metric

USUAL_GAP = timedelta(days=3)
"""A box whose nights usually lie closer than this is nightly: days without one were missed."""


@dataclass(frozen=True)
class MachinePeriod:
    """A box as it was from one session to another."""

    machine: Machine
    first: SessionEntry
    last: SessionEntry
    sessions: int
    changed: tuple[str, ...]
    """What differs from the period before: `kernel: 6.1 -> 6.8`."""


@dataclass(frozen=True)
class NoiseEntry:
    """The noise of a step in one calibration, of the metric that its sessions are judged by."""

    suite: str
    profile: str
    step: str
    uid: str
    started_at: datetime
    sd: float
    rounds: int
    visible: float
    """The smallest worsening that three rounds are likely to flag, as a fraction."""

    metric: Metric

    @property
    def unseen(self) -> tuple[float, float]:
        """The ratios between which a change is not likely to be flagged."""
        if self.metric.better is Better.HIGHER:
            return 1 - self.visible, 1 / (1 - self.visible)
        return 1 / (1 + self.visible), 1 + self.visible


@dataclass(frozen=True)
class DisturbedSession:
    """A session in which rounds were dropped."""

    uid: str
    started_at: datetime
    steps: Mapping[str, int]
    """Dropped rounds by step."""

    reasons: tuple[str, ...]


@dataclass(frozen=True)
class MachinePage:
    """A box."""

    box: str
    periods: tuple[MachinePeriod, ...]
    noise: tuple[NoiseEntry, ...]
    """Latest calibration first."""

    disturbed: tuple[DisturbedSession, ...]
    nights: int
    """The days with a night, those on which nothing was measured among them."""

    failed: tuple[date, ...]
    """The days on which every session of a night failed."""

    missed: tuple[date, ...]
    """Days without a night between the first night and the last."""

    notes: tuple[BoxNote, ...] = ()
    """What changed about the noise of the box: no changes of a branch."""


def read_machine(
    connection: Connection,
    catalog: Catalog,
    box: str,
    notes: Iterable[BoxNote] = (),
    failed: Iterable[FailedSession] = (),
) -> MachinePage:
    """Return what is known of a box; `notes` and `failed` are those on all boxes."""
    own = [entry for entry in catalog.sessions.values() if entry.box == box]
    measured = {
        night.started_at.date()
        for place in catalog.places
        if place.place.box == box
        for night in place.nights
        if catalog.is_night(night) and night.measured_at is None
    }
    failures = {session.entry.started_at.date() for session in failed if session.place.box == box} - measured
    nights = sorted(measured | failures)
    return MachinePage(
        box,
        _periods(connection, own),
        _noise(connection, catalog, box),
        _disturbed(connection, box),
        len(nights),
        tuple(sorted(failures)),
        missed(nights),
        tuple(note for note in notes if note.environment.box == box),
    )


def _periods(connection: Connection, own: Sequence[SessionEntry]) -> tuple[MachinePeriod, ...]:
    runs: list[list[SessionEntry]] = []
    for entry in own:
        if entry.kind is SessionKind.IMPORTED:
            continue
        if runs and runs[-1][-1].machine_id == entry.machine_id:
            runs[-1].append(entry)
        else:
            runs.append([entry])
    periods: list[MachinePeriod] = []
    known: dict[int, Machine] = {}
    for run in runs or ([list(own)] if own else []):
        machine = known.setdefault(run[0].machine_id, machine_of(connection, run[0].machine_id))
        changed = _differences(periods[-1].machine, machine) if periods else ()
        periods.append(MachinePeriod(machine, run[0], run[-1], len(run), changed))
    return tuple(periods)


def _differences(before: Machine, now: Machine) -> tuple[str, ...]:
    old, new = _facts(before), _facts(now)
    return tuple(
        f"{name}: {old.get(name, 'unknown')} to {new.get(name, 'unknown')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def _facts(machine: Machine) -> dict[str, str]:
    facts = {
        name: str(getattr(machine, name))
        for name in ("cpu_model", "cores", "memory_bytes", "kernel", "operating_system")
    }
    settings = machine.details.get("settings")
    if isinstance(settings, Mapping):
        facts |= {
            str(name): json.dumps(value) if isinstance(value, dict | list) else str(value)
            for name, value in settings.items()
        }
    return facts


def _noise(connection: Connection, catalog: Catalog, box: str) -> tuple[NoiseEntry, ...]:
    noise = calibrations.c
    query = (
        select(
            *(sessions.c.suite, sessions.c.profile, noise.step, sessions.c.uid, sessions.c.started_at),
            *(noise.sd, noise.rounds, noise.degrees_of_freedom, noise.metric),
        )
        .join_from(calibrations, sessions, noise.session_id == sessions.c.id)
        .join(machines, sessions.c.machine_id == machines.c.id)
        .where(machines.c.hostname == box)
        .order_by(sessions.c.started_at.desc(), noise.step)
    )
    rows = [row for row in connection.execute(query) if row.metric == catalog.sessions[row.uid].judged_by]
    steps = Counter(row.uid for row in rows)
    return tuple(
        NoiseEntry(
            row.suite,
            row.profile,
            row.step,
            row.uid,
            from_text(row.started_at),
            row.sd,
            row.rounds,
            _visible(METRICS[row.metric], Noise(row.sd, row.degrees_of_freedom), steps[row.uid], catalog),
            METRICS[row.metric],
        )
        for row in rows
    )


def _visible(metric: Metric, noise: Noise, steps: int, catalog: Catalog) -> float:
    rounds = Design().least
    threshold = catalog.threshold_of(metric.name)
    return smallest_worsening(metric, Design.fixed(rounds, steps), noise, rounds, threshold)


def _disturbed(connection: Connection, box: str) -> tuple[DisturbedSession, ...]:
    query = (
        select(sessions.c.uid, sessions.c.started_at, dropped_rounds.c.step, dropped_rounds.c.reason)
        .join_from(dropped_rounds, sessions, dropped_rounds.c.session_id == sessions.c.id)
        .join(machines, sessions.c.machine_id == machines.c.id)
        .where(machines.c.hostname == box)
        .order_by(sessions.c.started_at.desc(), dropped_rounds.c.id)
    )
    by_session: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for uid, started, step, reason in connection.execute(query):
        by_session.setdefault((uid, started), []).append((step, reason))
    return tuple(
        DisturbedSession(
            uid,
            from_text(started),
            Counter(step for step, _ in rows),
            tuple(dict.fromkeys(reason for _, reason in rows)),
        )
        for (uid, started), rows in by_session.items()
    )


def missed(nights: Sequence[date]) -> tuple[date, ...]:
    """Return the days without a night between sorted days with one; none unless they are nightly."""
    gaps = [later - earlier for earlier, later in pairwise(nights)]
    if len(gaps) < 3 or sorted(gaps)[len(gaps) // 2] > USUAL_GAP:
        return ()
    usual = sorted(gaps)[len(gaps) // 2]
    found = []
    for earlier, later in pairwise(nights):
        found += [
            earlier + usual * step
            for step in range(1, (later - earlier) // usual)
            if earlier + usual * step < later
        ]
    return tuple(found)
