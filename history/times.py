"""Times as the history writes them: ISO-8601 in UTC with milliseconds, so that text order is time order."""

import argparse
from datetime import UTC, datetime, timedelta


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


def moment(text: str) -> datetime:
    """A date or time, in UTC unless it says otherwise, or so many days ago: `2026-11-01`, `30d`.

    A type of arguments: raises argparse's error for anything else.
    """
    days = text.removesuffix("d")
    try:
        if days != text:
            return now() - timedelta(days=int(days))
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"'{text}' is neither a date nor days, such as 30d") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
