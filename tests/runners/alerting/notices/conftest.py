"""A history whose changes and troubles are told to a webhook."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from history.open import open_store
from history.store.writer import Store
from history.timestamps import to_text
from runners.alerting.notices.of_alerts import Links
from runners.alerting.notices.outbox import Notice
from runners.alerting.notices.routes import Route
from runners.alerting.notices.telling import Telling, Trouble, tell
from runners.alerting.outbox import update_outbox
from tests.history.both_stores import target as target
from tests.history.commits import Commits
from tests.history.conftest import Target
from tests.history.conftest import server_url as server_url
from tests.history.watched import dated
from tests.runners.alerting.notices.receivers import MailServer, Webhook, mail_server, webhook

MONDAY = datetime.fromisoformat("2026-11-30T05:00:00+00:00")


@dataclass
class Told:
    """A history and its routes."""

    store: Store
    routes: Sequence[Route]
    when: datetime = MONDAY
    nights: list[Notice] = field(default_factory=list)
    dated: int = 0
    """The id of the latest alert that was dated."""

    def tell(self, *troubles: Trouble, days: float = 0.0, judges: bool = True) -> list[str]:
        """Tell after so many more days; return what went wrong."""
        self.when += timedelta(days=days)
        if judges:
            update_outbox(self.store.database, 0.02)
            self._date_alerts()
        links = Links(lambda repository, number: f"https://tracker.example/{repository}/issues/{number}")
        nights, self.nights = self.nights, []
        telling = Telling(self.routes, links, ["box"], "monday", nights=nights)
        return tell(self.store.database, telling, troubles, self.when)

    def _date_alerts(self) -> None:
        """Let new alerts be of this day, and not of the day of the test."""
        with self.store.database.writing() as connection:
            connection.exec_driver_sql(
                f"UPDATE alerts SET created_at = '{to_text(self.when)}' WHERE id > {self.dated}"
            )
            self.dated = connection.exec_driver_sql("SELECT coalesce(max(id), 0) FROM alerts").scalar_one()

    def trouble(self, *reasons: str) -> Trouble:
        what = f"the night of {self.when:%Y-%m-%d} on box db1"
        return Trouble("night db1", what, reasons, "./tidemark status", ["db1"])


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with webhook() as found:
        yield found


@pytest.fixture
def mails() -> Iterator[MailServer]:
    with mail_server() as found:
        yield found


@pytest.fixture
def anywhere(target: Target, hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """The same as `told`, in a file and on a server."""
    monkeypatch.setenv("TIDEMARK_NOTIFY_TEAM", hook.url)
    with open_store(target) as store:
        found = Told(store, [Route(name="team")])
        assert found.tell() == []
        hook.taken.clear()
        yield found


@pytest.fixture
def told(tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """Routes of which the first digest has been told; what comes then is new."""
    monkeypatch.setenv("TIDEMARK_NOTIFY_TEAM", hook.url)
    with open_store(tmp_path / "history.db") as store:
        found = Told(store, [Route(name="team")])
        assert found.tell() == []
        hook.taken.clear()
        hook.asked = 0
        yield found


@pytest.fixture
def commits(tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Told, Commits]]:
    """Nights of commits, in whose history the first digest has been told."""
    monkeypatch.setenv("TIDEMARK_NOTIFY_TEAM", hook.url)
    with dated(tmp_path / "commits.db", Commits) as written:
        written.more(3)
        found = Told(written.store, [Route(name="team")])
        assert found.tell() == []
        hook.taken.clear()
        hook.asked = 0
        yield found, written
