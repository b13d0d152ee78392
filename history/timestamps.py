"""Times as the history writes them: ISO-8601 in UTC with milliseconds, so that text order is time order."""

import argparse
import re
from datetime import UTC, datetime, timedelta

from history.errors import DamagedTextError

_MONTH = re.compile(r"\d{4}-\d{2}")


def to_text(moment: datetime) -> str:
    """`2026-03-01T02:00:00.000Z`. Raises ValueError for a moment without a time zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """The aware moment that `to_text` wrote. Raises DamagedTextError for anything else."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError) as error:
        raise DamagedTextError(f"{ascii(text)[:60]} is not a time") from error
    raise DamagedTextError(f"{ascii(text)[:60]} is a time without its zone")


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


def moment_of(text: str) -> datetime:
    """`2025-11`, `2025-11-05`, or an ISO-8601 time, which is in UTC when it names no zone.

    Raises ValueError.
    """
    written = text.strip()
    try:
        moment = datetime.fromisoformat(f"{written}-01" if _MONTH.fullmatch(written) else written)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"'{text}' is no date: write 2025-11, 2025-11-05 or 2025-11-05T02:00:00Z") from error


def moment(text: str) -> datetime:
    """A date or time as `moment_of` reads it, or so many days ago, such as `30d`.

    A type of arguments: raises argparse's error for anything else.
    """
    days = text.removesuffix("d")
    try:
        return now() - timedelta(days=int(days)) if days != text else moment_of(text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"'{text}' is neither a date nor days, such as 30d") from error
