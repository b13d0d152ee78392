"""An issue on a real Gitea, from the night that opens it until nobody wants to hear of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.home import Home
from history.changes.confirmation import ConfirmationRequest
from history.changes.repository import Change
from history.open import open_store
from history.store.records import ChangeStatus
from history.store.writer import Store
from runners.cli import main
from runners.nightly.plan import load_plan
from runners.nightly.report import report
from runners.nightly.summary import summary
from tests.history.commits import Commits
from tests.history.watched import every_change, night
from tests.runners.alerting.trackers.real_gitea import OWNER, TIDEMARK, WRITER, RealGitea
from tests.runners.small_plan import small_plan

pytestmark = pytest.mark.server

SLOW = {"insert": 0.93}

OWNERS = f"""
[[owners]]
suites = ["write-heavy"]
assignee = "{WRITER}"
"""

MUTES = """
[[mutes]]
steps = ["insert"]
until = {:%Y-%m-%d}
reason = "page checksums"
"""


class Reported(Commits):
    """Nights that are reported by a plan whose tracker is the real one; the only issue is number 1."""

    def __init__(self, store: Store, folder: Path, gitea: RealGitea) -> None:
        super().__init__(store)
        self.folder, self.gitea = folder, gitea
        self.repository = gitea.new_repository("life")
        self.rules = OWNERS

    def report(self) -> str:
        """Report by the plan as it is now; the summary."""
        file = self.folder / "plan.toml"
        alerts = f'tracker = "gitea"\nurl = "{self.gitea.url}"\nrepository = "{self.repository}"'
        file.write_text(f"backups = 0\n{small_plan(['insert'], alerts)}{self.rules}")
        found = report(load_plan(file), Home(self.folder), self.store)
        assert found.problems == []
        return str(summary(None, found, [], self.clock()))

    def ask(self, method: str = "GET", rest: str = "", account: str = OWNER, body: Any = None) -> Any:
        """What a person sees of the issue, or does to it."""
        return self.gitea.ask(method, f"repos/{self.repository}/issues/1{rest}", account, body)

    @property
    def state(self) -> str:
        return str(self.ask()["state"])

    @property
    def change(self) -> Change:
        (change,) = every_change(self.store)
        return change


@pytest.fixture
def nights(gitea: RealGitea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reported]:
    monkeypatch.setenv("GITEA_TOKEN", gitea.token)
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    made: list[Reported] = []
    with open_store(tmp_path / "history.db", clock=lambda: night(made[0].count)) as store:
        made.append(Reported(store, tmp_path, gitea))
        yield made[0]


def test_an_issue_is_opened_fixed_back_muted_and_closed_by_a_person(nights: Reported) -> None:
    nights.more(3)
    nights.more(1, SLOW)
    nights.confirm(SLOW)
    assert "1 new change" in nights.report()
    opened = nights.ask()
    assert (opened["state"], opened["user"]["login"]) == ("open", TIDEMARK)
    assert [account["login"] for account in opened["assignees"]] == [WRITER]
    assert "Confirmed the same night by 8 interleaved rounds" in opened["body"]

    nights.ask("PATCH", "", WRITER, {"body": f"{opened['body']}\nI look at it."})
    nights.more(1)
    nights.confirm(old=3, question=ConfirmationRequest.GONE, change=nights.change.fingerprint)
    assert "1 gone" in nights.report()
    assert nights.state == "closed"
    assert "**It is gone**" in nights.ask()["body"]

    nights.more(1, SLOW)
    nights.confirm(SLOW)
    assert "1 back" in nights.report()
    assert nights.state == "open"

    nights.rules = OWNERS + MUTES.format(night(nights.count))
    assert "1 of them muted" in nights.report()
    assert nights.state == "closed"
    nights.more(2, SLOW)
    assert "1 new change" in nights.report()
    assert nights.state == "open"

    nights.rules = OWNERS
    nights.ask("PATCH", "", WRITER, {"state": "closed"})
    nights.report()
    assert nights.change.status is ChangeStatus.ACKNOWLEDGED
    words = [nights.change.fingerprint, "--undo", "--reason", "it costs too much"]
    assert main(["history", "acknowledge", *words, "--history", str(nights.store.where)]) == 0
    nights.report()
    assert nights.state == "open"

    assert nights.ask()["body"].endswith("I look at it.")
    said = [str(comment["body"]) for comment in nights.ask("GET", "/comments")]
    begins = (
        "Closed: back at the old level",
        "It is back.",
        "Closed: muted until",
        "No longer muted",
        "No longer",
    )
    assert len(said) == len(begins)
    assert all(map(str.startswith, said, begins))
    assert said[2].endswith("by the plan (steps insert): page checksums")
    assert said[4].endswith("it costs too much")
    listed = nights.gitea.ask("GET", f"repos/{nights.repository}/issues?state=all", OWNER)
    assert [issue["number"] for issue in listed] == [1]
