"""What is recorded can be read again, each thing once, in the shape that was given."""

import json
import math
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from build.version import parse_version
from history.errors import RecordError
from history.open import open_store
from history.store import process, writer
from history.store.records import DroppedRound, RunStatus, SessionStatus, StepNoise
from history.store.writer import Store
from suites.metrics import METRICS
from tests.history.conftest import Target, rows
from tests.history.handmade import MACHINE, NIGHT, record_steps, run_record, session_start

OLD, NEW = parse_version("postgres@17.11"), parse_version("postgres@18.6")


def test_a_session_comes_back_as_it_went_in(store: Store) -> None:
    start = session_start()
    session_id = store.start_session(start)
    running = store.latest_session([])
    assert running is not None
    assert {name: getattr(running, name) for name in vars(start)} == vars(start)
    assert (running.id, running.started_at, running.ended_at) == (session_id, NIGHT, None)
    store.finish_session(session_id, SessionStatus.FAILED)
    ended = store.latest_session([])
    assert ended == replace(running, status=SessionStatus.FAILED, ended_at=NIGHT)


def test_a_run_comes_back_as_it_went_in(store: Store) -> None:
    session = store.start_session(session_start())
    record = run_record({"qps": 1234.5, "tps": 12.0}, repetition=2, position=7, per_second=(1.0, 2.5))
    run_id = store.record_run(session, record)
    (run,) = store.runs(session)
    assert (run.id, run.version, run.build_key) == (run_id, "postgres@18.6", "key of postgres@18.6")
    assert (run.step, run.step_position, run.repetition, run.position) == ("insert", 1, 2, 7)
    assert (run.status, run.failure) == (RunStatus.FINISHED, None)
    assert run.values == {"qps": 1234.5, "tps": 12.0}
    assert rows(store, "SELECT second, qps FROM samples ORDER BY second") == [(1, 1.0), (2, 2.5)]
    times = rows(store, "SELECT started_at, ended_at FROM runs")
    assert times == [("2026-03-01T02:07:00.000Z", "2026-03-01T02:07:30.000Z")]


def test_a_step_that_never_ran_is_recorded_as_failed(store: Store) -> None:
    session = store.start_session(session_start())
    store.record_run(session, replace(run_record(failure="no server"), configuration=None))
    (run,) = store.runs(session)
    assert (run.status, run.failure, run.values) == (RunStatus.FAILED, "no server", {})


def test_one_build_asked_for_under_two_names_is_one_row(store: Store) -> None:
    session = store.start_session(session_start())
    for version in ("postgres@18.6", "postgres@REL_18_6"):
        store.record_run(session, run_record(version=version, key="same"))
    assert rows(store, "SELECT count(*) FROM builds") == [(1,)]
    assert [run.version for run in store.runs(session)] == ["postgres@18.6", "postgres@REL_18_6"]


def test_builds_and_configurations_say_where_they_come_from(store: Store) -> None:
    session = store.start_session(session_start())
    for repetition in (1, 2):
        store.record_run(session, run_record(repetition=repetition))
    ((kind, digest, compiler, manifest),) = rows(
        store, "SELECT source_kind, source_digest, compiler, manifest FROM builds"
    )
    assert (kind, compiler) == ("cache", "gcc 13.2.0")
    assert json.loads(manifest)["source"]["digest"] == digest
    ((settings,),) = rows(store, "SELECT settings FROM configurations")
    assert json.loads(settings) == {"server": "postgres@18.6", "shared_buffers": "1GB"}


