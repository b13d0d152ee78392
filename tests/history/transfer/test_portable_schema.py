"""Every table and column of the schema travels, or is said not to."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import TableClause

from history.open import open_store
from history.store import schema
from history.transfer.portable_schema import LOCAL, PORTABLE, FieldKind, Portable

TABLES = [var for var in vars(schema).values() if isinstance(var, TableClause)]


def uncovered(table: TableClause, portable: Portable) -> set[str]:
    """Columns that neither travel nor are replaced by the name of what they point to."""
    covered = {*portable.columns, *(reference.column for reference in portable.references), "id"}
    return set(table.c.keys()) - covered


def test_every_table_travels_or_is_said_not_to() -> None:
    assert {table.name for table in TABLES} == {*PORTABLE, *LOCAL}


@pytest.mark.parametrize(
    "table",
    [candidate for candidate in TABLES if candidate.name in PORTABLE],
    ids=lambda portable: portable.name,
)
def test_every_column_travels(table: TableClause) -> None:
    portable = PORTABLE[table.name]
    assert portable.table is table
    assert not uncovered(table, portable)
    assert not [
        name for name in portable.columns if name.endswith("_id") and name not in ("process_id", "boot_id")
    ]


def test_a_column_that_is_forgotten_is_seen() -> None:
    machines = PORTABLE["machines"]
    forgetful = Portable(
        machines.table, machines.key, machines.columns[1:], machines.optional, machines.references, False
    )
    assert uncovered(schema.machines, forgetful) == {"fingerprint"}


def test_optional_is_what_may_be_null(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        for portable in PORTABLE.values():
            nullable = {
                row[1]
                for row in connection.execute(f"PRAGMA table_info({portable.name})")
                if not row[3] and not row[5]
            }
            references = {reference.column for reference in portable.references if reference.optional}
            assert portable.optional | references == nullable, portable.name


def test_keys_are_unique_in_the_database(tmp_path: Path) -> None:
    """What names a row names one; but for dropped rounds, which are counted."""
    path = tmp_path / "history.db"
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        for portable in PORTABLE.values():
            if portable.name == "dropped_rounds":
                continue
            local = {name for name in portable.key if name in portable.table.c}
            local |= {
                reference.column
                for reference in portable.references
                if set(reference.fields) <= set(portable.key)
            }
            assert local in _unique(connection, portable.name), portable.name


def _unique(connection: sqlite3.Connection, table: str) -> list[set[str]]:
    indexes = [row[1] for row in connection.execute(f"PRAGMA index_list({table})") if row[2]]
    found = [{row[2] for row in connection.execute(f"PRAGMA index_info({name})")} for name in indexes]
    key = {row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5]}
    return [*found, key]


def test_what_is_named_travels_first() -> None:
    order = list(PORTABLE)
    for portable in PORTABLE.values():
        for reference in portable.references:
            assert order.index(reference.target) < order.index(portable.name)


def test_fields_have_the_kinds_that_readers_rely_on() -> None:
    kinds = {
        f"{table}.{name}": field.kind
        for table, portable in PORTABLE.items()
        for name, field in portable.fields.items()
    }
    assert kinds["runs.version"] is FieldKind.VERSION
    assert kinds["measurements.version"] is FieldKind.VERSION
    assert kinds["profiles.stacks"] is FieldKind.BYTES
    assert kinds["sessions.options"] is FieldKind.OBJECT
    assert kinds["runs.warnings"] is FieldKind.ARRAY
    assert kinds["nights.is_base"] is FieldKind.INTEGER
    assert {name for name, kind in kinds.items() if kind is FieldKind.TIME} == {
        "sessions.started_at",
        "sessions.ended_at",
        "runs.started_at",
        "runs.ended_at",
        "dropped_rounds.dropped_at",
        "changes.found_at",
        "changes.updated_at",
        "nights.started_at",
        "acknowledgements.happened_at",
        "alerts.created_at",
        "alerts.updated_at",
        "alerts.not_before",
        "alerts.seen_at",
        "alerts.resolved_at",
        "alerts.unmuted_at",
        "bisects.began_at",
        "bisect_events.happened_at",
        "pool_boxes.seen_at",
        "pool_boxes.missed_at",
        "pool_boxes.left_at",
        "placements.placed_at",
    }
