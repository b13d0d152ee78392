"""What of each table travels: its columns, with ids, which mean something in one database only, as names.

A row that travels is an object of fields. A column that holds another table's id becomes the fields that
name that table's row, its key: a measurement's `run_id` becomes session, version, step and repetition.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from sqlalchemy import Float, Integer, LargeBinary, TableClause

from history.store import schema

Row = dict[str, Any]
"""Field -> value."""

Key = tuple[Any, ...]
"""The values of a row's key, in the order of its table's."""


class FieldKind(StrEnum):
    """What a field holds."""

    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"
    BYTES = "bytes"
    OBJECT = "JSON object"
    ARRAY = "JSON array"
    TIME = "time"
    VERSION = "version"


_KINDS = {
    **dict.fromkeys(
        ("details", "tools", "options", "manifest", "settings", "measured", "question", "span", "detail"),
        FieldKind.OBJECT,
    ),
    "warnings": FieldKind.ARRAY,
    "not_before": FieldKind.TIME,
    "version": FieldKind.VERSION,
}

PLACE = "place"
"""Of a dropped round: which one of its session it is, from 1. It has no other name."""


@dataclass(frozen=True)
class PortableField:
    """One value of a row."""

    name: str
    kind: FieldKind
    optional: bool = False
    """Whether it may be null."""


@dataclass(frozen=True)
class Reference:
    """A column that holds an id, and the fields that travel instead: the key of the row it points to."""

    column: str
    target: str
    fields: tuple[str, ...]
    optional: bool = False


@dataclass(frozen=True)
class Portable:
    """One table."""

    table: TableClause
    key: tuple[str, ...]
    """The fields that name a row; unique."""

    references: tuple[Reference, ...]
    immutable: bool
    """Whether two histories that hold a row of one key must agree on all of it. Not of what is derived or
    described, which another Tidemark may have derived otherwise, or a person changed."""

    @property
    def name(self) -> str:
        """Of the table."""
        return self.table.name

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns that travel as they are: all but ids."""
        ids = {"id", *(reference.column for reference in self.references)}
        return tuple(column.name for column in self.table.c if column.name not in ids)

    @cached_property
    def of_session(self) -> bool:
        """Whether each row belongs to one session, which its field `session` names."""
        return any(reference.fields[0] == "session" for reference in self.references)

    @cached_property
    def fields(self) -> Mapping[str, PortableField]:
        """By name, in the order in which they are written: the key first."""
        nullable = schema.NULLABLE[self.name]
        found = {name: PortableField(name, self._kind(name), name in nullable) for name in self.columns}
        if self.name == "dropped_rounds":
            found[PLACE] = PortableField(PLACE, FieldKind.INTEGER)
        for reference in self.references:
            target = PORTABLE[reference.target]
            for name, target_key in zip(reference.fields, target.key, strict=True):
                found[name] = PortableField(name, target.fields[target_key].kind, reference.optional)
        return {
            name: found[name] for name in (*self.key, *(field for field in found if field not in self.key))
        }

    def key_of(self, row: Row) -> Key:
        """The name of a row."""
        return tuple(row[name] for name in self.key)

    def _kind(self, name: str) -> FieldKind:
        kind = self.table.c[name].type
        for sql_type, field_kind in (
            (Integer, FieldKind.INTEGER),
            (Float, FieldKind.REAL),
            (LargeBinary, FieldKind.BYTES),
        ):
            if isinstance(kind, sql_type):
                return field_kind
        if name == "version" and self.name not in ("runs", "nights"):
            return FieldKind.TEXT
        if (self.name, name) == ("confirmations", "question"):  # that of a bisect is an object
            return FieldKind.TEXT
        return FieldKind.TIME if name.endswith("_at") else _KINDS.get(name, FieldKind.TEXT)


_RUN = Reference("run_id", "runs", ("session", "version", "step", "repetition"))
_SESSION = Reference("session_id", "sessions", ("session",))
_BUILD = Reference("build_id", "builds", ("build",))
_SERIES_KEY = ("box", "suite", "configuration", "branch", "step", "metric")
_SERIES = Reference("series_id", "series", _SERIES_KEY)


