"""Whether an alert would arrive is found out in every night, and told before there is one."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from build.home import Home
from history.store.writer import Store
from runners.alerting import tokens
from runners.cli import main
from runners.nightly.plan import load_plan
from runners.nightly.report import report
from tests.runners.alerting.conftest import Stand
from tests.runners.alerting.github import REPOSITORY, Fault
from tests.runners.small_plan import small_plan

EXPIRES = "GitHub-Authentication-Token-Expiration"
SOON = {EXPIRES: f"{datetime.now(UTC) + timedelta(days=5):%Y-%m-%d %H:%M:%S UTC}"}
LATER = {EXPIRES: f"{datetime.now(UTC) + timedelta(days=60):%Y-%m-%d 10:00:00 +0200}"}

OBSTACLES: dict[str, tuple[dict[str, Any], str, str]] = {
    "archived": ({"is_archived": True}, "is archived: its issues can only be read", "unarchive the"),
    "no issues": ({"is_switched_off": True}, "issues are switched off", "switch issues on"),
    "no rights": ({"permissions": {"push": False, "pull": False}}, "has no rights", "the right to write"),
    "scope": ({"headers": {"X-OAuth-Scopes": "read:org, public_repo"}}, "its scopes are", "the scope `repo`"),
    "expired": ({"faults": [Fault(401, message="Bad credentials")]}, "401: Bad credentials", "has expired"),
    "gone": ({"faults": [Fault(404)]}, "answered 404", "the repository's name in the plan"),
    "away": ({"faults": [Fault()]}, "closed without an answer", "the next night"),
    "expires soon": ({"headers": SOON}, "the token expires at", "renew it before"),
}  # fmt: skip


def quiet(stand: Stand) -> Stand:
    """Nothing is due any more, and no issue is open."""
    stand.report()
    stand.end()
    stand.report()
    return stand


def kept(stand: Stand) -> dict[str, str]:
    """The check that is kept for whoever watches the box."""
    check: dict[str, str] = json.loads((stand.folder / "home/tracker.json").read_text(encoding="utf-8"))
    return check


@pytest.mark.parametrize("name", OBSTACLES)
def test_a_night_without_an_alert_tells_why_none_would_arrive(stand: Stand, name: str) -> None:
    state, what, todo = OBSTACLES[name]
    for attribute, value in state.items():
        setattr(quiet(stand).github, attribute, value)
    code, told = stand.report()
    assert (code, f"no alert would reach {REPOSITORY}" in told) == (2, True)
    check = kept(stand)
    assert what in check["problem"]
    assert todo in check["problem"]


@pytest.mark.parametrize("headers", [{}, LATER, {"X-OAuth-Scopes": "repo"}, {"X-OAuth-Scopes": ""}])
def test_when_all_is_well_it_takes_one_request(stand: Stand, headers: dict[str, str]) -> None:
    quiet(stand).github.headers = headers
    before = len(stand.github.requests)
    assert stand.report()[0] == 0
    assert stand.github.requests[before:] == [f"GET /repos/{REPOSITORY}"]
    check = kept(stand)
    assert check["problem"] == ""
    assert datetime.now(UTC) - datetime.fromisoformat(check["checked_at"]) < timedelta(minutes=1)


def test_what_a_delivery_met_is_kept_too(stand: Stand) -> None:
    stand.github.faults = [Fault(503)] * 9
    stand.report()
    check = kept(stand)
    assert "503" in check["problem"]


def test_a_night_whose_history_is_away_checks_it_all_the_same(stand: Stand) -> None:
    stand.github.is_archived = True
    away = cast(Store, SimpleNamespace(away=True))
    told = report(load_plan(stand.plan), Home(stand.folder / "home"), away).problems
    assert [problem.partition(":")[0] for problem in told] == [
        "nothing was judged or told without the history",
        f"no alert would reach {REPOSITORY}",
    ]


# --- a test alert


def sent(stand: Stand, plan: str = "") -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    code = main(["service", "test-alert", "--plan", plan or str(stand.plan)])
    said = stand.capsys.readouterr()
    return code, said.out, said.err


def test_a_test_alert_is_opened_and_closed_and_its_address_printed(stand: Stand) -> None:
    code, told, _ = sent(stand)
    (issue,) = stand.github.issues.values()
    assert (code, told) == (0, f"opened, and closed again: {issue['html_url']}\n")
    assert (issue["title"], issue["state"], issue["state_reason"]) == (
        "Test alert of box here",
        "closed",
        "completed",
    )
    assert [label["name"] for label in issue["labels"]] == ["performance"]
    assert "sent by" in issue["body"].lower()
    assert stand.report()[0] == 0
    assert stand.open_issues() == [2]


def test_a_test_alert_that_does_not_arrive_tells_what_to_do(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.github.is_archived = True
    code, _, told = sent(stand)
    assert (code, "unarchive the repository" in told) == (2, True)
    stand.github.is_archived = False
    stand.github.faults = [Fault(403, method="POST", message="Resource not accessible by integration")]
    code, _, told = sent(stand)
    assert (code, "`issues: write`" in told, stand.github.issues) == (2, True, {})
    stand.github.faults = [Fault(500, method="PATCH")]
    code, _, told = sent(stand)
    assert (code, f"where: {stand.github.issues[1]['html_url']}" in told) == (2, True)
    assert "close it there" in told
    bare = stand.folder / "bare.toml"
    bare.write_text(small_plan(["insert"], ""))
    code, _, told = sent(stand, str(bare))
    assert (code, 'add repository = "owner/name"' in told) == (2, True)
    monkeypatch.undo()
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    code, _, told = sent(stand)
    assert (code, "/etc/credstore/tidemark-github-token" in told) == (2, True)


def test_labels_that_a_test_alert_cannot_have_are_told(stand: Stand) -> None:
    stand.github.refused_labels = {"performance"}
    assert sent(stand)[0] == 1
    stand.github.refused_labels = set()
    stand.github.permissions = {"pull": True, "push": False}
    code, _, told = sent(stand)
    assert (code, f"may not set labels in {REPOSITORY}: performance" in told) == (1, True)
    assert stand.open_issues() == []


def test_root_reads_the_token_where_systemd_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    monkeypatch.setattr(tokens, "STORE", str(tmp_path))
    stored = tokens.credential("github")
    assert tokens.token("GITHUB_TOKEN", stored) is None
    (tmp_path / stored).write_text("ghs_stored\n")
    assert tokens.token("GITHUB_TOKEN", stored) == "ghs_stored"
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_set")
    assert tokens.token("GITHUB_TOKEN", stored) == "ghs_set"
