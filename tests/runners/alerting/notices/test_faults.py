"""Services that are away, and processes that die: everything arrives in the end, in order."""

import socket
from pathlib import Path

import pytest

from runners.alerting.notices import outbox
from runners.alerting.notices.routes import Route
from tests.runners.alerting.notices.conftest import Told
from tests.runners.alerting.notices.receivers import SECRET, MailServer, Webhook


@pytest.mark.parametrize("fault", ["500", "hangs", "refused"])
def test_a_service_that_is_away_gets_everything_later_once_and_in_order(
    fault: str, told: Told, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "refused":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        monkeypatch.setenv("TIDEMARK_NOTIFY_TEAM", f"json://127.0.0.1:{port}/{SECRET}")
    hook.status, hook.hangs = (500 if fault == "500" else 200), fault == "hangs"
    (problem,) = told.tell(told.trouble("first"))
    assert problem.startswith("route team: 1 notice not sent; waiting since 2026-11-30 05:00 UTC: ")
    assert SECRET not in problem
    (again,) = told.tell(told.trouble("first"), told.trouble("second"))
    assert again.startswith("route team: 2 notices not sent")
    assert hook.taken == []
    assert hook.asked == (0 if fault == "refused" else 2)  # once in each delivery
    hook.status, hook.hangs = 200, False
    monkeypatch.setenv("TIDEMARK_NOTIFY_TEAM", hook.url)
    assert told.tell(told.trouble("second")) == []
    assert told.tell(told.trouble("second")) == []
    assert [line.partition("db1: ")[2].partition(";")[0] for line in hook.lines] == ["first", "second"]


def test_what_waited_for_days_is_one_message(told: Told, hook: Webhook) -> None:
    hook.status = 500
    for number in range(5):
        told.tell(told.trouble("x" * (number + 1)), days=1)
    hook.status = 200
    assert told.tell(told.trouble("y"), days=1) == []
    first, *others = hook.lines
    assert [line[:20] for line in first.splitlines()] == ["2026-12-01 Trouble: ", "2026-12-02 Trouble: "]
    assert hook.titles[0] == "Tidemark: 2 notices of 2026-12-01 to 2026-12-02"
    assert len(others) == 4


def test_many_of_one_night_are_ten_messages_and_one(told: Told, hook: Webhook) -> None:
    hook.status = 500
    for number in range(14):
        told.tell(told.trouble("x" * (number + 1)))
    hook.status = 200
    told.tell()
    assert len(hook.lines) == 11
    assert len(hook.lines[0].splitlines()) == 4


def test_who_is_killed_before_it_recorded_sends_again(
    told: Told, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:

        def killed(*arguments: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(outbox, "mark_sent", killed)
        with pytest.raises(KeyboardInterrupt):
            told.tell(told.trouble("first"))
    told.tell(told.trouble("first"))
    told.tell(told.trouble("first"))
    assert len(hook.lines) == 2
    assert len({*hook.lines}) == 1


def test_other_routes_are_told_of_one_that_gets_nothing(
    told: Told, hook: Webhook, mails: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.routes = [Route(name="team"), Route(name="mail", kinds=("trouble",), url=mails.url)]
    hook.status = 500
    told.tell(told.trouble("first"))
    told.tell(told.trouble("first"), days=1.1)
    told.tell(told.trouble("first"), days=1)
    hook.status = 200
    told.tell(told.trouble("first"))
    told.tell(told.trouble("first"))
    assert len(hook.lines) == 1
    assert [text.partition("; to do")[0] for _, text in mails.taken[1:]] == [
        "Trouble: the route team: it has taken nothing since 2026-11-30 05:00 UTC",
        "Over: the route team had no problem",
    ]
    assert mails.taken[0][0] == "Tidemark: the service needs somebody"


def test_a_url_in_a_file_and_one_that_is_missing(
    told: Told, hook: Webhook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "url"
    told.routes = [Route(name="team", url_file=str(file)), Route(name="other")]
    first, second = told.tell(told.trouble("first"))
    assert f"{file} cannot be read: No such file or directory" in first
    assert "TIDEMARK_NOTIFY_OTHER is not set, and there is no credential tidemark-notify-other" in second
    file.write_text(f"nowhere://{SECRET}\n")
    problem, _ = told.tell()
    assert "Apprise does not know a URL that begins with nowhere://" in problem
    assert SECRET not in problem
    file.write_text(f"{hook.url}\n")
    assert len(told.tell()) == 1
    assert len(hook.lines) == 1