def _portable(table: TableClause, key: str, *references: Reference, immutable: bool = False) -> Portable:
    nullable = schema.NULLABLE[table.name]
    found = tuple(replace(reference, optional=reference.column in nullable) for reference in references)
    return Portable(table, tuple(key.split()), found, immutable)


_ALL = (
    _portable(schema.metrics, "name"),
    _portable(schema.machines, "fingerprint"),
    _portable(schema.builds, "key"),
    _portable(schema.configurations, "digest"),
    _portable(schema.series, " ".join(_SERIES_KEY)),
    _portable(schema.sessions, "uid", Reference("machine_id", "machines", ("machine",)), immutable=True),
    _portable(
        schema.runs,
        "session version step repetition",
        _SESSION,
        _BUILD,
        Reference("configuration_id", "configurations", ("configuration",)),
        immutable=True,
    ),
    _portable(schema.measurements, "session version step repetition metric", _RUN, immutable=True),
    _portable(schema.kinds, "session version step repetition kind metric", _RUN, immutable=True),
    _portable(schema.samples, "session version step repetition second", _RUN, immutable=True),
    _portable(
        schema.activities, "session version step repetition activity first_second", _RUN, immutable=True
    ),
    _portable(schema.profiles, "session version step repetition", _RUN, immutable=True),
    _portable(schema.wait_profiles, "session version step repetition", _RUN, immutable=True),
    _portable(schema.counted_profiles, "session version step repetition", _RUN, immutable=True),
    _portable(schema.dropped_rounds, f"session {PLACE}", _SESSION, immutable=True),
    _portable(schema.calibrations, "session step metric", _SESSION, immutable=True),
    _portable(schema.nights, "session branch", _SESSION, _BUILD),
    _portable(schema.points, " ".join((*_SERIES_KEY, "session")), _SESSION, _SERIES),
    _portable(schema.gaps, "session branch step", _SESSION),
    _portable(
        schema.confirmations,
        " ".join(("session", *_SERIES_KEY)),
        _SESSION,
        _SERIES,
        Reference("before_id", "sessions", ("before",)),
        Reference("after_id", "sessions", ("after",)),
    ),
    _portable(schema.changes, "fingerprint"),
    _portable(
        schema.change_series,
        " ".join(("change", *_SERIES_KEY)),
        Reference("change_id", "changes", ("change",)),
        _SERIES,
        Reference("last_before_id", "sessions", ("last_before",)),
        Reference("first_after_id", "sessions", ("first_after",)),
        Reference("raised_id", "sessions", ("raised",)),
        Reference("gone_id", "sessions", ("gone",)),
    ),
    _portable(schema.acknowledgements, "change happened_at", Reference("change_id", "changes", ("change",))),
    _portable(schema.alerts, "fingerprint"),
    _portable(schema.notices, "subject number"),
    _portable(schema.bisects, "uid", Reference("machine_id", "machines", ("machine",))),
    # Sessions by their uid: a bisect can travel while its last session still runs.
    _portable(schema.bisect_events, "bisect number", Reference("bisect_id", "bisects", ("bisect",))),
)

PORTABLE: Mapping[str, Portable] = {portable.name: portable for portable in _ALL}
"""By name, in the order in which they travel: what is named comes before what names it."""

LOCAL = {
    "schema_migrations": "each database has its own",
    "relative_qps": "a view",
    "task_states": "the next night of each box finds them anew",
    "change_owners": "the next report finds them anew, by the plan",
    "mutings": "the next report finds them anew, by the plan",
    "mutes": "the next report finds them anew, by the plan",
}
"""What does not travel, and why."""

PROGRESS = ("status", "ended_at")
"""Fields of a session that say how far it came: those of a copy made while it ran differ."""


_BEFORE = ("metrics", "machines", "builds", "configurations", "series")


def before_sessions() -> Iterator[Portable]:
    """The tables that sessions and their rows name."""
    yield from (PORTABLE[name] for name in _BEFORE)


def of_sessions() -> Iterator[Portable]:
    """The tables whose rows belong to one session."""
    yield from (portable for portable in _ALL if portable.of_session)


def after_sessions() -> Iterator[Portable]:
    """The tables that name several sessions, or none."""
    others = (*_BEFORE, "sessions")
    yield from (portable for portable in _ALL if not portable.of_session and portable.name not in others)
