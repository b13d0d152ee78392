"""The data set of a suite on a machine: equal tables, or tables whose sizes follow from a scale."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from suites.definition import Suite
from suites.keys.profile import Profile, SizedBy
from suites.keys.values import Option

TABLE_THREADS = 5
"""Client threads per table: the study that the write-heavy suite follows uses 40 threads on 8 tables."""


@dataclass(frozen=True)
class Part:
    """The part of a data set that one process loads."""

    options: Mapping[str, int]
    """Options that identify the part to the suite's script."""
    rows: int
    """Number of rows in the part."""


@dataclass(frozen=True)
class WalkedRows:
    """The rows that the threads of a step visit in order, if the step uses rows up."""

    tables: int
    """Number of tables with such rows; a thread draws the table of each transaction at random."""
    rows_per_table: int

    @property
    def rows(self) -> int:
        """Rows over all these tables."""
        return self.tables * self.rows_per_table


class DataSet(Protocol):
    """The loaded data of one server."""

    @property
    def rows(self) -> int:
        """Loaded rows over all tables."""

    @property
    def rows_by_table(self) -> Mapping[str, int]:
        """Loaded rows of each table of a suite's scale; empty if the suite has no scale."""

    @property
    def bytes(self) -> int:
        """Estimated size of the loaded data on disk."""

    @property
    def scale(self) -> int | None:
        """Number of units of the suite's scale; None if the suite has no scale."""

    @property
    def options(self) -> Mapping[str, Option]:
        """Options that give the size of the data to the suite's script, in `prepare` and in `run`."""

    @property
    def stages(self) -> Sequence[Sequence[Part]]:
        """The stages of loading, one after the other; the parts of one stage are loaded in parallel."""

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The description of the data that the history stores with each session."""

    def walked(self, table: str | None) -> WalkedRows:
        """Return the rows that are used up by a step whose `rows_of` is `table`."""


@dataclass(frozen=True)
class EqualTables:
    """Tables with the same structure and number of rows. Implements DataSet."""

    tables: int
    rows_per_table: int
    bytes: int
    scale: None = field(default=None, init=False)
    rows_by_table: Mapping[str, int] = field(default_factory=dict, init=False)

    @property
    def rows(self) -> int:
        """Loaded rows over all tables."""
        return self.tables * self.rows_per_table

    @property
    def options(self) -> Mapping[str, int]:
        """The number of tables, and of rows in a table."""
        return {"tables": self.tables, "table_size": self.rows_per_table}

    @property
    def stages(self) -> Sequence[Sequence[Part]]:
        """One stage with one part per table, so that rows depend only on the seed and the table's number."""
        return [[Part({"table": table}, self.rows_per_table) for table in range(1, self.tables + 1)]]

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The description of the data that the history stores with each session."""
        return {"tables": self.tables, "rows_per_table": self.rows_per_table}

    def walked(self, table: str | None) -> WalkedRows:
        """Return the rows of all tables; `table` is ignored."""
        return WalkedRows(self.tables, self.rows_per_table)


@dataclass(frozen=True)
class ScaledTables:
    """Tables that are proportional to a number of units, or of fixed size. Implements DataSet."""

    unit: str
    scale: int
    rows_by_table: Mapping[str, int]
    """Loaded rows of each table."""
    rows_per_unit: int
    """Rows of one unit, over all tables whose size is not fixed."""
    bytes: int

    @property
    def rows(self) -> int:
        """Loaded rows over all tables."""
        return sum(self.rows_by_table.values())

    @property
    def options(self) -> Mapping[str, int]:
        """The number of units; the script knows the rows of a unit."""
        return {"scale": self.scale}

    @property
    def stages(self) -> Sequence[Sequence[Part]]:
        """First unit 0, which creates the tables and fills those of fixed size, then all other units."""
        fixed = self.rows - self.scale * self.rows_per_unit
        units = [Part({"unit": unit}, self.rows_per_unit) for unit in range(1, self.scale + 1)]
        return [[Part({"unit": 0}, fixed)], units]

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The description of the data that the history stores with each session."""
        return {"scale": self.scale, "unit": self.unit}

    def walked(self, table: str | None) -> WalkedRows:
        """Return the rows of `table`, or all rows if it is None, because the step uses no rows up."""
        return WalkedRows(1, self.rows if table is None else self.rows_by_table[table])


