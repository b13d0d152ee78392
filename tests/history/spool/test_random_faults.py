"""Random faults of a fleet: nothing that was recorded is lost, and what is missing would be seen."""

import random
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.scale.history_server import HistoryServer
from benchmarks.scale.sessions import STEPS, RecordedRound, differences, round_of, session_start
from history.open import open_store
from history.store.records import SessionStatus
from tests.history.spool.troubled_fleet import TroubledFleet


@pytest.mark.server
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("moments", "seed"),
    [
        pytest.param(4, 3, id="a few"),
        pytest.param(100, 2126, id="many", marks=pytest.mark.long),
    ],
)
def test_faults_lose_nothing(server: HistoryServer, server_folder: Path, moments: int, seed: int) -> None:
    open_store(server.url).close()
    fleet = TroubledFleet(server, server_folder, random.Random(seed))
    try:
        kinds = fleet.suffer(moments)
        wrong, problems = fleet.settle()
    finally:
        fleet.end()
    assert (wrong, problems) == ([], [])
    assert kinds.total() == moments
    assert fleet.told


def test_what_is_missing_or_there_twice_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store:
        session = store.start_session(session_start("box", "a", 3))
        for number in (1, 2):
            store.record_runs(session, round_of(0, number, 1000.0 + number, 2 * number))
        store.finish_session(session, SessionStatus.FINISHED)
    first, second, third = (RecordedRound("a", STEPS[0], number, 1000.0 + number) for number in (1, 2, 3))
    assert differences(str(path), Counter([first, second])) == []
    assert differences(str(path), Counter([first, second, third])) == [f"lost: {third}"]
    assert differences(str(path), Counter([first])) == [f"too often: {second}"]
    assert differences(str(path), Counter([first]), Counter([first, second, third])) == []
