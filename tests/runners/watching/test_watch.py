"""A box that falls silent is told once for each time, and its issue is closed when it is well."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from history.open import open_store
from history.store import alert_outbox
from history.store.alert_outbox import Alert, IssueState
from history.store.process import this_process
from history.store.writer import Store
from runners.cli import main
from runners.installing import record
from runners.installing.record import Record
from runners.nightly.heartbeat import MISSED_HOURS, Beat, State, Status
from runners.watching.box_issues import judged, update_outbox
from tests.runners.alerting.github import REPOSITORY, TOKEN, GitHub, running

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NIGHT = "2026-11-19T01:17:00+00:00"
BEAT = Beat("db1", "insert", NIGHT, NIGHT, NIGHT, 1.0, 2.0, 1, 1, "boot")
ENDED = replace(BEAT, ended_at="2026-11-19T09:00:00+00:00", outcome="2 sessions")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "history.db") as store:
        yield store


def known(store: Store) -> list[Alert]:
    with store.database.reading() as connection:
        return list(alert_outbox.load(connection))


def say(store: Store, state: State, beat: Beat | None = BEAT, box: str = "db1") -> None:
    update_outbox(store, box, Status(state, beat), state, NOW)


def test_a_box_is_told_once_in_the_same_words(store: Store) -> None:
    say(store, State.MISSED, ENDED)
    (first,) = known(store)
    assert (first.desired.title, first.is_due) == ("box db1: its night is missing", True)
    assert "ended at 2026-11-19T09:00:00+00:00: 2 sessions." in first.desired.body
    update_outbox(store, "db1", Status(State.MISSED, ENDED), State.MISSED, NOW + timedelta(hours=5))
    (again,) = known(store)
    assert again.desired.digest == first.desired.digest


def test_a_night_that_an_error_ended_is_told(store: Store) -> None:
    say(store, State.FAILED, replace(ENDED, outcome="no room left", failed=True))
    (alert,) = known(store)
    assert (alert.desired.title, alert.is_due) == ("box db1: its night failed", True)
    assert "no room left" in alert.desired.body


def test_each_silence_is_an_alert_of_its_own_and_all_are_closed(store: Store) -> None:
    say(store, State.STALE)
    say(store, State.DEAD)  # the same night, which was killed then
    assert [alert.desired.title for alert in known(store)] == ["box db1: its night died"]
    say(store, State.DEAD, replace(BEAT, began_at="2026-11-20T01:17:00+00:00"))
    say(store, State.DEAD, box="db2")
    say(store, State.RUNNING)
    assert [alert.desired.state for alert in known(store)] == [
        IssueState.CLOSED,
        IssueState.CLOSED,
        IssueState.OPEN,
    ]


def test_a_box_that_never_began_a_night_has_missed_one_after_a_while() -> None:
    never = Status(State.NEVER, None)
    soon, late = NOW - timedelta(hours=MISSED_HOURS - 1), NOW - timedelta(hours=MISSED_HOURS + 1)
    assert [judged(never, since, NOW) for since in (None, soon, late)] == [
        State.NEVER,
        State.NEVER,
        State.MISSED,
    ]
    assert judged(Status(State.RUNNING, BEAT), late, NOW) is State.RUNNING


def test_a_night_without_an_installation_is_told_without_a_beat(store: Store) -> None:
    say(store, State.MISSED, None)
    assert "No night has begun since it was installed." in known(store)[0].desired.body


# --- the command


@pytest.fixture
def github() -> Iterator[GitHub]:
    with running() as github:
        yield github


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, github: GitHub) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setattr(record, "load", lambda machine: Record())
    path = tmp_path / "plan.toml"
    path.write_text(
        '[boxes.db1]\nlabel = "x"\nhostname = "*"\n[engines.postgres]\nbase = "postgres@17.11"\n'
        f'[[tasks]]\nsuite = "write-heavy"\nprofile = "smoke"\n[alerts]\nrepository = "{REPOSITORY}"\n'
    )
    return path


def beats(tmp_path: Path, beat: Beat) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home/heartbeat.json").write_text(json.dumps(asdict(beat)))


def test_the_watch_opens_one_issue_and_closes_it(
    plan: Path, github: GitHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["runner", "watch", "--plan", str(plan)]
    assert main(words) == 0
    assert "no night has started" in capsys.readouterr().out
    assert github.issues == {}
    beats(tmp_path, BEAT)
    assert [main(words), main(words)] == [1, 1]
    said = capsys.readouterr().out
    assert "died: box db1, night of 2026-11-19 01:17 UTC" in said
    assert "see docs/hardware.md" in said
    assert [issue["title"] for issue in github.issues.values()] == ["box db1: its night died"]
    writes = [request for request in github.requests if not request.startswith("GET")]
    assert len(writes) == 1
    now = datetime.now(UTC).isoformat()
    beats(tmp_path, replace(BEAT, beat_at=now, **asdict(this_process())))
    assert main(words) == 0
    assert [issue["state"] for issue in github.issues.values()] == ["closed"]
    assert github.violations == []


def test_without_a_token_the_watch_says_what_it_saw_and_the_alert_waits(
    plan: Path,
    github: GitHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    beats(tmp_path, BEAT)
    assert main(["runner", "watch", "--plan", str(plan)]) == 1
    assert "alerts wait in the outbox" in capsys.readouterr().err
    with open_store(tmp_path / "home/history.db") as store:
        assert [alert.is_due for alert in known(store)] == [True]


def test_the_token_of_a_unit_is_a_credential(
    plan: Path, github: GitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    (tmp_path / "tidemark-github-token").write_text(f"{TOKEN}\n")
    beats(tmp_path, BEAT)
    assert main(["runner", "watch", "--plan", str(plan)]) == 1
    assert len(github.issues) == 1
