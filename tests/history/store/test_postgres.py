"""The same migrations and queries on a Postgres server that Tidemark compiled itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

import compare as program
from build.environment import kept_from_process
from history.errors import HistoryError, RecordError
from history.open import open_store
from history.store.database import connect
from history.store.records import DroppedRound, SessionStatus, StepNoise
from history.store.writer import Store
from tests.history.conftest import emptied
from tests.history.handmade import record_steps, run_record, session_start

OLD, NEW = "postgres@17.11", "postgres@18.6"

pytestmark = pytest.mark.server


@pytest.fixture
def url(server_url: str) -> str:
    """The URL of a running server's database, which is empty."""
    return emptied(server_url)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as store:
        yield store


def test_recorded_and_compared(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    rates = {"insert": {OLD: [1000.0, 1010.0, 990.0], NEW: [900.0, 909.0, 891.0]}}
    session = record_steps(store, session_start(), rates)
    assert len(store.runs(session)) == 6
    assert [run.version for run in store.latest_runs()] == [OLD, NEW]
    assert program.main([OLD, NEW, "--history", url]) == 1
    assert "regression" in capsys.readouterr().out
    with store.database.reading() as connection:
        ratios = connection.exec_driver_sql("SELECT relative_qps FROM relative_qps").scalars().all()
    assert sorted(ratios) == pytest.approx([0.9] * 3 + [1 / 0.9] * 3)


def test_dropped_rounds_and_calibrations(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    calibration = store.start_session(session_start("calibration"))
    store.record_noise(calibration, [StepNoise("insert", "qps", 0.01, 9.0, 10)])
    store.finish_session(calibration, SessionStatus.FINISHED)
    rates = {"insert": {OLD: [1000.0, 1010.0, 990.0], NEW: [1001.0, 1011.0, 991.0]}}
    session = record_steps(store, session_start(), rates)
    dropped = [DroppedRound("insert", number, "the host withheld 5 %", {OLD: 1.5}) for number in (2, 2, 1)]
    for row in dropped:
        store.record_dropped(session, row)
    assert store.dropped(session) == tuple(dropped)
    (noise,) = store.noise(session_start("tomorrow"), "qps").values()
    assert (noise.step, noise.sd, noise.rounds, noise.session) == ("insert", 0.01, 10, "calibration")
    with pytest.raises(RecordError):
        store.record_noise(calibration, [StepNoise("insert", "qps", 0.02, 9.0, 10)])
    program.main([OLD, NEW, "--history", url])
    said = capsys.readouterr().out
    assert "sees" in said
    assert "measured again, 3 rounds: the host withheld 5 %" in said


def test_a_record_that_fails_leaves_nothing(store: Store) -> None:
    session = store.start_session(session_start())
    store.record_run(session, run_record(per_second=(1.0, 2.0)))
    with pytest.raises(RecordError):
        store.record_run(session, run_record(key="another build"))
    with store.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM builds").scalar() == 1
    store.finish_session(session, SessionStatus.FINISHED)


def test_opening_again_and_newer_and_foreign(store: Store, url: str) -> None:
    open_store(url).close()
    execute(url, "INSERT INTO schema_migrations VALUES (999, 'future', 'now')")
    with pytest.raises(HistoryError, match="newer Tidemark"):
        open_store(url)
    with pytest.raises(HistoryError, match=r"schema 999 by now(.*\n)*.*update this checkout"):
        store.start_session(session_start())
    execute(url, "ALTER TABLE schema_migrations RENAME TO pictures")
    with pytest.raises(HistoryError, match="not Tidemark's"):
        open_store(url)


def execute(url: str, statement: str) -> None:
    database = connect(url)
    with database.writing() as connection:
        connection.exec_driver_sql(statement)
    database.close()


def test_a_service_and_a_password_of_the_caller(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = make_url(url)
    place = {"host": known.query["host"], "port": known.query["port"], "dbname": known.database}
    lines = [f"{name}={value}" for name, value in place.items()]
    (tmp_path / "services").write_text("\n".join(["[nights]", *lines]) + "\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGSERVICE", "nights")
    monkeypatch.setenv("PGUSER", str(known.username))
    monkeypatch.setenv("PGPASSWORD", "of the caller")
    with (
        kept_from_process(),
        open_store("postgresql+psycopg://") as store,
        store.database.reading() as connection,
    ):
        info = connection.connection.dbapi_connection.info  # type: ignore[union-attr]
        assert (info.dbname, info.user, info.password) == (known.database, known.username, "of the caller")
