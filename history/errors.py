"""What can be wrong with a history, and what its database's own words mean."""

from build.errors import TidemarkError


class HistoryError(TidemarkError):
    """The history cannot be opened, read or written."""


class RecordError(HistoryError):
    """What was to be recorded contradicts the history or its rules; nothing of it was written."""


_LOCKED = ("another process keeps the history locked", "wait for it to end, then try again")

# What the database says, what that means, what to do. The texts are SQLite's own (sqlite3_errstr) but for
# Postgres' lock timeout.
_EXPLANATIONS = (
    ("malformed", "the history is damaged", "restore it from a backup, or move it aside"),
    ("not a database", "the file is not a SQLite database", "name another history, or move the file aside"),
    ("is locked", *_LOCKED),
    ("due to lock timeout", *_LOCKED),
    ("disk is full", "no room left for the history", "free some space; what was recorded before is safe"),
    ("readonly", "the history may not be written", "check its owner and the rights on its folder"),
    ("unable to open", "the history cannot be opened", "check its path and the rights on its folder"),
)


def refusal(said: str, where: str) -> HistoryError:
    """The error for what a database said that has refused something."""
    what, hint = next(
        ((what, hint) for key, what, hint in _EXPLANATIONS if key in said),
        ("the database refused", "see its message"),
    )
    return HistoryError(f"{what}: {said}", where=where, hint=hint)
