"""What a plan, or the command line, asks of a backfill."""

import re
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, field_validator

from build.version import Engine, Version, VersionError, parse_version
from history.timestamps import moment_of

EVERY_DAYS = 7
"""The default days between two dates."""

MAX_DAYS = 366

SHARE = 0.5
"""The default share of a night's idle time."""


def days_of(text: str) -> int:
    """Return the days of `7d`. Raises ValueError."""
    number = re.fullmatch(r"([0-9]{1,3})d", text)
    days = int(number[1]) if number else 0
    if not 1 <= days <= MAX_DAYS:
        raise ValueError(f"'{text}' is not a number of days from 1d to {MAX_DAYS}d, such as {EVERY_DAYS}d")
    return days


class Backfill(BaseModel):
    """The past commits of a branch that are to be measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    branch: str
    """The branch with its engine: `postgres@master`; `postgres@master#NAME` is a variant of it."""

    since: str
    """The first date: `2025-01` or `2025-01-15`."""

    every: str = f"{EVERY_DAYS}d"
    """The days between two dates."""

    share: float = Field(default=SHARE, gt=0, le=1)
    """The share of what a night leaves of the budget."""

    counted: bool = False
    """Whether instructions are counted and nothing is timed."""

    @field_validator("branch")
    @classmethod
    def _is_branch(cls, value: str) -> str:
        try:
            version = parse_version(value)
        except VersionError as error:
            raise ValueError(error.what) from error
        if version.is_release or version.ref.startswith("git:"):
            raise ValueError(f"'{value}' is not a branch, such as postgres@master")
        return value

    @field_validator("since")
    @classmethod
    def _is_date(cls, value: str) -> str:
        moment_of(value)
        return value

    @field_validator("every")
    @classmethod
    def _is_span(cls, value: str) -> str:
        days_of(value)
        return value

    @property
    def version(self) -> Version:
        """The branch as a version."""
        return parse_version(self.branch)

    @property
    def engine(self) -> Engine:
        """The engine of the branch."""
        return self.version.engine

    @property
    def since_moment(self) -> datetime:
        """The first date."""
        return moment_of(self.since)

    @property
    def days(self) -> int:
        """The days between two dates."""
        return days_of(self.every)
