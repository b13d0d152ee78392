"""Errors of a history, and explanations of the messages of its database."""

from collections.abc import Mapping
from typing import Any

from build.errors import TidemarkError
from build.files import json_value
from build.version import Version, VersionError, parse_version

RESTORE = "restore a backup: ./tidemark history restore FILE (docs/history.md)"
"""What to do about a damaged history."""


class HistoryError(TidemarkError):
    """The history cannot be opened, read or written."""


class RecordError(HistoryError):
    """The record contradicts the history or its constraints; nothing of it was written."""


class NewerSchemaError(HistoryError):
    """A newer Tidemark has brought the history to a schema that this one does not know."""


class LockedError(HistoryError):
    """Another process writes to the history, and did not end in time."""


class DamagedTextError(HistoryError):
    """A text in the history is not what Tidemark wrote there, such as options that are no JSON."""

    def __init__(self, reason: str) -> None:
        """`reason` says which text is damaged, and how."""
        super().__init__(f"the history is damaged: {reason}", hint=RESTORE)
        self.reason = reason


def stored_object(text: object) -> dict[str, Any]:
    """Parse a JSON object of the history. Raises DamagedTextError."""
    kept = _stored(text)
    if not isinstance(kept, dict):
        raise DamagedTextError(f"{_short(text)} is not a JSON object")
    return kept


def stored_list(text: object) -> list[Any]:
    """Parse a JSON array of the history. Raises DamagedTextError."""
    kept = _stored(text)
    if not isinstance(kept, list):
        raise DamagedTextError(f"{_short(text)} is not a JSON array")
    return kept


def stored_version(text: str) -> Version:
    """Parse a version of the history. Raises DamagedTextError."""
    try:
        return parse_version(text)
    except VersionError as error:
        raise DamagedTextError(f"{_short(text)} is not a version") from error


_OPTIONS: Mapping[str, tuple[type, ...]] = {
    "versions": (list,),
    "branches": (dict,),
    "mode": (str,),
    "seconds": (int, float),
    "rounds": (dict,),
    "settings": (dict,),
    "groups": (dict,),
    "not_built": (dict,),
    "failed": (dict,),
    "machine_changed": (list,),
    "bisect": (str,),
    "left_out": (list,),
    "layouts": (dict,),
    "memory": (str,),
    "reclaim": (str,),
    "warmed_up": (dict,),
}
"""The JSON types of a session's options that Tidemark itself reads again."""

_TEXTS = ("versions", "machine_changed", "left_out")
"""Options that are lists of texts."""


def stored_options(text: object) -> dict[str, Any]:
    """Parse the options of a session. Raises DamagedTextError, also for one that is not of its type."""
    options = stored_object(text)
    for name, kinds in _OPTIONS.items():
        value = options.get(name)
        wrong = value is not None and (not isinstance(value, kinds) or isinstance(value, bool))
        if wrong or (name in _TEXTS and not all(isinstance(word, str) for word in value or ())):
            raise DamagedTextError(f"the option {name} of a session is {_short(value)}")
    for name, value in (options.get("rounds") or {}).items():
        if type(value) is float or not isinstance(value, int) or not 0 <= value < 2**31:
            raise DamagedTextError(f"the option rounds of a session has {name} = {_short(value)}")
    return options


def _stored(text: object) -> Any:
    try:
        return json_value(text) if isinstance(text, str | bytes) else None
    except ValueError as error:
        raise DamagedTextError(f"{_short(text)} is not JSON") from error


def _short(text: object) -> str:
    return ascii(text)[:60]


_FULL = ("no space left for the history", "free some disk space; earlier records are intact")
_AWAY = ("the server of the history is not there", "check that it runs, and the network to it")
_TAKEN = (
    "the server of the history has no connection left",
    "raise max_connections, or put a pooler in front of it",
)
_LOCKED = ("another process holds a lock on the history", "wait for it to end, then try again")

# Part of the database's message, its meaning, what to do. The texts are SQLite's own (sqlite3_errstr), except
# what a Postgres server and libpq say (src/backend/utils/errcodes.txt has where).
_EXPLANATIONS = (
    ("Could not decode", "the history is damaged", RESTORE),
    ("malformed", "the history is damaged", RESTORE),
    ("not a database", "the file is not a SQLite database", "name another history, or move the file aside"),
    ("is locked", *_LOCKED),
    ("due to lock timeout", *_LOCKED),
    ("disk is full", *_FULL),
    ("No space left on device", *_FULL),
    ("could not extend file", *_FULL),
    ("File too large", *_FULL),
    ("too many clients", *_TAKEN),
    ("too many connections", *_TAKEN),
    ("no more connections allowed", *_TAKEN),
    ("remaining connection slots", *_TAKEN),
    (
        "read-only transaction",
        "the server of the history is a standby",
        "name the primary, or promote this one; target_session_attrs=read-write chooses among several hosts",
    ),
    (
        "statement pooling mode",
        "the pooler in front of the history allows no transactions",
        "set pool_mode = transaction, or session, for this database",
    ),
    ("readonly", "the history is not writable", "check its owner and the permissions of its folder"),
    ("connection failed", *_AWAY),
    ("connection to server", *_AWAY),
    ("server closed the connection", *_AWAY),
    ("terminating connection", *_AWAY),
    ("connection timeout", *_AWAY),
    ("connection is lost", *_AWAY),
    ("consuming input failed", *_AWAY),
    ("is shutting down", *_AWAY),
    ("is starting up", *_AWAY),
    ("in recovery mode", *_AWAY),
    ("unable to open", "the history cannot be opened", "check its path and the permissions of its folder"),
)


def database_error(message: str, where: str) -> HistoryError:
    """Return the error that explains a message of the database at `where`."""
    what, hint = next(
        ((what, hint) for key, what, hint in _EXPLANATIONS if key in message),
        ("the database reported an error", "see its message"),
    )
    kind = LockedError if what == _LOCKED[0] else HistoryError
    return kind(f"{what}: {message}", where=where, hint=hint)


class ComparisonError(TidemarkError):
    """The history does not have what is to be compared."""
