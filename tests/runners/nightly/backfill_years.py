"""Simulated years of a branch with planted steps, which a backfill has to find.

Commits, levels and noise are simulated; what is measured next is decided by runners/nightly/past/filling.py,
as in a backfill of real servers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from history.series.matrix import SeriesMatrix
from history.series.series import Night
from history.store.records import Environment
from runners.nightly.past.filling import (
    Dates,
    ExaminedPair,
    ExaminePair,
    PastCommit,
    PastState,
    filled,
    middle,
    next_action,
    next_date,
)
from suites.metrics import PRIMARY

DAYS = 365
COMMITS = 2_500
"""Commits of a year that can matter: Postgres has about as many."""

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
WEEKS = Dates(BEGIN, timedelta(days=7))

STEPS = 10
COST = "server_cpu_us_per_op"
NOISE = {PRIMARY: 0.010, COST: 0.007}
"""The standard deviation of the log ratio of one session, by metric."""

SIZES = (0.03, 0.04, 0.05)
"""The sizes of the planted steps, each up or down, in one to three series of each metric."""

MIN = 0.02
PAIR_DEVIATION = 0.006
"""The standard deviation of the log ratio of a session until decided: 3 % is confirmed in 95 % of cases."""

PAIR_ERRORS = 3.29
"""Standard errors that an interval of such a session has at either side, at 99.9 %."""

MAX_SESSIONS = 500
NOT_BUILT = 0.03
"""The share of commits that do not compile."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Planted:
    """One planted step."""

    commit: int
    """The position of the first commit with it."""

    rows: tuple[int, ...]
    size: float
    """The logarithm of after / before in throughput; costs move the other way."""


@dataclass(frozen=True)
class BackfilledYear:
    """How a backfill of a simulated year went."""

    sessions: int
    needed: int
    """The sessions of perfect knowledge: it fills the dates, halves to every step, and confirms it."""

    found: int
    """The planted steps that lie within a confirmed pair, alone."""

    widths: tuple[int, ...]
    """The commits between the two of the pair that each found step lies in."""

    false: int
    """The confirmed pairs without a planted step."""


