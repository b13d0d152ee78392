"""Nights that are judged, and whose issues reach a stand-in tracker, where people decide about them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from history.changes import repository
from history.changes.detector import judge
from history.changes.repository import Change
from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import Alert
from history.store.writer import Store
from runners.alerting.delivery import Delivery, DeliveryResult
from runners.alerting.outbox import update_outbox
from runners.alerting.trackers.github import GitHubTracker
from runners.cli import main
from runners.history import changes as command
from tests.history.watched import QUIET, Nights, night, record_regression
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub

REGRESSED = QUIET + 8
"""Nights of `record_regression`."""


class Service:
    """Nights behind those of `record_regression`, and their reports."""

    def __init__(self, store: Store, github: GitHub) -> None:
        self.store, self.github = store, github
        self.nights = Nights(store)
        self.nights.count = REGRESSED

    def report(self) -> DeliveryResult:
        """Judge, set what is desired, and deliver it, at noon after the last night."""
        judge(self.store.database, self.now)
        update_outbox(self.store.database, 0.02)
        tracker = GitHubTracker(REPOSITORY, TOKEN, self.github.url, pause_seconds=0)
        return Delivery(self.store.database, tracker, ("performance",), 3, self.now).run()

    def decide(self, *words: str) -> int:
        """Call `history acknowledge` for the change at noon after the last night; the exit code."""
        file = str(self.store.where)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command, "now", self.now)
            return main(["history", "acknowledge", self.change.fingerprint, *words, "--history", file])

    def now(self) -> datetime:
        """Noon after the last night."""
        return night(self.nights.count) - timedelta(hours=12)

    def more(self, count: int, factor: float = 0.93) -> DeliveryResult:
        """So many nights with a report after each; returns the last one."""
        for _ in range(count):
            self.nights.more(1, factor)
            result = self.report()
        return result

    def close(self, number: int, reason: str | None) -> None:
        """A person closes an issue in the evening after the last report."""
        closed_at = f"{night(self.nights.count) - timedelta(hours=6):%Y-%m-%dT%H:%M:%SZ}"
        self.github.close(number, reason)
        self.github.issues[number]["closed_at"] = closed_at

    def issue(self, number: int = 1) -> dict[str, Any]:
        return self.github.issues[number]

    @property
    def alert(self) -> Alert:
        with self.store.database.reading() as connection:
            (alert,) = alert_outbox.load(connection)
        return alert

    @property
    def change(self) -> Change:
        with self.store.database.reading() as connection:
            (change,) = repository.load(connection)
        return change


@contextmanager
def running_service(path: Path, github: GitHub) -> Iterator[Service]:
    """A service with the history of `record_regression`, whose clock is that of its nights."""
    record_regression(path)
    known: list[Service] = []
    with open_store(path, clock=lambda: night(known[0].nights.count)) as store:
        known.append(Service(store, github))
        yield known[0]
