"""Headers with which a tracker asks for a pause of ten minutes."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

LATER = {"Retry-After": "600"}


def retry_date() -> dict[str, str]:
    """The end of the pause as a date (RFC 9110, 10.2.3)."""
    return {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)}