class SimulatedYear:
    """The commits of a year, what is planted in them, and what a backfill has measured."""

    def __init__(self, seed: int) -> None:
        self._draws = np.random.default_rng((7_500, seed))
        moments = np.sort(self._draws.uniform(-14, DAYS, COMMITS))
        self.commits = tuple(
            PastCommit(f"{number:040x}", BEGIN + timedelta(days=float(moment)))
            for number, moment in enumerate(moments)
        )
        fails = self._draws.random(COMMITS) < NOT_BUILT
        self.broken = {past.commit for past, no in zip(self.commits, fails, strict=True) if no}
        self.planted = self._plant()
        rows = [(number, f"step-{number % STEPS}", metric) for number, metric in enumerate(_metrics())]
        environment = Environment("box", "suite", "smoke")
        empty = np.empty((len(rows), 0))
        matrix = SeriesMatrix(environment, "postgres@master", "postgres@18", (), tuple(rows), empty)
        self.state = PastState(self.commits, matrix, frozenset())

    def backfill(self, noise: float = 1.0) -> BackfilledYear:
        """Measure until nothing is left to do; `noise` is a factor of the usual."""
        sessions = 0
        while (action := next_action(self.state, WEEKS, MIN)) is not None and sessions < MAX_SESSIONS:
            if isinstance(action, ExaminePair):
                self._examine(action, noise)
            elif action.commit.commit in self.broken:
                # It is compiled, which fails, and costs no session.
                self.state = replace(self.state, in_vain=self.state.in_vain | {action.commit.commit})
                continue
            else:
                self._measure(action.commit, noise)
            sessions += 1
        steps = [pair for pair in self.state.examined if pair.is_step]
        held = [[step for step in self.planted if self._holds(pair, step)] for pair in steps]
        found = {inside.commit for ones in held for inside in ones if len(ones) == 1}
        widths = [self._width(pair) for pair, ones in zip(steps, held, strict=True) if len(ones) == 1]
        false = sum(not ones for ones in held)
        return BackfilledYear(sessions, self._needed(), len(found), tuple(widths), false)

    def _plant(self) -> tuple[Planted, ...]:
        begin = int(self._draws.integers(30, 60))
        days = [begin, *(begin + np.cumsum(self._draws.integers(60, 120, 2))).tolist()]
        planted = []
        for day, size in zip(days, self._draws.permutation(SIZES).tolist(), strict=True):
            commit = next(
                n for n, past in enumerate(self.commits) if past.stands_at > BEGIN + timedelta(days=day)
            )
            steps = self._draws.choice(STEPS, int(self._draws.integers(1, 4)), replace=False).tolist()
            sign = float(self._draws.choice((-1, 1)))
            planted.append(Planted(commit, tuple(steps), sign * math.log1p(size)))
        return tuple(planted)

    def _levels(self, commit: PastCommit) -> Array:
        number = int(commit.commit, 16)
        levels = np.zeros(2 * STEPS)
        for step in self.planted:
            if step.commit <= number:
                levels[list(step.rows)] += step.size
                levels[[row + STEPS for row in step.rows]] -= step.size
        return levels

    def _measure(self, commit: PastCommit, noise: float) -> None:
        matrix = self.state.matrix
        deviations = noise * np.array([NOISE[metric] for metric in _metrics()])
        column = np.exp(self._levels(commit) + deviations * self._draws.standard_normal(2 * STEPS))
        night = Night(len(matrix.nights) + 1, commit.stands_at, f"postgres@git:{commit.commit[-12:]}", 1)
        place = sum(other.started_at < night.started_at for other in matrix.nights)
        nights = (*matrix.nights[:place], night, *matrix.nights[place:])
        ratios = np.insert(matrix.ratios, place, column, axis=1)
        self.state = replace(self.state, matrix=replace(matrix, nights=nights, ratios=ratios))

    def _examine(self, action: ExaminePair, noise: float) -> None:
        before, after = (self._commit_at(night.started_at) for night in (action.before, action.after))
        rows = [row for row in range(STEPS) if f"step-{row}" in action.lead.steps]
        true = (self._levels(after) - self._levels(before))[rows]
        sizes = true + noise * PAIR_DEVIATION * self._draws.standard_normal(len(rows))
        is_step = bool((np.abs(sizes) > np.maximum(math.log1p(MIN), PAIR_ERRORS * PAIR_DEVIATION)).any())
        pair = ExaminedPair(action.before.started_at, action.after.started_at, is_step)
        self.state = replace(self.state, examined=(*self.state.examined, pair))

    def _commit_at(self, moment: datetime) -> PastCommit:
        return next(commit for commit in self.commits if commit.stands_at == moment)

    def _holds(self, pair: ExaminedPair, planted: Planted) -> bool:
        return pair.before < self.commits[planted.commit].stands_at <= pair.after

    def _width(self, pair: ExaminedPair) -> int:
        return sum(pair.before < commit.stands_at <= pair.after for commit in self.commits)

    def _needed(self) -> int:
        """Return the sessions of a search that is told after each commit on which side of each step it is."""
        known = PastState(self.commits, self.state.matrix, frozenset(self.broken))
        dates = filled(known, WEEKS)
        points = _filling(known, dates.dates)
        needed = len(points)
        for step in self.planted:
            begins = self.commits[step.commit].stands_at
            before, after = max(at for at in points if at < begins), min(at for at in points if at >= begins)
            while (commit := middle(self.commits, before, after, self.broken)) is not None:
                needed += 1
                before, after = (
                    (commit.stands_at, after) if commit.stands_at < begins else (before, commit.stands_at)
                )
            needed += 1
        return needed


def _metrics() -> Sequence[str]:
    return [PRIMARY] * STEPS + [COST] * STEPS


def _filling(known: PastState, most: int) -> list[datetime]:
    """Return the places of the points that fill all dates."""
    matrix = known.matrix
    state = replace(known, matrix=replace(matrix, nights=(), ratios=np.empty((len(matrix.series), 0))))
    points: list[datetime] = []
    while (commit := next_date(state, WEEKS)) is not None and len(points) < most:
        points = sorted((*points, commit.stands_at))
        nights = tuple(Night(number, at, "", 1) for number, at in enumerate(points))
        ones = np.ones((len(matrix.series), len(points)))
        state = replace(state, matrix=replace(matrix, nights=nights, ratios=ones))
    return points
