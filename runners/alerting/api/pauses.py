"""How long a tracker wants to be left alone, and how far its clock is from ours."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from runners.alerting.api.dialect import ApiAnswer, ApiDialect

WAIT_SECONDS = 60
"""How long to wait when a tracker asks for a pause without saying how long: as GitHub's documents advise."""

LONGEST_WAIT_HOURS = 24
"""The longest pause that is believed: limits are counted by the minute or the hour."""

LARGEST_DIFFERENCE = timedelta(days=3650)
"""Between two clocks that are believed."""

_RATE_LIMITED = (403, 429)

TRY_AGAIN = (408, 409, 425, 429)


def requested_pause(dialect: ApiDialect, answer: ApiAnswer, message: str) -> timedelta | None:
    """How long a client is asked to wait; None when it is not asked to.

    It is said in `retry-after`, also by a server that is down for maintenance, in seconds or as a date (RFC
    9110, 10.2.3); or by headers that say when there are more requests again.
    """
    if answer.status < 500 and answer.status not in (*_RATE_LIMITED, *TRY_AGAIN):
        return None
    headers = answer.headers
    wait = _retry_after(headers.get("retry-after", ""), headers.get("date", ""))
    if wait is None and answer.status in _RATE_LIMITED and headers.get(dialect.remaining) == "0":
        reset = headers.get(dialect.reset, "")
        if re.fullmatch(r"[0-9]{1,12}", reset):
            wait = timedelta(seconds=int(reset) - datetime.now(UTC).timestamp())
    if wait is None and is_limit(dialect, answer.status, message):
        wait = timedelta(seconds=WAIT_SECONDS)
    return None if wait is None else min(max(wait, timedelta(0)), timedelta(hours=LONGEST_WAIT_HOURS))


def is_limit(dialect: ApiDialect, status: int, message: str) -> bool:
    """Whether a tracker refuses because of one of its limits, of which some have no header."""
    said = message.lower()
    return status == 429 or (status == 403 and any(limit in said for limit in dialect.limits))


def _retry_after(text: str, date: str) -> timedelta | None:
    """A date counts from the answer's own, because the tracker's clock may differ from ours."""
    if re.fullmatch(r"\s*[0-9]+\s*", text):
        return timedelta(seconds=min(int(text.strip()[:12]), 3600 * LONGEST_WAIT_HOURS))
    until, now = _moment(text), _moment(date) or datetime.now(UTC)
    return None if until is None else until - now


def clock_difference(headers: Mapping[str, str]) -> timedelta:
    """How far the tracker's clock is ahead of this machine's; 0 if its answer says nothing sensible."""
    moment = _moment(headers.get("date", ""))
    difference = timedelta(0) if moment is None else moment - datetime.now(UTC)
    return difference if abs(difference) < LARGEST_DIFFERENCE else timedelta(0)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
