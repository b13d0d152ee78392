"""Delivery needs a tracker's protocol and nothing else: here it delivers to one that is kept in memory."""

import ast
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from build.home import ROOT
from history.escaping.markdown import Markdown
from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import AlertKind, DesiredIssue, IssueState
from history.store.writer import Store
from runners.alerting.delivery import Delivery, DeliveryResult
from runners.alerting.tracker import (
    Issue,
    IssueDeletedError,
    IssueEdit,
    MissingTokenError,
    Tracker,
    TrackerBusyError,
    TrackerError,
    TrackerRefusedError,
)
from runners.alerting.tracker_registry import TRACKERS, modules_in, open_tracker
from runners.nightly.plan import Alerts

DESIRED = DesiredIssue(
    "f1", AlertKind.CHANGE, "insert is 9 % slower", Markdown("since Monday"), IssueState.OPEN
)
LABELS = ("performance",)


class MemoryTracker:
    """Issues in a dictionary; the next requests fail with the errors in `failures`."""

    def __init__(self) -> None:
        self.repository = "owner/name"
        self.issues: dict[int, Issue] = {}
        self.comments: list[tuple[int, str]] = []
        self.failures: list[TrackerError] = []

    def check(self) -> None:
        self._fail()

    def newest(self, above: int) -> Iterator[Issue]:
        self._fail()
        yield from (self.issues[number] for number in sorted(self.issues, reverse=True) if number > above)

    def read(self, number: int) -> Issue:
        self._fail()
        if number not in self.issues:
            raise IssueDeletedError(f"there is no issue {number}")
        return self.issues[number]

    def create(self, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        self._fail()
        issue = Issue(len(self.issues) + 1, title, body, IssueState.OPEN, labels)
        self.issues[issue.number] = issue
        return issue

    def edit(self, issue: Issue, edit: IssueEdit) -> Issue:
        self._fail()
        title = issue.title if edit.title is None else edit.title
        body = issue.body if edit.body is None else edit.body
        people = issue.assignees if edit.assignees is None else edit.assignees
        changed = replace(issue, title=title, body=body, state=edit.state or issue.state, assignees=people)
        self.issues[issue.number] = changed
        return changed

    def remove_label(self, issue: Issue, label: str) -> None:
        self._fail()
        kept = tuple(name for name in self.issues[issue.number].labels if name != label)
        self.issues[issue.number] = replace(self.issues[issue.number], labels=kept)

    def comment(self, issue: Issue, text: str) -> None:
        self._fail()
        self.comments.append((issue.number, text))

    def may_decide(self, issue: Issue, label: str | None = None) -> bool:
        self._fail()
        return True

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "history.db") as store:
        yield store


def deliver(
    store: Store, tracker: Tracker, *desired: DesiredIssue, later: timedelta = timedelta(0)
) -> DeliveryResult:
    moment = datetime.now(UTC) + later
    with store.database.writing() as connection:
        alert_outbox.set_desired(connection, desired, moment)
    return Delivery(store.database, tracker, LABELS, 3, lambda: moment).run()


def test_an_issue_lives_as_its_alert_does(store: Store) -> None:
    tracker = MemoryTracker()
    assert deliver(store, tracker, DESIRED).created == ["f1"]
    assert (tracker.issues[1].title, tracker.issues[1].labels) == (DESIRED.title, LABELS)
    assert deliver(store, tracker, replace(DESIRED, body=Markdown("since Sunday"))).updated == ["f1"]
    closed = replace(DESIRED, state=IssueState.CLOSED, closing="gone since Friday")
    assert deliver(store, tracker, closed).closed == ["f1"]
    assert tracker.issues[1].state is IssueState.CLOSED
    assert tracker.comments == [(1, "Closed: gone since Friday")]


def test_a_label_and_a_deleted_issue_mute(store: Store) -> None:
    tracker = MemoryTracker()
    deliver(store, tracker, DESIRED, replace(DESIRED, fingerprint="f2"))
    tracker.issues[1] = replace(tracker.issues[1], labels=("not-a-regression",))
    del tracker.issues[2]
    assert deliver(store, tracker).muted == ["f1", "f2"]


def test_a_pause_holds_for_every_alert_until_it_is_over_and_a_refusal_for_one(store: Store) -> None:
    tracker = MemoryTracker()
    tracker.failures = [
        TrackerRefusedError("the title is too long"),
        TrackerBusyError("slow down", retry_at=datetime.now(UTC) + timedelta(minutes=10)),
    ]
    second, third = (replace(DESIRED, fingerprint=name) for name in ("f2", "f3"))
    result = deliver(store, tracker, DESIRED, second, third)
    assert result.failed == {"f1": "the title is too long", "f2": "slow down"}
    assert (result.created, result.waiting) == ([], 3)
    assert deliver(store, tracker).created == []
    assert deliver(store, tracker, later=timedelta(minutes=11)).created == ["f1", "f2", "f3"]


def test_delivery_imports_no_tracker_but_the_protocol() -> None:
    source = (ROOT / "runners/alerting/delivery.py").read_text(encoding="utf-8")
    imported = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert "runners.alerting.tracker" in imported
    assert [name for name in imported if name and ("github" in name or "trackers" in name)] == []


@pytest.mark.parametrize("name", TRACKERS)
def test_every_tracker_of_the_registry_implements_the_protocol(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in [key for key in os.environ if key.endswith(("_TOKEN", "CREDENTIALS_DIRECTORY"))]:
        monkeypatch.delenv(variable)
    with pytest.raises(MissingTokenError, match="_TOKEN is not set"):
        open_tracker(name, "owner/name")
    implementation = get_type_hints(import_module(TRACKERS[name]).connect)["return"]
    methods = [method for method in vars(Tracker) if not method.startswith("_")]
    assert methods == ["check", "newest", "read", "create", "edit", "remove_label", "comment", "may_decide"]
    assert [method for method in methods if not callable(getattr(implementation, method, None))] == []


def test_a_module_in_the_folder_is_a_tracker_and_is_not_imported_to_be_listed(tmp_path: Path) -> None:
    for name in ("__init__", "memory", "gitlab"):
        (tmp_path / f"{name}.py").write_text('raise RuntimeError("imported")\n')
    prefix = "runners.alerting.trackers"
    assert modules_in([str(tmp_path)]) == {"gitlab": f"{prefix}.gitlab", "memory": f"{prefix}.memory"}
    assert list(TRACKERS) == ["gitea", "github", "gitlab"]


def test_a_plan_names_a_tracker_of_the_registry() -> None:
    assert Alerts().tracker in TRACKERS
    with pytest.raises(
        ValueError, match=r"there is no tracker 'gitlub': the trackers are gitea, github, gitlab"
    ):
        Alerts(tracker="gitlub")


def test_a_plan_does_not_label_every_issue_as_muted() -> None:
    with pytest.raises(ValueError, match="the label 'Acknowledged' mutes an alert"):
        Alerts(labels=("performance", "Acknowledged"))
