"""Nights with noise, and a contender whose speed changes, for tests of the judge."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar

from history.changes import repository
from history.changes.detector import DetectionReport, judge
from history.changes.repository import Change
from history.open import open_store
from history.store.records import Machine
from history.store.writer import Store
from tests.history.conftest import Target
from tests.history.handmade import MACHINE, NIGHT, record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@REL_18_STABLE"
STEPS = ("insert", "delete")
QUIET = 90
"""Nights before anything happens."""


class Nights:
    """Writes night after night; the noise of each is 1 %."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.random = random.Random(11)
        self.count = 0
        self.machine: Machine = MACHINE
        self.work = session_start("any").suite_digest

    def more(
        self, count: int, factor: float = 1.0, fails: bool = False, delete: float = 1.0, base: str = BASE
    ) -> None:
        """So many nights in which the contender's insert runs at `factor` of its speed, and its delete."""
        for _ in range(count):
            rates = {
                step: {
                    base: [1000.0 * self._noise()],
                    NEW: [0.0 if fails else 950.0 * self._noise() * (factor if step == "insert" else delete)],
                }
                for step in STEPS
            }
            start = replace(
                session_start(f"night-{self.count}"), machine=self.machine, suite_digest=self.work
            )
            record_steps(self.store, start, rates)
            self.count += 1

    def judge(self) -> DetectionReport:
        return judge(self.store.database, clock=lambda: night(self.count))

    def _noise(self) -> float:
        return float(self.random.lognormvariate(0.0, 0.007))


def night(number: int) -> datetime:
    return NIGHT + timedelta(days=number)


class Writer(Protocol):
    """Writes nights, and counts them."""

    count: int


W = TypeVar("W", bound=Writer)


@contextmanager
def dated(target: Target, writer: Callable[[Store], W]) -> Iterator[W]:
    """A writer into a history that holds nothing yet, and in which it is always the last of its nights."""
    written: list[W] = []
    with open_store(target, clock=lambda: night(written[0].count)) as store:
        written.append(writer(store))
        yield written[0]


def every_change(store: Store) -> Sequence[Change]:
    with store.database.reading() as connection:
        return repository.load(connection)


def name_commits(store: Store, old: str, new: str) -> Change:
    """Let the nights before and after the only change have measured two commits, 40 hex digits each."""
    (change,) = every_change(store)
    nights = ((old, change.last_before), (new, change.first_after))
    with store.database.writing() as connection:
        for name, measured in nights:
            connection.exec_driver_sql(
                "INSERT INTO builds (key, engine, release, source_kind, source_digest, compiler, manifest)"
                f" VALUES ('c{name}', 'postgres', '18', 'git', 'git:{name}:aa', 'gcc', '{{}}')"
            )
            connection.exec_driver_sql(
                f"UPDATE nights SET version = 'postgres@git:{name[:12]}',"
                f" build_id = (SELECT id FROM builds WHERE key = 'c{name}')"
                f" WHERE session_id = {measured.session_id} AND branch = '{NEW}'"
            )
    return every_change(store)[0]


LAST_NIGHT = night(QUIET + 8)
"""The time of the last night of `record_regression`."""


def record_regression(path: Path, *, judged: bool = False) -> None:
    """A history in which one step of two regresses by 7 % and stays so for eight nights."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_regressed(judged))


@cache
def _regressed(judged: bool) -> bytes:
    """The file of such a history: seconds of work, which many tests begin with."""
    with TemporaryDirectory(prefix="tidemark-") as folder:
        path = Path(folder) / "history.db"
        with dated(path, Nights) as nights:
            nights.more(QUIET)
            nights.more(8, 0.93)
            if judged:
                nights.judge()
        return path.read_bytes()
