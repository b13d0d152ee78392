"""Cron tables in the format of crontab(5): which jobs start within a time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NAMES: tuple[list[str], ...] = ([], [], [], MONTHS, DAYS)
_FIRST_NAME = (0, 0, 0, 1, 0)


@dataclass(frozen=True)
class CronJob:
    """One line of a cron table. Minutes count from 0, days of the month and months from 1; Sunday is 0."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Whether both day fields are restricted: crontab(5) then matches a day that is in either of them."""

    command: str

    def begins_at(self, moment: datetime) -> bool:
        """Return whether the job starts in this minute."""
        day = moment.day in self.days
        weekday = moment.isoweekday() % 7 in self.weekdays
        return (
            moment.minute in self.minutes
            and moment.hour in self.hours
            and moment.month in self.months
            and ((day or weekday) if self.either_day else (day and weekday))
        )

    def first_within(self, begin: datetime, hours: float) -> datetime | None:
        """Return the first minute after `begin` in which the job starts, at most `hours` later, or None."""
        minute = begin.replace(second=0, microsecond=0)
        for _ in range(int(hours * 60)):
            minute += timedelta(minutes=1)
            if self.begins_at(minute):
                return minute
        return None


def jobs(table: str, *, names_user: bool) -> Iterator[CronJob]:
    """Yield the jobs of a table; lines that are no jobs are skipped, as cron skips lines it cannot parse.

    With `names_user` a user stands before the command, as in /etc/crontab and /etc/cron.d.
    """
    for line in map(str.strip, table.splitlines()):
        if not line or line.startswith("#") or re.match(r"\w+\s*=", line):
            continue
        nickname, _, rest = line.partition(" ")
        text = f"{NICKNAMES[nickname]} {rest.strip()}" if nickname in NICKNAMES else line
        words = text.split(None, 6 if names_user else 5)
        if len(words) < (7 if names_user else 6):
            continue
        try:
            yield _job(words[:5], words[-1])
        except ValueError:
            continue


def values(text: str, place: int) -> frozenset[int]:
    """Return the numbers that field `place` (0 minute .. 4 weekday) lists, as ranges with steps.

    Raises ValueError for a field that cannot be parsed. Sunday is 0 whether it is written as 0 or 7.
    """
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = int(step_text) if slash else 1
        low, high = _span(span, place, open_ended=bool(slash))
        if step < 1 or low > high:
            raise ValueError(f"'{part}' is not a range")
        found.update(range(low, high + 1, step))
    return frozenset(number % 7 for number in found) if place == 4 else frozenset(found)


def _span(text: str, place: int, *, open_ended: bool) -> tuple[int, int]:
    least, most = _BOUNDS[place]
    if text == "*":
        return least, 6 if place == 4 else most
    first, dash, last = text.partition("-")
    low = _number(first, place)
    if dash:
        return low, _number(last, place)
    return low, most if open_ended else low


def _number(text: str, place: int) -> int:
    names = _NAMES[place]
    if text.lower() in names:
        return names.index(text.lower()) + _FIRST_NAME[place]
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise ValueError(f"'{text}' is not a number")
    least, most = _BOUNDS[place]
    if not least <= int(text) <= most:
        raise ValueError(f"{text} is not between {least} and {most}")
    return int(text)


def _job(fields: list[str], command: str) -> CronJob:
    minutes, hours, days, months, weekdays = (values(text, place) for place, text in enumerate(fields))
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    return CronJob(minutes, hours, days, months, weekdays, either, command)
