"""A history on a disk that fills up: what was recorded stays, and once there is room again it goes on."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from history.errors import HistoryError
from history.open import open_store
from history.store.records import SessionStatus
from history.store.writer import Store
from tests.history.handmade import run_record, session_start

ROOM = 1_200_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(store: Store, session: int, recorded: list[int]) -> None:
    """Record runs until the history refuses; `recorded` are those that it took."""
    for repetition in range(1, 1_000):
        record = run_record(repetition=repetition, per_second=(1000.0,) * 200)
        recorded.append(store.record_run(session, record))


def test_a_full_disk_loses_nothing_and_can_be_freed(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(300_000))
    path = small_disk / "history.db"
    with open_store(path) as store:
        session = store.start_session(session_start())
        recorded: list[int] = []
        with pytest.raises(HistoryError) as caught:
            fill(store, session, recorded)
        assert "no space left for the history" in str(caught.value)
        assert "earlier records are intact" in str(caught.value)
        assert str(path) in str(caught.value)
        assert len(recorded) > 3
        assert [run.id for run in store.runs(session)] == recorded
        ballast.unlink()
        store.record_run(session, run_record(repetition=2_000))
        store.finish_session(session, SessionStatus.FINISHED)
    with open_store(path) as store:
        assert len(store.runs(session)) == len(recorded) + 1
        with store.database.reading() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
            assert connection.exec_driver_sql("SELECT count(*) FROM points").scalar() == 1


def test_a_new_history_on_a_full_disk_says_so(small_disk: Path) -> None:
    with suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))
    with pytest.raises(HistoryError, match="free some disk space"):
        open_store(small_disk / "history.db")