def test_a_machine_is_kept_once(store: Store) -> None:
    store.start_session(session_start("a"))
    store.start_session(session_start("b"))
    store.start_session(replace(session_start("c"), machine=replace(MACHINE, fingerprint="beef", cores=2)))
    assert rows(store, "SELECT cores FROM machines ORDER BY id") == [(48,), (2,)]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"qps": 1.0, "furlongs": 2.0}, "unknown metric: furlongs"),
        ({"qps": math.nan}, "not a finite number: qps"),
        ({"qps": math.inf}, "not a finite number: qps"),
        ({"qps": -1.0}, "qps cannot be -1 queries/s: it lies from 0 to 1e"),
        ({"qps": 1e300}, "qps cannot be 1e"),
        ({"qps": 1.0, "latency_p99_ms": -0.5}, "latency_p99_ms cannot be -0.5 ms"),
        ({"qps": 1.0, "machine_steal_share": 1.5}, "machine_steal_share cannot be 1.5 ratio"),
    ],
)
def test_measurements_are_checked(store: Store, values: dict[str, float], what: str) -> None:
    session = store.start_session(session_start())
    with pytest.raises(RecordError, match=what):
        store.record_run(session, run_record(values))
    with pytest.raises(RecordError, match="per-second"):
        store.record_run(session, run_record(per_second=(1.0, math.nan)))
    with pytest.raises(RecordError, match="qps cannot be -1"):
        store.record_run(session, run_record(per_second=(1.0, -1.0)))
    with pytest.raises(RecordError, match="qps cannot be -1"):
        store.record_dropped(session, DroppedRound("insert", 1, "noise", {"postgres@18.6": -1.0}))
    with pytest.raises(RecordError, match="not a finite number"):
        store.record_noise(session, [StepNoise("insert", "qps", math.inf, 9.0, 10)])
    assert store.runs(session) == ()


def test_a_uid_is_taken_once(store: Store) -> None:
    store.start_session(session_start())
    with pytest.raises(RecordError):
        store.start_session(session_start())


def test_a_session_ends_once(store: Store) -> None:
    session = store.start_session(session_start())
    store.finish_session(session, SessionStatus.FINISHED)
    with pytest.raises(RecordError, match="not running"):
        store.finish_session(session, SessionStatus.FINISHED)
    with pytest.raises(ValueError, match="cannot end with status running"):
        store.finish_session(session, SessionStatus.RUNNING)


def test_times_need_a_zone(store: Store) -> None:
    session = store.start_session(session_start())
    naive = replace(run_record(), started_at=datetime(2026, 3, 1))
    with pytest.raises(ValueError, match="no time zone"):
        store.record_run(session, naive)


def test_relative_qps_pairs_within_session_step_and_repetition(store: Store) -> None:
    record_steps(
        store,
        session_start("night-1"),
        {"insert": {str(OLD): [100.0, 200.0], str(NEW): [150.0, 0.0]}, "delete": {str(OLD): [10.0]}},
    )
    record_steps(store, session_start("night-2"), {"insert": {str(NEW): [1.0, 2.0]}})
    pairs = rows(
        store,
        "SELECT step, repetition, base_version, contender_version, base_qps, contender_qps, relative_qps"
        " FROM relative_qps ORDER BY base_version",
    )
    assert pairs == [
        ("insert", 1, str(OLD), str(NEW), 100.0, 150.0, 1.5),
        ("insert", 1, str(NEW), str(OLD), 150.0, 100.0, pytest.approx(2 / 3)),
    ]


