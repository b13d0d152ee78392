"""Errors of a history, and explanations of the messages of its database."""

from build.errors import TidemarkError


class HistoryError(TidemarkError):
    """The history cannot be opened, read or written."""


class RecordError(HistoryError):
    """The record contradicts the history or its constraints; nothing of it was written."""


_LOCKED = ("another process holds a lock on the history", "wait for it to end, then try again")

# Part of the database's message, its meaning, what to do. The texts are SQLite's own (sqlite3_errstr), except
# Postgres' lock timeout.
_EXPLANATIONS = (
    ("malformed", "the history is damaged", "restore it from a backup, or move it aside"),
    ("not a database", "the file is not a SQLite database", "name another history, or move the file aside"),
    ("is locked", *_LOCKED),
    ("due to lock timeout", *_LOCKED),
    ("disk is full", "no space left for the history", "free some disk space; earlier records are intact"),
    ("readonly", "the history is not writable", "check its owner and the permissions of its folder"),
    ("unable to open", "the history cannot be opened", "check its path and the permissions of its folder"),
)


def database_error(message: str, where: str) -> HistoryError:
    """Return the error that explains a message of the database at `where`."""
    what, hint = next(
        ((what, hint) for key, what, hint in _EXPLANATIONS if key in message),
        ("the database reported an error", "see its message"),
    )
    return HistoryError(f"{what}: {message}", where=where, hint=hint)
