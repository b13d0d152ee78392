"""What compare reads comes from indexes: a history of years has millions of rows."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from build.version import parse_version
from history.comparison.compare import compare
from history.comparison.options import CompareOptions
from history.errors import ComparisonError
from history.open import open_reader, open_store
from history.series.inventory import InventoryFilter, list_series
from history.series.timeline import read_timeline
from history.store.reader import Reader
from tests.history.handmade import NIGHT
from tests.history.nightly import BASE, NEW, Calendar, opened, record_nights

LARGE = "sessions|runs|measurements|samples|points|nights|gaps|night_\\d+|old|new|mine"
"""Tables that grow with every night, and their names within our queries."""

ANY_NIGHT = "SELECT nights.session_id FROM nights LIMIT ? OFFSET ?"

OLD, BRANCH = parse_version(BASE), parse_version(NEW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    clock = Calendar()
    with opened(tmp_path / "history.db", clock) as store:
        record_nights(store, clock, [0.9] * 4)
    return tmp_path / "history.db"


@contextmanager
def recorded_statements() -> Iterator[list[tuple[str, Any]]]:
    """The statements that are executed meanwhile, with their parameters."""
    found: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, *_more: object) -> None:
        found.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


def scans(path: Path, statements: list[tuple[str, Any]]) -> list[str]:
    """Steps of the plans that go through a whole large table or index."""
    connection = sqlite3.connect(path)
    found = []
    for statement, parameters in statements:
        if statement.startswith(("SELECT", "WITH")):
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters):
                # Whether there is any night at all takes the first row of an index.
                first = " ".join(statement.split()) == ANY_NIGHT
                if re.match(rf"SCAN ({LARGE})\b", row[3]) and not first:
                    found.append(f"{row[3]}: {statement}")
    connection.close()
    return found


def nothing_in_common(store: Reader) -> None:
    with pytest.raises(ComparisonError):
        compare(store, OLD, [parse_version("postgres@13.1")])


CASES: dict[str, Callable[[Reader], object]] = {
    "versions": lambda store: compare(store, OLD, [BRANCH]),
    "limited": lambda store: compare(
        store, OLD, [BRANCH], CompareOptions(machine="db1", suite="write-heavy", profile="short")
    ),
    "session": lambda store: compare(store, OLD, [BRANCH], CompareOptions(session=f"db1-{BASE}-0304")),
    "branches": lambda store: compare(store, parse_version("postgres@17"), [], branches=[BRANCH]),
    "nights": lambda store: compare(store, OLD, [BRANCH], CompareOptions(since=NIGHT)),
    "nights of a box": lambda store: compare(
        store, OLD, [BRANCH], CompareOptions(since=NIGHT, machine="db1", profile="short")
    ),
}


@pytest.mark.parametrize("opened_by", [open_reader, open_store])
@pytest.mark.parametrize("name", CASES)
def test_no_large_table_is_gone_through(name: str, opened_by: Callable[[Path], Reader], path: Path) -> None:
    with recorded_statements() as statements, opened_by(path) as history:
        CASES[name](history)
    assert len(statements) > 10
    assert scans(path, statements) == []


def test_a_series_is_read_from_indexes(path: Path) -> None:
    with (
        recorded_statements() as statements,
        open_store(path) as store,
        store.database.reading() as connection,
    ):
        read_timeline(connection, InventoryFilter("db1", "write-heavy", NEW, "insert", "qps"))
    assert scans(path, statements) == []


def test_all_series_are_counted_in_one_query(path: Path) -> None:
    with (
        open_store(path) as store,
        store.database.reading() as connection,
        recorded_statements() as statements,
    ):
        held = list_series(connection, InventoryFilter(branch=NEW, metric="qps"))
    assert {key.step: count for key, count in held} == {"update-index": 4, "update-one": 4, "insert": 4}
    assert len(statements) == 1
    assert [scan for scan in scans(path, statements) if not scan.startswith("SCAN series")] == []


def test_what_there_is_instead_is_looked_for_in_the_last_sessions_only(path: Path) -> None:
    with recorded_statements() as statements, open_reader(path) as history:
        nothing_in_common(history)
    found = scans(path, statements)
    assert {step.partition(":")[0] for step in found} <= {
        "SCAN sessions USING COVERING INDEX sessions_by_start"  # of which a hundred are taken
    }


def test_a_scan_is_seen(path: Path) -> None:
    assert scans(path, [("SELECT value FROM points WHERE value > 1", ())])
    assert scans(path, [("SELECT id FROM runs WHERE step = 'x'", ())])
