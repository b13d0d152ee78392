"""Nights whose history is on a server that is away: they go on, and everything arrives later, once."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from benchmarks.scale.history_server import HistoryServer
from build.finished_build import Build
from history.open import open_store
from history.spool import spooled_store
from history.spool.journal import waiting_in
from runners.cli import main
from runners.nightly.night_result import NightResult
from tests.history.conftest import rows
from tests.runners.nightly.pretended import BASE, STEPS, Lab

pytestmark = pytest.mark.server

NIGHTS = f"SELECT version, count(*) FROM nights WHERE version <> '{BASE}' GROUP BY 1"
RUNS = "SELECT version, count(*) FROM runs GROUP BY 1 ORDER BY 1"


@pytest.fixture
def server(
    server_folders: Callable[[], AbstractContextManager[Path]], postgres_18: Build
) -> Iterator[HistoryServer]:
    with server_folders() as folder:
        made = HistoryServer(postgres_18, folder / "1")
        made.begin()
        yield made
        made.destroy()


@pytest.fixture
def lab(server: HistoryServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(spooled_store, "RETRY_SECONDS", 0.0)
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    made = Lab(tmp_path, monkeypatch)
    made.history = server.url
    return made


def problems(night: NightResult) -> str:
    """What went wrong, but for the clock, which is that of the made-up nights."""
    return "\n".join(problem for problem in night.problems if "the clock of this box" not in problem)


def test_nights_go_on_and_arrive_once(
    lab: Lab, server: HistoryServer, capsys: pytest.CaptureFixture[str]
) -> None:
    first = lab.commit()
    assert not problems(lab.night())

    second = lab.commit()
    lab.before_round = lambda count: server.kill() if count == len(STEPS) * 4 + 2 else None
    during = lab.night()
    assert len(during.carried_out) == 1
    assert "1 session waits" in problems(during) or "of 1 session wait" in problems(during)

    # The next one begins without it, and knows from the box what there is.
    third = lab.commit()
    without = lab.night()
    assert [session.request.versions[1:] for session, _ in without.carried_out] != []
    assert {name for names, *_ in lab.measured[-len(STEPS) * 4 :] for name in names} == {BASE, third}
    (waiting,) = waiting_in(lab.home.spool)
    assert waiting.sessions == 2
    assert not lab.again().carried_out

    assert main(["status", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["waiting"] == [str(waiting)]
    assert main(["history", "deliver"]) == 2
    server.server.start()
    assert main(["history", "deliver"]) == 0
    assert f"{waiting.found}: delivered" in capsys.readouterr().out
    assert main(["history", "deliver", "--history", server.url]) == 0
    assert "nothing waits" in capsys.readouterr().out
    assert not problems(lab.again())
    with open_store(server.url) as store:
        assert sorted(rows(store, NIGHTS)) == sorted([(name, 1) for name in (first, second, third)])
        rounds = len(STEPS) * 4
        assert rows(store, RUNS) == sorted(
            [(BASE, 3 * rounds), *((ended, rounds) for ended in (first, second, third))]
        )


def test_a_night_that_is_killed_without_the_server_is_resumed_and_arrives(
    lab: Lab, server: HistoryServer
) -> None:
    lab.commit()
    server.kill()
    lab.day += 1
    lab.killed(after=5)
    assert lab.again().carried_out
    assert len(lab.measured) == len(STEPS) * 4 - 5
    server.server.start()
    assert not problems(lab.again())
    with open_store(server.url) as store:
        assert rows(store, "SELECT status FROM sessions") == [("finished",)]
        assert rows(store, "SELECT count(*) FROM runs") == [(2 * len(STEPS) * 4,)]