@dataclass(frozen=True)
class OwnTables:
    """Tables that files of the suite make. Implements DataSet."""

    files: str
    """The names of these files."""
    bytes: int
    options: Mapping[str, Option] = field(default_factory=dict)
    """The options with which the script is called in `prepare`; those of a step override them in `run`."""
    scale: None = field(default=None, init=False)
    rows: int = field(default=0, init=False)
    rows_by_table: Mapping[str, int] = field(default_factory=dict, init=False)
    stages: Sequence[Sequence[Part]] = field(default=(), init=False)

    @property
    def facts(self) -> Mapping[str, int | str]:
        """The description of the data that the history stores with each session."""
        return {"setup": self.files}

    def walked(self, table: str | None) -> WalkedRows:
        """Return no rows: none are known."""
        return WalkedRows(0, 0)


def equal_tables(suite: Suite, profile: Profile, wanted_bytes: float, threads: int) -> EqualTables:
    """Return equal tables of about `wanted_bytes` in total, within the profile's bounds of rows."""
    assert suite.bytes_per_row is not None  # guaranteed by the validation of the suite
    assert profile.rows is not None
    tables = profile.tables or max(1, threads // TABLE_THREADS)
    least, most = profile.rows
    growing = [table for table in suite.beside.values() if not table.fixed]
    bytes_per_row = suite.bytes_per_row + sum(table.rows * table.bytes_per_row for table in growing)
    fixed_bytes = sum(table.rows * table.bytes_per_row for table in suite.beside.values() if table.fixed)
    wanted = int((wanted_bytes - fixed_bytes) / bytes_per_row)
    rows_per_table = max(1, min(max(wanted, least), most) // tables)
    return EqualTables(tables, rows_per_table, int(rows_per_table * tables * bytes_per_row + fixed_bytes))


def scaled_tables(suite: Suite, profile: Profile, wanted_bytes: float, threads: int) -> ScaledTables:
    """Return scaled tables of about `wanted_bytes` in total, within the profile's bounds of units."""
    assert suite.scale is not None  # guaranteed by the validation of the suite
    assert profile.scale is not None
    growing = [table for table in suite.scale.tables.values() if not table.fixed]
    unit_bytes = sum(table.bytes for table in growing)
    fixed_bytes = sum(table.bytes for table in suite.scale.tables.values()) - unit_bytes
    least, most = profile.scale
    units = min(max(int((wanted_bytes - fixed_bytes) / unit_bytes), least), most)
    return ScaledTables(
        unit=suite.scale.unit,
        scale=units,
        rows_by_table={
            name: table.rows * (1 if table.fixed else units) for name, table in suite.scale.tables.items()
        },
        rows_per_unit=sum(table.rows for table in growing),
        bytes=int(fixed_bytes + units * unit_bytes),
    )


def own_tables(suite: Suite, profile: Profile, wanted_bytes: float, threads: int) -> OwnTables:
    """Return the tables of the suite's own files, which are taken to have `wanted_bytes`, or those of a dump.

    A script prepares them with the options that all steps have with the same value, or the profile for all.
    """
    first, *others = [{**step.options, **_known(profile.options, step.options)} for step in suite.steps]
    shared = {
        name: value for name, value in first.items() if all(other.get(name) == value for other in others)
    }
    files = [name for name in (suite.load, suite.setup, suite.script) if name is not None]
    dumped = 0 if suite.load is None else _bytes_of(suite.folder / suite.load)
    return OwnTables(
        ", ".join(files), max(int(wanted_bytes), dumped), shared if suite.script is not None else {}
    )


def _bytes_of(path: Path) -> int:
    """Return the size of a file, or of all files of a folder."""
    return sum(part.stat().st_size for part in (path, *path.rglob("*")) if part.is_file())


def _known(options: Mapping[str, Option], own: Mapping[str, Option]) -> Mapping[str, Option]:
    return {name: value for name, value in options.items() if name in own}


DATA_SETS: Mapping[SizedBy, Callable[[Suite, Profile, float, int], DataSet]] = {
    SizedBy.ROWS: equal_tables,
    SizedBy.SCALE: scaled_tables,
    SizedBy.FILES: own_tables,
}
"""Functions from a suite, a profile, the wanted size in bytes and the client threads to a data set."""


def data_set(suite: Suite, profile: Profile, wanted_bytes: float, threads: int) -> DataSet:
    """Return the data set of `suite` with about `wanted_bytes`, within the bounds of `profile`."""
    return DATA_SETS[suite.sized_by](suite, profile, wanted_bytes, threads)
