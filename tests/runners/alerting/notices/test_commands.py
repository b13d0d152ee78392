"""Routes of a plan in commands: what is refused, and what reports and test alerts send."""

import json
from pathlib import Path

import pytest

from runners.alerting import tokens
from runners.cli import main
from runners.nightly.plan import PlanError, load_plan
from tests.history.watched import record_regression
from tests.runners.alerting.notices.receivers import SECRET, MailServer, Webhook
from tests.runners.small_plan import small_plan

TEAM = '[[notify]]\nname = "team"\n'


def written(folder: Path, notify: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(f"backups = 0\n{small_plan(['insert'], '')}{notify}")
    return path


@pytest.mark.parametrize(
    ("notify", "told"),
    [
        ("url = 'slak://a/b/c'", "url: Apprise does not know a URL that begins with slak://"),
        (
            f"url = 'json://me:{SECRET}@localhost/'",
            "url holds a secret, which is not for a plan: set TIDEMARK_",
        ),
        (f"url = 'slack://T1JJ3T3L2/A1BRTD4JD/{SECRET}TIiajkdnlazkcOXrI'", "url: "),
        (f"url = '{SECRET}'", "Apprise does not know a URL without a service, such as mailto://"),
        ("url_file = 'url'", "url_file is not an absolute path"),
        ("url = 'json://localhost'\nurl_file = '/x'", "url and url_file: one of them is enough"),
        ("kinds = ['open']", "kinds: 'open' is none of new, returned, confirmed, fixed, trouble, digest"),
        ("suites = ['tpcc']", "notify.0.suites: the plan has no 'tpcc'; it has write-heavy"),
        ("branches = ['master']", "notify.0.branches: 'master' is not a branch such as 'postgres@master'"),
        (TEAM, "two routes have the name team"),
    ],
)
def test_a_route_that_cannot_be_meant_is_refused(notify: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError) as refused:
        load_plan(written(tmp_path, f"{TEAM}{notify}\n"))
    assert told in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_weekday_is_one(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    path.write_text(f'digest_day = "mon"\n{path.read_text()}')
    with pytest.raises(PlanError, match="digest_day"):
        load_plan(path)


@pytest.fixture
def plan(tmp_path: Path, hook: Webhook, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIDEMARK_NOTIFY_TEAM", hook.url)
    record_regression(tmp_path / "home/history.db")
    return written(tmp_path, TEAM)


def test_reports_tell_and_keep_the_secret(
    plan: Path,
    hook: Webhook,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    hook.status = 500
    main(["nightly", "--report", "--plan", str(plan)])
    said = capfd.readouterr().out
    assert "route team: 2 notices not sent; waiting since " in said
    assert "error=500" in said
    assert hook.taken == []
    hook.status = 200
    assert main(["nightly", "--report", "--plan", str(plan)]) == 0
    main(["nightly", "--report", "--plan", str(plan)])
    _, digest = hook.lines
    assert "1 change open, 0 troubles open; in these 7 days 1 new" in digest
    said += "".join(capfd.readouterr())
    files = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert SECRET not in said
    assert not any(SECRET.encode() in content for content in files)


def test_a_test_alert_says_what_arrived(
    plan: Path,
    hook: Webhook,
    mails: MailServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = written(tmp_path, f"{TEAM}[[notify]]\nname = 'mail'\nurl = {json.dumps(mails.url)}\n")
    assert main(["service", "test-alert", "--plan", str(plan)]) == 0
    assert capfd.readouterr().out == "arrived: route team\narrived: route mail\n"
    assert hook.titles == [subject for subject, _ in mails.taken] == ["Tidemark: a test"]
    assert mails.taken[0][1] == hook.lines[0]
    hook.status = 500
    assert main(["service", "test-alert", "--plan", str(plan)]) == 2
    said = capfd.readouterr()
    assert said.out == "arrived: route mail\n"
    assert said.err.startswith("tidemark: the message did not arrive: Failed to send JSON POST notification")
    assert "where: route team" in said.err
    monkeypatch.delenv("TIDEMARK_NOTIFY_TEAM")
    monkeypatch.setattr(tokens, "STORE", str(tmp_path))
    (tmp_path / "tidemark-notify-team").write_text(f"{hook.url}\n")
    hook.status = 200
    assert main(["service", "test-alert", "--plan", str(plan)]) == 0
