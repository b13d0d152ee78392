"""The keys of a suite.toml, each of which has a value that is possible by itself."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from build.version import Engine
from suites.keys.check import DataCheck
from suites.keys.durability import Isolation
from suites.keys.pgbench_scripts import MAX_PARTITIONS
from suites.keys.profile import Profile, SizedBy
from suites.keys.step import Step
from suites.keys.values import MAX_ROWS, MAX_SHARE, Count, Name, Number, Strict, TableName

SettingName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
MAX_SEED = 10**9
"""Steps and rounds add to it, and sysbench's seeds are 32-bit integers."""


class GeneratorName(StrEnum):
    """The load generators that a suite.toml can name."""

    SYSBENCH = "sysbench"
    PGBENCH = "pgbench"
    CONNECTIONS = "connections"
    """sysbench, which holds connections instead of working."""
    QUERIES = "queries"
    PLAIN_SYSBENCH = "plain-sysbench"
    """sysbench with a script that people have, which it runs once in each slice."""


class Initialize(Strict):
    """Options of `pgbench --initialize`."""

    partitions: Annotated[Count, Field(ge=1, le=MAX_PARTITIONS)] | None = None
    """The partitions of pgbench_accounts; None for a table without."""
    partition_method: Literal["range", "hash"] | None = None
    """How the rows are divided among them; None for pgbench's own choice, by range."""

    @model_validator(mode="after")
    def _of_partitions(self) -> "Initialize":
        if self.partition_method is not None and self.partitions is None:
            raise ValueError("partition_method: needs partitions")
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The options as pgbench takes them."""
        given = (("partitions", self.partitions), ("partition-method", self.partition_method))
        return tuple(f"--{name}={value}" for name, value in given if value is not None)


class TableBeside(Strict):
    """Tables that a script makes beside the equal ones, one for each of them or one for all."""

    rows: Number = Field(gt=0, le=MAX_ROWS)
    """Rows for each loaded row of the equal tables, such as 0.1; in total if the size is fixed."""
    bytes_per_row: Number = Field(ge=1, le=MAX_ROWS)
    """Size of a loaded row, including its index entries."""
    fixed: bool = Field(default=False, strict=True)
    """Whether the size is independent of the loaded rows."""


class ScaledTable(Strict):
    """One table, or several that are described together, of a suite with a scale."""

    rows: Count = Field(gt=0, le=MAX_ROWS)
    """Rows per unit of the scale; in total if the table is fixed."""
    bytes_per_row: Number = Field(ge=1, le=MAX_ROWS)
    """Size of a loaded row, including its index entries."""
    fixed: bool = Field(default=False, strict=True)
    """Whether the size is independent of the scale."""

    @property
    def bytes(self) -> float:
        """Size of the rows of one unit; of all rows if the table is fixed."""
        return self.rows * self.bytes_per_row


class Scale(Strict):
    """The scale to which sizes of a suite's tables are proportional, such as a number of warehouses."""

    unit: Name
    """The name of one unit, such as `warehouse`."""
    tables: dict[TableName, ScaledTable] = Field(min_length=1)
    """Every table that is loaded."""

    @model_validator(mode="after")
    def _grows(self) -> "Scale":
        if all(table.fixed for table in self.tables.values()):
            raise ValueError("tables: all of them are fixed, so that nothing grows with the scale")
        return self


class SuiteKeys(Strict):
    """A named list of steps that run in order on the same data."""

    name: Name
    title: str
    generator: GeneratorName
    script: str | None = None
    load: str | None = None
    """The dump, program or SQL file that fills the database, after the tables of a size."""
    setup: str | None = None
    """The SQL file that makes tables and fills them, after `load`."""
    initialize: Initialize | None = None
    """How pgbench's own tables are made."""
    engines: tuple[Engine, ...] = Field(min_length=1)
    seed: Count = Field(default=20260101, gt=0, le=MAX_SEED)
    bytes_per_row: Number | None = Field(default=None, ge=1, le=MAX_ROWS)
    """Size of a loaded row, including its index entries; for suites with equal tables."""
    beside: dict[TableName, TableBeside] = Field(default={})
    """Further tables that the script makes beside the equal ones, whose size they add to."""
    scale: Scale | None = None
    """The scale that determines the sizes of the tables; for suites whose tables differ."""
    isolation: Isolation | None = None
    """The isolation of every session, the same on all engines; None for each engine's own."""
    plans: bool = Field(default=False, strict=True)
    """Whether the plan of every statement is stored, which the script then prints (docs/suites.md)."""
    finish: bool = Field(default=False, strict=True)
    """Whether the script has a command that is called once, after everything is loaded."""
    checks: tuple[DataCheck, ...] = ()
    """What must be true of the data."""
    server: dict[Engine, dict[SettingName, str]] = Field(default={})
    """Server settings that the suite needs, by engine; those of a session override them."""
    layers: dict[str, str] = Field(default={})
    """How clients reach the servers, by the names of suites.layers.choice; a variant's override them."""
    growth: Number = Field(default=2.0, ge=1, le=MAX_SHARE)
    profiles: dict[Name, Profile] = Field(default={})
    """Those of PROFILES, with what this suite has in place of their keys, and its own."""
    without: dict[Name, str] = Field(default={})
    """The profiles of PROFILES that it does not have -> why."""
    steps: tuple[Step, ...] = Field(min_length=1)
    folder: Path
    files: dict[str, str]
    """The digest of each file of the folder, and of the shared modules that its script uses."""

    @property
    def sized_by(self) -> SizedBy:
        """How the data of the suite are sized."""
        if self.scale is not None:
            return SizedBy.SCALE
        return SizedBy.FILES if self.bytes_per_row is None else SizedBy.ROWS

    @property
    def has_files(self) -> bool:
        """Whether files of the suite fill the database, by `load` or `setup`."""
        return self.load is not None or self.setup is not None
