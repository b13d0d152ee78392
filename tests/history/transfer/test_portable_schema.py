"""Every table and column of the schema travels, or is said not to."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from sqlalchemy import TableClause, Text, column, table

from history.open import open_store
from history.store import schema
from history.transfer.portable_schema import LOCAL, PORTABLE, FieldKind, PortableField

TABLES = [var for var in vars(schema).values() if isinstance(var, TableClause)]


def test_every_table_travels_or_is_said_not_to() -> None:
    assert {table.name for table in TABLES} == {*PORTABLE, *LOCAL}


def test_a_new_column_travels() -> None:
    wider = table("runs", *(column(known.name, known.type) for known in schema.runs.c), column("pace", Text))
    assert replace(PORTABLE["runs"], table=wider).fields["pace"] == PortableField("pace", FieldKind.TEXT)


def test_no_id_of_this_database_travels() -> None:
    """An id means something in one database only; these two are the machine's."""
    ids = {name for portable in PORTABLE.values() for name in portable.columns if name.endswith("_id")}
    assert ids == {"process_id", "boot_id"}


def test_a_question_mark_is_at_what_may_be_null(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    open_store(path).close()
    with closing(sqlite3.connect(path)) as connection:
        for name in (*PORTABLE, "task_states"):
            rows = connection.execute(f"PRAGMA table_info({name})")
            nullable = {row[1] for row in rows if not row[3] and not row[5]}
            assert nullable == schema.NULLABLE[name], name


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
        "notices.happened_at",
        "bisects.began_at",
        "bisect_events.happened_at",
    }
