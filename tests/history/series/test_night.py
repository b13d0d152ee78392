"""What a session that ended comes to: branches, values, gaps."""

from dataclasses import replace

import pytest

from build.version import parse_version
from history.derive import derive_missing
from history.series.night import branch_line, branches
from history.series.series import Point, SeriesKey, find_series, read_series
from history.store.records import DroppedRound, Environment, SessionStatus
from history.store.writer import Store
from tests.history.both_stores import target as target
from tests.history.conftest import rows
from tests.history.handmade import record_steps, session_start

BASE, NEW = "postgres@17.11", "postgres@REL_18_STABLE"
PLACE = Environment("db1", "write-heavy", "short relaxed")


def series(store: Store, branch: str, step: str = "insert", base: str | None = None) -> tuple[Point, ...]:
    with store.database.reading() as connection:
        return read_series(connection, SeriesKey(PLACE, branch, step, "qps"), base)


@pytest.mark.parametrize(
    ("version", "line"),
    [
        ("postgres@18.6", "postgres@18"),
        ("postgres@9.6.24", "postgres@9.6"),
        ("mysql@9.7.2", "mysql@9.7"),
        ("mysql@8.0.45", "mysql@8.0"),
        ("postgres@REL_18_STABLE", "postgres@REL_18_STABLE"),
        ("postgres@git:5bf748b86b", "postgres@git"),
        ("postgres@18.6#mine", "postgres@18.6#mine"),
    ],
)
def test_the_branch_of_a_version(version: str, line: str) -> None:
    assert branch_line(parse_version(version)) == line


def test_two_versions_of_one_line_are_branches_of_their_own() -> None:
    found = branches(["postgres@17.10", "postgres@17.11", "postgres@18.6"], {})
    assert found == {
        "postgres@17.10": "postgres@17.10",
        "postgres@17.11": "postgres@17.11",
        "postgres@18.6": "postgres@18",
    }


def test_a_branch_that_was_chosen_wins() -> None:
    chosen = {"postgres@git:5bf748b86b": "postgres@master"}
    assert branches(["postgres@git:5bf748b86b"], chosen) == chosen


def test_a_night_is_the_mean_of_the_rounds_that_all_versions_finished(store: Store) -> None:
    # The third round of the base failed: the contender's value of that round has nothing to stand beside.
    rates = {"insert": {BASE: [1000.0, 4000.0, 0.0], NEW: [500.0, 2000.0, 9e8]}}
    record_steps(store, session_start(), rates)
    (new,), (base,) = series(store, NEW, base="postgres@17"), series(store, "postgres@17")
    assert base.value == pytest.approx(2000.0)
    assert new.value == pytest.approx(1000.0)
    assert new.relative == pytest.approx(0.5)
    assert (new.night.version, new.gap) == (NEW, "")


def test_values_of_zero_have_an_arithmetic_mean(store: Store) -> None:
    rates = {"insert": {BASE: [1000.0, 0.0]}}
    session = record_steps(store, session_start(), rates, status=None)
    with store.database.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO measurements (run_id, metric, value)"
            " SELECT id, 'server_read_kb_per_op', repetition - 1 FROM runs WHERE status = 'finished'"
        )
    store.finish_session(session, SessionStatus.FINISHED)
    assert rows(
        store,
        "SELECT value FROM points JOIN series ON series.id = series_id"
        " WHERE metric = 'server_read_kb_per_op'",
    ) == [(0.0,)]


def test_mean_latency_has_no_series_in_our_own_sessions(store: Store) -> None:
    """There it repeats the throughput."""
    session = record_steps(store, session_start(), {"insert": {BASE: [1000.0, 900.0]}}, status=None)
    with store.database.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO measurements (run_id, metric, value)"
            " SELECT id, 'latency_mean_ms', 1.5 FROM runs WHERE status = 'finished'"
        )
    store.finish_session(session, SessionStatus.FINISHED)
    assert ("latency_mean_ms",) not in rows(store, "SELECT metric FROM series")


def test_the_first_version_asked_for_is_the_base(store: Store) -> None:
    rates = {"insert": {NEW: [1.0], BASE: [1.0]}}
    start = session_start()
    record_steps(store, replace(start, options={"versions": [NEW, BASE]}), rates)
    record_steps(store, replace(start, uid="old"), rates)  # which does not say it: the oldest version
    found = rows(store, "SELECT branch FROM nights WHERE is_base = 1 ORDER BY session_id")
    assert found == [(NEW,), ("postgres@17",)]


