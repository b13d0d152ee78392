"""The tables as used in queries. They are defined in migrations/ and documented in docs/schema.md.

A column that may be null has a question mark behind its name. Exports take the columns from here.
"""

import re

from sqlalchemy import (
    BigInteger,
    Dialect,
    Float,
    LargeBinary,
    TableClause,
    Text,
    TypeDecorator,
    column,
    table,
)

from history.escaping.characters import REPLACED

_NOT_STORED = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return a text as a database takes it, with REPLACED for what none does.

    That is NUL, which a log can hold after a crash, and halves of a surrogate pair, which are no UTF-8.
    """
    return _NOT_STORED.sub(REPLACED, text)


class StoredText(TypeDecorator[str]):
    """A text, of which `storable` is written, whoever writes it."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return what is written for a value."""
        return storable(value) if isinstance(value, str) else value


NULLABLE: dict[str, frozenset[str]] = {}
"""Table -> its columns that may be null."""


def _table(
    name: str, *, texts: str = "", integers: str = "", reals: str = "", blobs: str = ""
) -> TableClause:
    typed = ((integers, BigInteger), (texts, StoredText), (reals, Float), (blobs, LargeBinary))
    words = [(word, kind) for names, kind in typed for word in names.split()]
    NULLABLE[name] = frozenset(word.rstrip("?") for word, _ in words if word.endswith("?"))
    return table(name, *(column(word.rstrip("?"), kind) for word, kind in words))


schema_migrations = _table("schema_migrations", integers="number", texts="name applied_at")

machines = _table(
    "machines",
    integers="id cores memory_bytes",
    texts="fingerprint hostname cpu_model kernel operating_system details",
)

sessions = _table(
    "sessions",
    integers="id machine_id seed repetitions process_id process_start_ticks",
    texts="uid suite profile suite_digest durability started_at ended_at? status command tools options"
    " boot_id",
)

builds = _table(
    "builds", integers="id", texts="key engine release source_kind source_digest compiler manifest"
)

configurations = _table("configurations", integers="id", texts="digest settings")

runs = _table(
    "runs",
    integers="id session_id build_id configuration_id? step_position repetition position",
    texts="version step status failure? warnings started_at ended_at",
)

metrics = _table("metrics", texts="name unit better description")

measurements = _table("measurements", integers="run_id", texts="metric", reals="value")

kinds = _table("kinds", integers="run_id", texts="kind metric", reals="value")

activities = _table("activities", integers="run_id first_second last_second", texts="activity")

samples = _table("samples", integers="run_id second", reals="qps")

dropped_rounds = _table(
    "dropped_rounds",
    integers="id session_id repetition",
    texts="step dropped_at reason measured",
)

calibrations = _table(
    "calibrations",
    integers="session_id rounds",
    texts="step metric",
    reals="sd degrees_of_freedom",
)

profiles = _table(
    "profiles", integers="run_id lost", texts="event", reals="frequency queries", blobs="stacks"
)

wait_profiles = _table("wait_profiles", integers="run_id", reals="frequency queries", blobs="stacks")

counted_profiles = _table("counted_profiles", integers="run_id", reals="queries", blobs="stacks calls")

nights = _table(
    "nights",
    integers="session_id build_id? is_base",
    texts="branch version box suite configuration started_at",
)

series = _table("series", integers="id step_position", texts="box suite configuration branch step metric")

points = _table("points", integers="series_id session_id", reals="value")

gaps = _table("gaps", integers="session_id", texts="branch step reason")

changes = _table(
    "changes", integers="id", texts="fingerprint branch suite direction status reason? found_at updated_at"
)

change_series = _table(
    "change_series",
    integers="change_id series_id last_before_id first_after_id raised_id gone_id?",
    reals="level_before level_after ratio_low ratio_high confidence",
)

acknowledgements = _table(
    "acknowledgements", integers="change_id", texts="happened_at kind who reason until?"
)

change_owners = _table("change_owners", integers="change_id place is_assignee", texts="account rule")

mutings = _table(
    "mutings", integers="change_id is_outgrown?", texts="rule reason until muted_at ended_at? ended_why?"
)

mutes = _table("mutes", texts="rule until since matched_at? told_at?")

confirmations = _table(
    "confirmations",
    integers="session_id series_id before_id after_id rounds",
    texts="question finding",
    reals="level_before ratio ratio_low ratio_high confidence",
)

alerts = _table(
    "alerts",
    integers="id issue? attempts asked_after?",
    texts="fingerprint nonce kind title body wanted closing closed_as? seen_at? members? within? silenced?"
    " issue_state? sent_digest? sent_title? sent_body? asked_state? repository? resolved_at? unmuted_at?"
    " assignee? assigned?"
    " last_error? not_before? created_at updated_at",
)

notices = _table("notices", integers="id number", texts="subject kind occasion text happened_at waiting?")

bisects = _table("bisects", integers="id machine_id", texts="uid question span change_fingerprint? began_at")

bisect_events = _table(
    "bisect_events", integers="bisect_id number", texts="kind session_uid? detail happened_at"
)

task_states = _table(
    "task_states",
    texts="box suite configuration tracked hostname version? outcome reason since checked_at fetched_at?",
)

relative_qps = _table(
    "relative_qps",
    integers="session_id repetition",
    texts="step base_version contender_version",
    reals="base_qps contender_qps relative_qps",
)
