"""A history with a hostile text in every column of texts, made of a whole one: what is equal stays equal.

The columns are those of the schema, so that a new one is hostile from its first day. Those of STRUCTURED are
read as something other than text: what they hold is tried one by one.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import TableClause

from history.changes import repository
from history.open import open_store
from history.store import schema
from history.store.profiles import packed, unpacked
from tests.history.handmade import NIGHT
from tests.report.rich import RichHistory, record_bisect

FORMULA = "=1+"
INJECTED = "INJECTED"
TAIL = (
    "\x1b[31m\x1b]8;;http://evil.example\x1b\\x\x9b2J\x07\x00\x7f\x85\u202e\u2066\u200b\u200c\ufeff\u2028"
    f"\r\n::add-mask::{INJECTED}\n{INJECTED}\n# {INJECTED}\n- {INJECTED}\n  to do: {INJECTED}\n"
    " <img src=x onerror=alert(1)> </details><!-- --> @team/x é@team me@evil.example #12 GH-12 owner/repo#12"
    " [a](http://evil.example) ![b](x) www.evil.example `c` | d **e** _f_ ~g~ $h$ [bold]i[/nope] 'j' \"k\" \\"
)

STRUCTURED = {
    "schema_migrations": {"name", "applied_at"},
    "metrics": {"name", "unit", "better", "description"},
    "machines": set[str](),
    "sessions": {"started_at", "ended_at", "status"},
    "runs": {"version", "status", "started_at", "ended_at"},
    "measurements": {"metric"},
    "kinds": {"metric"},
    "dropped_rounds": {"dropped_at"},
    "calibrations": {"metric"},
    "nights": {"version", "started_at"},
    "series": {"metric"},
    "changes": {"direction", "status", "found_at", "updated_at"},
    "acknowledgements": {"happened_at", "kind", "until"},
    "mutings": {"until", "muted_at", "ended_at"},
    "mutes": {"until", "since", "matched_at", "told_at"},
    "confirmations": {"question", "finding"},
    "alerts": {"kind", "wanted", "closed_as", "seen_at", "issue_state", "asked_state", "resolved_at"}
    | {"unmuted_at", "not_before", "created_at", "updated_at"},
    "notices": {"kind", "happened_at"},
    "bisects": {"began_at"},
    "bisect_events": {"kind", "happened_at"},
    "task_states": {"version", "outcome", "since", "checked_at", "fetched_at"},
    "relative_qps": {"step", "base_version", "contender_version"},
}
"""Columns with times, numbers of versions, and words of which there are few."""

PLAIN = re.compile(r"-?[0-9.]+|[a-z]+@[\w.:#~-]+|\d{4}-\d\d-\d\d.*")
"""Texts within JSON that are numbers, versions or times."""

KEPT_KEYS = {"mode", "status", "verdict", "kind", "direction", "metric", "engine", "question", "branches"}
"""Keys within JSON whose values are read as something other than text."""


def hostile(text: str) -> str:
    """Return the hostile text that stands for a text."""
    return f"{FORMULA}{text}{TAIL}"


def write_history(path: Path) -> None:
    """Write a history with something of everything."""
    RichHistory(path).write()
    with open_store(path) as store, store.database.reading() as connection:
        fingerprint = repository.load(connection)[0].fingerprint
    record_bisect(path, fingerprint, NIGHT + timedelta(days=200))


def columns() -> Iterator[tuple[str, str]]:
    """Return the columns of texts of every table."""
    for table in vars(schema).values():
        if isinstance(table, TableClause):
            yield from (
                (table.name, column.name)
                for column in table.columns
                if isinstance(column.type, schema.StoredText)
            )


def make_hostile(path: Path) -> None:
    """Put a hostile text into every column of texts that is not STRUCTURED, and into all functions.

    As the store writes it, which puts another character in the place of NUL.
    """

    def spoiled(text: str | None) -> str | None:
        found = _hostile_value(text)
        return found if found is None else schema.storable(found)

    with sqlite3.connect(path) as connection:
        connection.create_function("hostile", 1, spoiled, deterministic=True)
        connection.create_function("hostile_stacks", 1, _hostile_stacks, deterministic=True)
        connection.execute("PRAGMA foreign_keys = OFF")
        for table, column in columns():
            if column not in STRUCTURED.get(table, ()):
                connection.execute(f"UPDATE {table} SET {column} = hostile({column})")
        for table in ("profiles", "counted_profiles"):
            connection.execute(f"UPDATE {table} SET stacks = hostile_stacks(stacks)")


def _hostile_value(text: str | None) -> str | None:
    if text is None:
        return None
    if text[:1] not in ("{", "["):
        return hostile(text)
    return json.dumps(_hostile_json(json.loads(text)))


def _hostile_json(value: Any) -> Any:
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) else hostile(value)
    if isinstance(value, list):
        return [_hostile_json(item) for item in value]
    if isinstance(value, dict):
        return {key: item if key in KEPT_KEYS else _hostile_json(item) for key, item in value.items()}
    return value


def _hostile_stacks(content: bytes) -> bytes:
    stacks = unpacked(content).items()
    return packed({";".join(map(hostile, name.split(";"))): count for name, count in stacks})
