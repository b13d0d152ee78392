"""A check: SQL that must find nothing wrong with the data of a suite."""

import re
from collections.abc import Mapping
from enum import StrEnum

from pydantic import model_validator

from build.version import Engine
from suites.keys.values import Name, Strict

COMMITTED = re.compile(r"\{committed:([a-z][a-z0-9-]*)\}")
"""What stands in the SQL of a check for the transactions of a kind that the client saw committed."""

LOADED = re.compile(r"\{rows:([a-z][a-z0-9_]*)\}")
"""What stands in the SQL of a check for the rows that were loaded into a table of the scale."""


class CheckOccasion(StrEnum):
    """When a check is asked."""

    LOADED = "loaded"
    """After loading, before anything is measured."""
    STEP = "step"
    """After each step, once the server was reset."""
    CRASH = "crash"
    """After a crash and the recovery from it."""


class DataCheck(Strict):
    """One thing that must be true of the data."""

    name: Name
    title: str
    sql: str
    """A query that returns what is wrong: nothing is if it returns no row, or a single zero."""
    on: tuple[CheckOccasion, ...] = ()
    """When it is asked; empty for on every occasion."""
    engines: tuple[Engine, ...] = ()
    """The engines that are asked; empty for all."""
    steps: tuple[Name, ...] = ()
    """The steps after which it is asked; empty for all."""
    profiles: tuple[Name, ...] = ()
    """The profiles in which it is asked; empty for all."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of transactions whose number the SQL uses."""
        return tuple(COMMITTED.findall(self.sql))

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose loaded rows the SQL uses."""
        return tuple(LOADED.findall(self.sql))

    @model_validator(mode="after")
    def _countable(self) -> "DataCheck":
        """A client that was not measured, or saw its server die, cannot say what was committed."""
        if self.kinds and self.on != (CheckOccasion.STEP,):
            raise ValueError('on: SQL with {committed:KIND} needs on = ["step"]')
        return self

    def applies(self, occasion: CheckOccasion, engine: Engine, profile: str, step: str | None = None) -> bool:
        """Whether it is asked of an engine, on an occasion, after a step (its plain name) if it is one."""
        return (
            (not self.on or occasion in self.on)
            and (not self.engines or engine in self.engines)
            and (not self.profiles or profile in self.profiles)
            and (step is None or not self.steps or step in self.steps)
        )

    def text(self, committed: Mapping[str, int], rows: Mapping[str, int]) -> str:
        """Return the SQL with the numbers of committed transactions by kind, and of loaded rows by table.

        A kind without any has 0.
        """
        text = LOADED.sub(lambda match: str(rows[match[1]]), self.sql)
        return COMMITTED.sub(lambda match: str(committed.get(match[1], 0)), text)
