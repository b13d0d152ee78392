"""A pause: until a certain time a person has the box, and nothing of the nightly service begins on it."""

import json
import os
import pwd
import re
import signal
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from time import monotonic, sleep
from typing import Any

from build.errors import TidemarkError
from build.files import json_value, make_folder, write_atomically
from build.home import Home
from history.escaping.characters import one_line
from history.store.process import ProcessIdentity, is_alive, own_boot_id

PAUSE = "pause.json"
"""The file in the output folder with the last pause of the box."""

LONGEST_DAYS = 31
"""A longer pause is taken for a typing error: as long as it lasts, nobody is told that the box is silent."""

INTERRUPT_SECONDS = 300.0
"""The longest that an interrupted night may take to end its servers and delete their data."""

POLL_SECONDS = 0.2

LONGEST_TEXT = 200
"""Characters of a reason that are kept."""

_TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


class PauseError(TidemarkError):
    """A pause that cannot be meant, or the box is paused."""


@dataclass(frozen=True)
class Pause:
    """A pause of a box."""

    by: str
    """Who asked for it: the name of a user."""

    why: str
    since: datetime
    until: datetime
    """When it ends or, if it was ended early, when it ended."""

    def is_in_force(self, now: datetime) -> bool:
        """Return whether it has not ended."""
        return now < self.until

    def as_json(self) -> dict[str, str]:
        """Return it with its times in ISO-8601."""
        since, until = self.since.isoformat(), self.until.isoformat()
        return {"by": self.by, "why": self.why, "since": since, "until": until}

    def __str__(self) -> str:
        return f"paused until {local(self.until)} by {self.by}: {self.why}"


def local(moment: datetime) -> str:
    """Return a time as a person at this machine reads it, with the name of the time zone."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M %Z}"


def last_pause(home: Home) -> Pause | None:
    """Return the last pause, which may have ended; None without one, or when its file is not one."""
    try:
        found: dict[str, Any] = json_value((home.path / PAUSE).read_text(encoding="utf-8"))
        by, why = one_line(str(found["by"])), one_line(str(found["why"]))
        since, until = (datetime.fromisoformat(found[name]).astimezone(UTC) for name in ("since", "until"))
        return Pause(by, why, since, until)
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None


def current_pause(home: Home, now: datetime) -> Pause | None:
    """Return the pause that is in force."""
    pause = last_pause(home)
    return pause if pause is not None and pause.is_in_force(now) else None


def require_not_paused(home: Home, now: datetime) -> None:
    """Raise PauseError while the box is paused."""
    pause = current_pause(home, now)
    if pause is not None:
        raise PauseError(
            f"this box is {pause}",
            where=str(home.path / PAUSE),
            hint="./tidemark service resume ends the pause",
        )


def begin(home: Home, until: datetime, why: str, now: datetime) -> Pause:
    """Record a pause. Raises PauseError for one that cannot be meant, or when another user has the box."""
    if not now < until <= now + timedelta(days=LONGEST_DAYS):
        raise PauseError(
            f"a pause until {local(until)} is in the past or longer than {LONGEST_DAYS} days",
            where="--until",
            hint="if a box is to measure no more, take it out of the plan",
        )
    reason = one_line(why, LONGEST_TEXT)
    if not reason:
        raise PauseError("a pause needs a reason that others can read", where="--why")
    asking, present = user(), current_pause(home, now)
    if present is not None and present.by != asking:
        raise PauseError(
            f"this box is {present}",
            where=str(home.path / PAUSE),
            hint=f"ask {present.by}, or ./tidemark service resume",
        )
    pause = Pause(asking, reason, now, until)
    _record(home, pause)
    return pause


def end(home: Home, now: datetime) -> Pause | None:
    """End the pause that is in force, and return it as it was; None without one."""
    pause = current_pause(home, now)
    if pause is not None:
        _record(home, replace(pause, until=now))
    return pause


def user() -> str:
    """Return the name of the person who calls: with sudo, the one who called it."""
    name = os.environ.get("SUDO_USER")
    if name:
        return one_line(name, LONGEST_TEXT)
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def moment_to_come(text: str, now: datetime) -> datetime:
    """Return the time that a person means by `18:00`, `2026-12-24`, `2026-12-24 18:00` or an ISO-8601 time.

    A time of day is the next one, and a day begins at midnight, in the time zone of this machine unless the
    text names another. Raises ValueError for any other text.
    """
    written = text.strip()
    of_day = _TIME_OF_DAY.fullmatch(written)
    if of_day is None:
        try:
            return datetime.fromisoformat(written).astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise ValueError(
                f"'{text}' is not a time: write 18:00, 2026-12-24 or '2026-12-24 18:00'"
            ) from error
    here = now.astimezone()
    for days in (0, 1):
        day = here.date() + timedelta(days=days)
        moment = datetime.combine(day, time(int(of_day[1]), int(of_day[2]))).astimezone(UTC)
        if moment > now:
            break
    return moment


def _record(home: Home, pause: Pause) -> None:
    make_folder(home.path)
    write_atomically(home.path / PAUSE, json.dumps(pause.as_json(), indent=1) + "\n")


def interrupt(process: ProcessIdentity) -> None:
    """Ask a night to end, as Ctrl-C does, and wait until it has. Raises PauseError."""
    if process.boot_id != own_boot_id():
        raise PauseError(
            f"process {process.process_id} is of another container, from which alone it can be ended",
            hint="the pause is recorded; run the same command there",
        )
    if not is_alive(process):
        return
    try:
        os.kill(process.process_id, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise PauseError(
            f"process {process.process_id} belongs to another user, who alone may interrupt it",
            hint="the pause is recorded; use sudo -u USER ./tidemark service pause for the rest",
        ) from error
    deadline = monotonic() + INTERRUPT_SECONDS
    while is_alive(process):
        if monotonic() > deadline:
            raise PauseError(
                f"process {process.process_id} was asked to end, and still runs",
                hint="docs/hardware.md, When it is stuck",
            )
        sleep(POLL_SECONDS)
