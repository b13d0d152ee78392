"""Which interrupted session is gone on with, and what becomes of its night."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from history.errors import RecordError
from history.store.records import RunStatus, SessionStart, SessionStatus
from history.store.writer import Store
from tests.history.conftest import rows
from tests.history.handmade import MACHINE, NIGHT, a_build, record_steps, run_record, session_start

BASE, NEW = "postgres@17.11", "postgres@18.6"
BUILDS = (a_build(BASE), a_build(NEW))
EARLIER = NIGHT - timedelta(hours=1)


def interrupted(store: Store, start: SessionStart | None = None) -> int:
    rates = {"insert": {BASE: [100.0, 100.0], NEW: [90.0, 0.0]}}
    return record_steps(store, start or session_start(), rates, SessionStatus.INTERRUPTED)


def test_the_same_is_gone_on_with(store: Store) -> None:
    session = interrupted(store)
    assert rows(store, "SELECT count(*) FROM points") == [(4,)]
    options = {**session_start().options, "machine_changed": ["kernel"]}
    found = store.resume_session(replace(session_start("new"), options=options), BUILDS, EARLIER)
    assert found is not None
    assert (found.id, found.uid) == (session, "night-1")
    assert {key: set(runs) for key, runs in found.recorded.items()} == {
        ("insert", 1): {BASE, NEW},
        ("insert", 2): {BASE, NEW},
    }
    assert found.recorded["insert", 2][NEW].status is RunStatus.FAILED
    assert rows(store, "SELECT status, ended_at FROM sessions") == [("running", None)]
    for table in ("points", "nights", "gaps"):
        assert rows(store, f"SELECT count(*) FROM {table}") == [(0,)]
    store.record_run(session, run_record(version=NEW, repetition=3))
    store.finish_session(session, SessionStatus.FINISHED)
    assert rows(store, "SELECT count(*) FROM nights") == [(2,)]


@pytest.mark.parametrize(
    "differently",
    [
        lambda start: replace(start, suite="pgbench"),
        lambda start: replace(start, profile="long"),
        lambda start: replace(start, suite_digest="cd" * 32),
        lambda start: replace(start, durability="full"),
        lambda start: replace(start, repetitions=4),
        lambda start: replace(start, seed=1),
        lambda start: replace(start, options={"threads": 9}),
        lambda start: replace(start, machine=replace(MACHINE, fingerprint="beef")),
    ],
)
def test_another_request_begins_anew(
    store: Store, differently: Callable[[SessionStart], SessionStart]
) -> None:
    interrupted(store)
    assert store.resume_session(differently(session_start("new")), BUILDS, EARLIER) is None


def test_another_build_begins_anew(store: Store) -> None:
    interrupted(store)
    moved = (BUILDS[0], a_build(NEW, "another key"))
    assert store.resume_session(session_start("new"), moved, EARLIER) is None


def test_what_finished_failed_or_is_old_is_left_alone(store: Store) -> None:
    for number, status in enumerate((SessionStatus.FINISHED, SessionStatus.FAILED)):
        record_steps(store, session_start(f"{number}"), {"insert": {BASE: [1.0]}}, status)
    assert store.resume_session(session_start("new"), BUILDS, EARLIER) is None
    interrupted(store, session_start("old"))
    assert store.resume_session(session_start("new"), BUILDS, NIGHT + timedelta(seconds=1)) is None
    assert store.resume_session(session_start("new"), BUILDS, NIGHT) is not None


# --- why nothing is resumed

DIGESTS = f"suite digest: {'ab' * 30}… then, {'cd' * 30}… now"
CHANGED = "the machine has changed"


@pytest.mark.parametrize(
    ("differently", "reason"),
    [
        (lambda start: replace(start, profile="long"), "profile: short then, long now"),
        (lambda start: replace(start, suite_digest="cd" * 32), DIGESTS),
        (lambda start: replace(start, options={"threads": 9, "seconds": 1}), "seconds: not set then, 1 now"),
        (
            lambda start: replace(start, options={"threads": 8, "memory": "1G"}),
            "memory: not set then, 1G now",
        ),
        (
            lambda start: replace(start, options={"threads": 8, "disk": "500iops"}),
            "disk: not set then, 500iops now",
        ),
        (lambda start: replace(start, machine=replace(MACHINE, fingerprint="beef")), CHANGED),
    ],
)
def test_a_session_that_is_not_resumed_is_named_with_the_reason(
    store: Store, differently: Callable[[SessionStart], SessionStart], reason: str
) -> None:
    interrupted(store)
    start = differently(session_start("new"))
    assert store.resume_session(start, BUILDS, EARLIER) is None
    found = store.nearest_interrupted(start, BUILDS, EARLIER)
    assert found is not None
    assert (found.uid, found.started_at) == ("night-1", NIGHT)
    assert reason in found.reasons


def test_the_nearest_one_is_named(store: Store) -> None:
    """An old one of the same request says more than a newer one of something else."""
    assert store.nearest_interrupted(session_start(), BUILDS, EARLIER) is None
    interrupted(store)
    interrupted(store, replace(session_start("night-2"), suite="read", profile="long"))
    later = NIGHT + timedelta(hours=1)
    moved = (BUILDS[0], a_build(NEW, "another key"))
    found = store.nearest_interrupted(session_start(), moved, later)
    assert found is not None
    assert found.uid == "night-1"
    assert found.reasons == (
        f"it began before {later:%Y-%m-%d %H:%M} UTC, and the machine may have drifted",
        f"{NEW} is another build by now",
    )


def test_the_runs_of_a_round_are_written_together_or_not_at_all(store: Store) -> None:
    session = store.start_session(session_start())
    store.record_run(session, run_record(version=NEW))
    with pytest.raises(RecordError):
        store.record_runs(session, [run_record(version=BASE), run_record(version=NEW)])
    assert [run.version for run in store.runs(session)] == [NEW]
    assert (
        len(store.record_runs(session, [run_record(version=BASE), run_record(version="postgres@15.18")])) == 2
    )
