"""A profile of a suite.toml: how long and at what size the suite is run."""

import math
from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from suites.control_groups.declared import Declared, memory_text
from suites.keys.step import Levels, require_levels
from suites.keys.values import MAX_ROWS, MAX_SHARE, Count, Disk, Memory, Number, Option, Strict
from suites.slices import (
    LONGEST_BUDGET_MINUTES,
    LONGEST_SECONDS,
    MAX_ROUNDS,
    SHORTEST_SLICE,
    ScheduleError,
    require_few_slices,
)

MAX_TABLES = 1000
"""The most equal tables."""
Bounds = tuple[Annotated[Count, Field(gt=0, le=MAX_ROWS)], Annotated[Count, Field(gt=0, le=MAX_ROWS)]]
"""Minimum and maximum, both inclusive."""


class Mode(StrEnum):
    """How the runs of several versions are interleaved."""

    ROUNDS = "rounds"
    """Each round of a step starts from the same loaded data."""
    LONG = "long"
    """The servers stay up for the whole suite, and each step inherits the data of the step before."""


class SizedBy(StrEnum):
    """How the data of a suite are sized; the value is the profile's key for the bounds."""

    ROWS = "rows"
    """Equal tables, with `bytes_per_row` in the suite."""
    SCALE = "scale"
    """Tables whose sizes are proportional to a scale, with `[scale]` in the suite."""
    FILES = "files"
    """Tables that files of the suite make, SQL or a script, whose sizes are known to them alone."""

    @property
    def suite_key(self) -> str:
        """The key that the suite must have, or what it has instead."""
        return _SUITE_KEYS[self]


BOUNDED = (SizedBy.ROWS, SizedBy.SCALE)
"""Those for which a profile has bounds."""

_SUITE_KEYS = {
    SizedBy.ROWS: "bytes_per_row",
    SizedBy.SCALE: "scale",
    SizedBy.FILES: "tables of its own files",
}


class Profile(Strict):
    """How long and at what size a suite is run."""

    title: str
    mode: Mode = Mode.ROUNDS
    seconds: Number = Field(gt=0, le=LONGEST_SECONDS)
    """How long each version works on a step in a round; in mode long, in total."""
    slice_seconds: Number = Field(ge=SHORTEST_SLICE)
    """How long a version works before the next version takes its turn."""
    warm_seconds: Number = Field(default=0, ge=0, le=LONGEST_SECONDS)
    """How long each version warms up at the beginning of a round; rounded up to whole slices."""
    perf_seconds: Number = Field(default=2, gt=0, le=LONGEST_SECONDS)
    """With --perf, how long each version is profiled at the end of a round."""
    repetitions: Count = Field(ge=1, le=MAX_ROUNDS)
    """Rounds of each step; in mode long, the length of the step determines them."""
    block_seconds: Number = Field(default=10, gt=0, le=LONGEST_SECONDS)
    """In mode long, how long each version works at least in a block, which is recorded as one round."""
    warm_limit_seconds: Number = Field(default=0, ge=0, le=LONGEST_SECONDS)
    """In mode long, how long each version works at most at the beginning of a step until its cache is full
    and a checkpoint is over; 0 for not at all."""
    until_decided: bool = Field(default=False, strict=True)
    """Whether sessions measure until their steps are decided, as with --until-decided."""
    most_rounds: Count = Field(default=20, ge=3, le=MAX_ROUNDS)
    """With --until-decided, the most rounds of a step that has no verdict yet; in mode long, `seconds`
    determines them."""
    budget_minutes: Number = Field(default=30, gt=0, le=LONGEST_BUDGET_MINUTES)
    """With --until-decided, for how long after its first round a session starts further rounds."""
    data_to_memory: Number = Field(gt=0, le=MAX_SHARE)
    """Size of the loaded data as a share of the machine's memory."""
    rows: Bounds | None = None
    """Bounds of the rows over all tables, whatever the memory; for suites with `bytes_per_row`."""
    scale: Bounds | None = None
    """Bounds of the units of the scale, whatever the memory; for suites with a `[scale]`."""
    tables: Count | None = Field(default=None, ge=1, le=MAX_TABLES)
    """Number of equal tables; None if it follows from the client threads."""
    clients: Levels = ()
    """The levels of steps that have none of their own."""
    options: dict[str, Option] = Field(default={})
    """Options in place of those of the same name that a step has."""
    buffer_to_memory: Number = Field(gt=0, le=0.8)
    """Size of the server's buffer cache as a share of the machine's memory."""
    settle_seconds: Number = Field(ge=0, le=LONGEST_SECONDS)
    """Idle time after each reset."""
    limit_seconds: Number | None = Field(default=None, gt=0, le=LONGEST_SECONDS)
    """The most that one query may take, with the generator queries; None for no limit."""
    memory: Memory | None = None
    """The memory of each server, page cache included, in place of the machine's; None for that."""
    disk: Disk | None = None
    """What the disk of each server does at most; None for what it can."""
    keeps_copy: bool = Field(default=False, strict=True)
    """Whether a copy of the loaded data of each version is kept for later sessions; only in rounds mode."""
    counted_passes: Count = Field(default=0, ge=0, le=MAX_ROUNDS)
    """How many of the first rounds of a step have a counted pass, unless the session says otherwise."""

    @property
    def turns_per_block(self) -> int:
        """How many orders such as A B B A one block of mode long has; every block opens new connections."""
        seconds = min(self.seconds, self.block_seconds)
        return max(1, math.ceil(seconds / self.slice_seconds / 2 - 1e-9))

    @property
    def blocks(self) -> int:
        """The blocks of a step in mode long, at most."""
        return max(1, round(self.seconds / self.slice_seconds / 2 / self.turns_per_block))

    @property
    def declared(self) -> Declared:
        """What each server gets in place of what the machine has."""
        memory = "" if self.memory is None else memory_text(self.memory)
        return Declared(memory, "" if self.disk is None else str(self.disk))

    @model_validator(mode="after")
    def _ordered(self) -> "Profile":
        for key, bounds in (("rows", self.rows), ("scale", self.scale)):
            if bounds is not None and bounds[0] > bounds[1]:
                raise ValueError(f"{key} = [least, most]: least is larger than most")
        require_levels(self.clients)
        if self.slice_seconds > self.seconds:
            raise ValueError("slice_seconds: a slice is longer than the step")
        if self.mode is Mode.ROUNDS:
            try:
                require_few_slices(1, self.seconds, self.slice_seconds, self.warm_seconds)
            except ScheduleError as error:
                raise ValueError(f"slice_seconds: {error.what}") from error
        return self
