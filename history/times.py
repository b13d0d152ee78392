"""Times as the history writes them: ISO-8601 in UTC with milliseconds, so that text order is time order."""

from datetime import UTC, datetime


def to_text(moment: datetime) -> str:
    """`2026-03-01T02:00:00.000Z`. Raises ValueError for a moment without a time zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """The aware moment that `to_text` wrote."""
    return datetime.fromisoformat(text)


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)
