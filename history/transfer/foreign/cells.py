"""Numbers and times as people and spreadsheets write them; what has two meanings is refused."""

import re
from datetime import datetime

from history.timestamps import moment_of
from history.transfer.foreign.json_parts import date_of_milliseconds, number

_GROUPED = re.compile(
    r"[-+]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,}|(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})", re.ASCII
)
"""Digits in groups of three, by one mark, with a decimal part after the other one."""

_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+", re.ASCII)
_EITHER = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}", re.ASCII)
"""Thousands, or a number with three decimal places."""

_DATE = re.compile(
    r"(\d{4})[./-](\d{1,2})[./-](\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)? ?(Z|[+-]\d{2}:?\d{2})?"
)
_DAY_OR_MONTH = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{4}.*")
_FIRST_EPOCH = 1e9
"""Seconds since 1970 from which on a number is a time: smaller ones are years and days, such as 20251105."""

_LARGEST_EPOCH = 1e11
"""A number above is one of milliseconds."""


def number_of(text: str) -> float:
    """Return a number such as `1234.5`, `1,234.5`, `1234,5` or `1.234,5`.

    Raises ValueError for any other text, and for `1,234`, which may be 1234 or 1.234.
    """
    if (either := _EITHER.fullmatch(text)) and either[1] == ",":
        raise ValueError(
            f"'{text}' may be thousands or decimal places: write it without the comma, or with a point"
        )
    plain = text
    if _GROUPED.fullmatch(text):
        last = max(text.rfind(","), text.rfind("."))
        marks = {text[last]} if text.count(text[last]) > 1 else {",", "."} - {text[last]}
        plain = text.translate({ord(mark): None for mark in marks}).replace(",", ".")
    elif _DECIMAL_COMMA.fullmatch(text):
        plain = text.replace(",", ".")
    found = number(plain)
    if found is None:
        raise ValueError(f"'{text}' is no number: write it as 1234.5")
    return found


def has_decimal_comma(text: str) -> bool:
    """Return whether a number has its decimal places after a comma."""
    return "," in text and text.rfind(",") > text.rfind(".") and text.count(",") == 1


def may_be_thousands(text: str) -> bool:
    """Return whether `1.234` is 1234 to people who write a decimal comma."""
    return _EITHER.fullmatch(text) is not None


def time_of(text: str) -> datetime:
    """Return the time of a date, an ISO 8601 text, `2026.01.31 3:00:00 +0100`, or (milli)seconds since 1970.

    Raises ValueError for any other text, and for `05/11/2025`, which may be in May or November.
    """
    epoch = number(text)
    if epoch is not None and epoch >= _FIRST_EPOCH:
        found = date_of_milliseconds(epoch if epoch > _LARGEST_EPOCH else epoch * 1000)
        if found:
            return found
    if _DAY_OR_MONTH.fullmatch(text.strip()):
        raise ValueError(f"'{text}' does not say which is the day and which the month: write 2025-11-05")
    written = text
    if match := _DATE.fullmatch(text.strip()):
        year, month, day, hour, minute, second, zone = match.groups("0")
        clock = f"{hour:>02}:{minute:>02}:{second:>02}"
        written = f"{year}-{month:>02}-{day:>02}T{clock}{'' if zone == '0' else zone}"
    try:
        return moment_of(written)
    except ValueError:
        return moment_of(text)
