"""Which builds a history still needs."""

from pathlib import Path

import pytest

from history.changes.needed_builds import needed_builds
from history.open import open_store
from history.store import bisects
from history.store.bisects import EventKind
from tests.history.handmade import MACHINE, NIGHT, record_steps, session_start
from tests.history.watched import BASE, NEW, name_commits, record_regression

OLD_COMMIT, NEW_COMMIT = "a" * 40, "b" * 40


@pytest.mark.deep("records and judges months of nights")
def test_an_open_change_the_base_and_the_last_commits_are_needed(tmp_path: Path) -> None:
    record_regression(tmp_path / "history.db", judged=True)
    with open_store(tmp_path / "history.db") as store:
        change = name_commits(store, OLD_COMMIT, NEW_COMMIT)
        with store.database.reading() as connection:
            assert needed_builds(connection, 3) == {
                f"c{OLD_COMMIT}": f"open change {change.fingerprint}",
                f"c{NEW_COMMIT}": f"open change {change.fingerprint}",
                f"key of {BASE}": "base of postgres@17",
                f"key of {NEW}": f"one of the last 3 of {NEW}",
            }
        with store.database.writing() as connection:
            connection.exec_driver_sql("UPDATE changes SET status = 'closed'")
        with store.database.reading() as connection:
            # The night after the change is eight nights old, and so is that of its own commit.
            assert f"c{OLD_COMMIT}" not in needed_builds(connection, 1)
            assert f"c{NEW_COMMIT}" in needed_builds(connection, 3)


def test_a_bisect_needs_its_builds_until_it_has_a_verdict(tmp_path: Path) -> None:
    with open_store(tmp_path / "history.db") as store:
        rates = {"insert": {"postgres@17.11": [100.0], "postgres@18.6": [90.0]}}
        record_steps(store, session_start("s1"), rates)
        with store.database.writing() as connection:
            bisect = bisects.begin(connection, "b1", MACHINE, {}, {"points": [1, 2]}, None, NIGHT)
            bisects.append(connection, bisect, EventKind.SESSION, {}, NIGHT, "s1")
            connection.exec_driver_sql("DELETE FROM nights")
        with store.database.reading() as connection:
            found = needed_builds(connection, 1)
        assert found == {"key of postgres@17.11": "bisect b1", "key of postgres@18.6": "bisect b1"}
        with store.database.writing() as connection:
            bisects.append(connection, bisect, EventKind.VERDICT, {}, NIGHT)
        with store.database.reading() as connection:
            assert needed_builds(connection, 1) == {}
