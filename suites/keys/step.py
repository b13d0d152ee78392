"""A step of a suite.toml, and the levels of clients that steps and profiles have."""

from itertools import pairwise
from typing import Annotated

from pydantic import Field, model_validator

from suites.keys.levels import LEVEL, MAX_CLIENTS, plain_name
from suites.keys.pgbench_scripts import MAX_RATE
from suites.keys.values import MAX_SHARE, Count, Name, Number, Option, Strict, TableName

MAX_COUNTED = 1_000_000
"""The most transactions of a counted pass."""
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Levels = tuple[Annotated[Count, Field(ge=1, le=MAX_CLIENTS)], ...]
"""Numbers of clients, each of which makes a step of its own; empty if the machine's cores decide."""


def require_levels(levels: Levels) -> None:
    """Raise ValueError unless every level has more clients than the one before."""
    if any(fewer >= more for fewer, more in pairwise(levels)):
        raise ValueError("clients: every level must have more clients than the one before")


class Step(Strict):
    """One workload of a suite."""

    name: Name
    title: str
    group: Name | None = None
    """Comparisons show a geometric mean for the steps of a group."""
    options: dict[str, Option] = Field(default={})
    """Options of the load generator: `--name=value` of a sysbench script, `builtin` of pgbench."""
    scripts: tuple[str, ...] = ()
    """The scripts of pgbench beside suite.toml, as `FILE` or `FILE@WEIGHT`; one is drawn per transaction."""
    variables: dict[VariableName, str | int | float] = Field(default={})
    """Variables of these scripts, as pgbench's `--define` sets them."""
    queries: Number = Field(default=1, gt=0, le=MAX_SHARE)
    """Queries in a transaction, for generators that count transactions only."""
    most_work_to_rows: Number | None = Field(default=None, gt=0, le=MAX_SHARE)
    """The maximum number of transactions, relative to the loaded rows; for steps that use rows up."""
    rows_of: TableName | None = None
    """The table whose rows `most_work_to_rows` counts; only in suites with a `[scale]`."""
    counted: Count = Field(default=400, gt=0, le=MAX_COUNTED)
    """The transactions of a counted pass, under a server that is some fifty times slower."""
    reads_only: bool = Field(default=False, strict=True)
    """Whether it leaves the data as they are: the next step of the round goes on with the same servers."""
    clients: Levels = ()
    """The levels of the step. A step of a session has one, as part of its name, or measures all of them."""
    rate: Number | None = Field(default=None, gt=0, le=MAX_RATE)
    """Transactions that arrive per second; None if each begins when the one before it has ended."""
    rate_per_core: Number | None = Field(default=None, gt=0, le=MAX_SHARE)
    """The same for each core of the machine, in place of `rate`."""
    rate_of: Name | None = None
    """The step of whose calibrated throughput `rate` is a share; None if `rate` is absolute."""
    background: dict[Name, Annotated[Number, Field(ge=0, le=MAX_SHARE)]] = Field(default={})
    """Kinds of transactions that connections of their own carry out beside each client, and how many of each
    a second; 0 for as many as keep pace with the step's own."""
    held_transaction: bool = Field(default=False, strict=True)
    """Whether a transaction with a snapshot is open beside the load, so that no old row is removed."""
    timed: bool = Field(default=False, strict=True)
    """Whether it is one transaction, carried out once in a round by one server after the other."""
    profiles: tuple[Name, ...] = ()
    """The profiles that have the step, unless it is asked for by name; empty for all."""

    @model_validator(mode="after")
    def _ordered(self) -> "Step":
        require_levels(self.clients)
        if self.rate is not None and self.rate_per_core is not None:
            raise ValueError("rate_per_core: not beside rate")
        if self.is_open and self.background:
            raise ValueError("background: not beside rate, which is that of the step's own transactions")
        if self.timed and (self.is_open or self.background or self.most_work_to_rows is not None):
            raise ValueError("timed: one transaction has no rate, no background and no other limit")
        return self

    @property
    def is_open(self) -> bool:
        """Whether transactions arrive at a rate, instead of one after the other."""
        return self.rate is not None or self.rate_per_core is not None

    @property
    def connections_of_client(self) -> int:
        """The connections of each client: its own, and one for each kind in the background."""
        return 1 + len(self.background)

    @property
    def plain_name(self) -> str:
        """The name without a level."""
        return plain_name(self.name)

    @property
    def level(self) -> int | None:
        """The clients of a step that is one level of several; None for other steps."""
        return self.clients[0] if LEVEL in self.name else None

    def at(self, clients: int) -> "Step":
        """Return the step at one level: a step with a name, and so with series, of its own."""
        return self.model_copy(update={"name": f"{self.plain_name}{LEVEL}{clients}", "clients": (clients,)})