def test_metrics_follow_the_code(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with open_store(path) as store, store.database.writing() as connection:
        connection.exec_driver_sql("UPDATE metrics SET unit = 'furlongs' WHERE name = 'qps'")
        connection.exec_driver_sql("INSERT INTO metrics VALUES ('gone', 's', 'lower', 'no longer measured')")
    with open_store(path) as store:
        found = {
            name: row for name, *row in rows(store, "SELECT name, unit, better, description FROM metrics")
        }
    assert found.pop("gone") == ["s", "lower", "no longer measured"]
    assert found == {
        metric.name: [metric.unit, metric.better, metric.description] for metric in METRICS.values()
    }


def ticking(start: datetime) -> Callable[[], datetime]:
    """A clock that is an hour further at each look."""
    hours = iter(range(1000))
    return lambda: start + timedelta(hours=next(hours))


def test_latest_session_holds_all_versions(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db", clock=ticking(NIGHT)) as store:
        both = {"insert": {str(OLD): [1.0], str(NEW): [1.0]}}
        record_steps(store, session_start("first"), both)
        record_steps(store, session_start("second"), both)
        record_steps(store, session_start("reads", suite="read-only"), both)
        record_steps(store, session_start("third"), {"insert": {str(NEW): [1.0]}})

        def uid(*versions: str, **limits: str) -> str | None:
            session = store.latest_session([parse_version(version) for version in versions], **limits)
            return None if session is None else session.uid

        assert uid() == "third"
        assert uid(str(NEW)) == "third"
        assert uid(str(OLD), str(NEW)) == "reads"
        assert uid(str(OLD), str(NEW), suite="write-heavy") == "second"
        assert uid(str(OLD), uid="first") == "first"
        assert uid(str(OLD), uid="third") is None
        assert uid(str(NEW), profile="long") is None
        assert uid("mysql@9.7.2") is None
        assert [(run.version, run.suite, run.session_uid) for run in store.latest_runs()] == [
            (str(NEW), "write-heavy", "third"),
            (str(OLD), "read-only", "reads"),
            (str(NEW), "read-only", "reads"),
            (str(OLD), "write-heavy", "second"),
        ]


def test_latest_is_by_start_not_by_order_of_writing(tmp_path: Path) -> None:
    """A session that is brought in later, as from another machine, can have been run earlier."""
    backwards = iter([NIGHT, NIGHT, NIGHT - timedelta(days=1), NIGHT])
    with open_store(tmp_path / "history.db", clock=lambda: next(backwards)) as store:
        for uid in ("newer", "older"):
            record_steps(store, session_start(uid), {"insert": {str(NEW): [1.0]}})
        session = store.latest_session([NEW])
        assert session is not None
        assert session.uid == "newer"


def test_an_interrupted_session_ended_with_its_last_run(
    store: Store, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = process.ProcessIdentity(process.this_process().process_id, start_ticks=1, boot_id="another boot")
    monkeypatch.setattr(writer, "this_process", lambda: dead)
    store.start_session(session_start("empty"))
    monkeypatch.undo()
    other = replace(session_start("elsewhere"), machine=replace(MACHINE, fingerprint="beef"))
    store.start_session(other)  # another machine cannot tell
    assert rows(store, "SELECT status FROM sessions") == [("running",), ("running",)]
    monkeypatch.setattr(writer, "this_process", lambda: dead)
    session = store.start_session(session_start("worked"))
    store.record_run(session, run_record(position=9))
    monkeypatch.undo()
    interrupted = "SELECT uid, ended_at FROM sessions WHERE status = 'interrupted'"
    store.start_session(session_start("next"))
    if store.database.is_shared:  # it may be of another box with the same name, until a week has passed
        assert dict(rows(store, interrupted)) == {"empty": "2026-03-01T02:00:00.000Z"}
        with open_store(target, clock=lambda: NIGHT + timedelta(days=8)) as later:
            later.start_session(session_start("much later"))
    ended = dict(rows(store, interrupted))
    assert ended == {"empty": "2026-03-01T02:00:00.000Z", "worked": "2026-03-01T02:09:30.000Z"}


def test_a_dead_session_is_found_although_a_setting_of_the_machine_was_changed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another fingerprint, but the same boot: the same machine, which can tell."""
    dead = replace(process.this_process(), start_ticks=1)
    monkeypatch.setattr(writer, "this_process", lambda: dead)
    store.start_session(session_start("dead"))
    monkeypatch.undo()
    store.start_session(replace(session_start("next"), machine=replace(MACHINE, fingerprint="beef")))
    found = rows(store, "SELECT uid, status FROM sessions ORDER BY id")
    assert found == [("dead", "interrupted"), ("next", "running")]


def test_the_latest_machine_of_a_name(store: Store) -> None:
    assert store.latest_machine("db1") is None
    changed, other = (
        replace(MACHINE, fingerprint="beef"),
        replace(MACHINE, fingerprint="cafe", hostname="db2"),
    )
    for uid, machine in (("first", MACHINE), ("second", changed), ("elsewhere", other)):
        store.start_session(replace(session_start(uid), machine=machine))
    assert store.latest_machine("db1") == changed
    assert store.latest_machine("db2") == other
    store.start_session(session_start("third"))
    assert store.latest_machine("db1") == MACHINE


def test_liveness_tells_a_reused_number_from_the_process() -> None:
    me = process.this_process()
    assert process.is_alive(me)
    assert not process.is_alive(replace(me, start_ticks=me.start_ticks + 1))
    assert not process.is_alive(replace(me, boot_id="another boot"))
    assert not process.is_alive(replace(me, process_id=2**22 + 1))  # above the kernel's highest number


def test_a_process_that_ended_and_whose_parent_does_not_ask_is_not_alive() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        ticks = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
        zombie = replace(process.this_process(), process_id=child.pid, start_ticks=ticks)
        assert process.is_alive(zombie)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not process.is_alive(zombie)