def test_what_failed_is_a_gap_with_its_reason_and_never_a_zero(store: Store) -> None:
    rates = {"insert": {BASE: [1000.0], NEW: [0.0]}, "delete": {BASE: [1000.0], NEW: [900.0]}}
    record_steps(store, session_start(), rates)
    (point,) = series(store, NEW, base="postgres@17")
    assert (point.value, point.relative, point.gap) == (None, None, "the server did not start")
    (whole,) = series(store, NEW, "delete", base="postgres@17")
    assert whole.relative == pytest.approx(0.9)
    assert not whole.gap


def test_a_night_whose_base_is_missing_says_so(store: Store) -> None:
    record_steps(store, session_start(), {"insert": {BASE: [0.0], NEW: [900.0]}})
    record_steps(store, session_start("two"), {"insert": {NEW: [900.0]}})
    first, two = series(store, NEW, base="postgres@17")
    assert first.value == pytest.approx(900.0)
    assert first.relative is None
    assert first.gap == "postgres@17: the server did not start"
    assert two.gap == "postgres@17: not measured in this night"


def test_a_step_of_which_every_round_was_disturbed_says_so(store: Store) -> None:
    session = record_steps(
        store, session_start(), {"insert": {BASE: [1000.0]}, "delete": {BASE: [1.0], NEW: [1.0]}}, status=None
    )
    store.record_dropped(session, DroppedRound("insert", 1, "the host withheld 5 %", {NEW: 1.5}))
    store.finish_session(session, SessionStatus.FINISHED)
    assert series(store, NEW)[0].gap == "disturbed: the host withheld 5 %"


def test_a_version_that_was_not_built_is_a_gap_of_all_steps(store: Store) -> None:
    options = {"versions": [BASE, NEW], "not_built": {NEW: "make failed"}}
    record_steps(store, session_start("first"), {"insert": {BASE: [1.0], NEW: [1.0]}})
    record_steps(store, replace(session_start(), options=options), {"insert": {BASE: [1.0]}})
    points = series(store, NEW)
    assert [point.gap for point in points] == ["", "not built: make failed"]
    assert points[1].night.build_id is None


@pytest.mark.parametrize("rates", [[], [0.0, 0.0]])
def test_a_session_in_which_nothing_was_measured_is_no_night(store: Store, rates: list[float]) -> None:
    """Nothing could be loaded, or every server failed in every round."""
    start = replace(session_start(), options={"versions": [BASE, NEW]})
    steps = {"insert": {BASE: rates, NEW: rates}} if rates else {}
    record_steps(store, start, steps, SessionStatus.INTERRUPTED)
    assert rows(store, "SELECT count(*) FROM nights") == [(0,)]
    assert rows(store, "SELECT count(*) FROM gaps") == [(0,)]
    with store.database.writing() as connection:
        assert derive_missing(connection) == 0


def test_configurations_are_series_of_their_own(store: Store) -> None:
    chosen: dict[str, dict[str, object]] = {
        "a": {},
        "b": {"mode": "long", "seconds": 7200.0},
        "c": {"mode": "rounds", "settings": {"wal_compression": "on"}},
    }
    for uid, options in chosen.items():
        start = replace(session_start(uid), options=options)
        record_steps(store, start, {"insert": {BASE: [1.0]}})
    with store.database.reading() as connection:
        found = find_series(connection, metric="qps", step="insert", branch="postgres@17", box="db1")
        assert [key.environment.configuration for key in found] == [
            "short relaxed",
            "short relaxed long 7200s",
            "short relaxed wal_compression=on",
        ]
        assert not find_series(connection, box="db2")


def test_sessions_of_dead_processes_get_their_nights_later_and_once(store: Store) -> None:
    record_steps(store, session_start(), {"insert": {BASE: [1.0]}})
    with store.database.writing() as connection:
        for table in ("points", "nights"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    running = store.start_session(session_start("runs"))
    with store.database.writing() as connection:
        assert derive_missing(connection) == 1
        assert derive_missing(connection) == 0
    assert rows(store, "SELECT count(*) FROM nights") == [(1,)]
    assert running not in {row[0] for row in rows(store, "SELECT session_id FROM nights")}
