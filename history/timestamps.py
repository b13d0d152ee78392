"""Timestamps of the history: ISO-8601 in UTC with milliseconds, so that text sorts by time."""

import argparse
import re
from datetime import UTC, datetime, timedelta

from history.errors import DamagedTextError

_MONTH = re.compile(r"\d{4}-\d{2}")


def to_text(moment: datetime) -> str:
    """Return a time as `2026-03-01T02:00:00.000Z`. Raises ValueError without a time zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """Return the time, with its time zone, that `to_text` wrote; raise DamagedTextError for other texts."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError) as error:
        raise DamagedTextError(f"{ascii(text)[:60]} is not a time") from error
    raise DamagedTextError(f"{ascii(text)[:60]} is a time without a time zone")


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def moment_of(text: str) -> datetime:
    """Return the time of `2025-11`, `2025-11-05`, or an ISO-8601 text, in UTC unless it names a time zone.

    Raises ValueError for any other text.
    """
    written = text.strip()
    try:
        moment = datetime.fromisoformat(f"{written}-01" if _MONTH.fullmatch(written) else written)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        message = f"'{text}' is not a date: write 2025-11, 2025-11-05 or 2025-11-05T02:00:00Z"
        raise ValueError(message) from error


def moment(text: str) -> datetime:
    """Return the time of a date or time as `moment_of` reads it, or of a number of days ago, such as `30d`.

    It is the `type` of command-line arguments: raises ArgumentTypeError for anything else.
    """
    days = text.removesuffix("d")
    try:
        return now() - timedelta(days=int(days)) if days != text else moment_of(text)
    except (ValueError, OverflowError) as error:
        message = f"'{text}' is neither a date such as 2025-11-05 nor a number of days such as 30d"
        raise argparse.ArgumentTypeError(message) from error
