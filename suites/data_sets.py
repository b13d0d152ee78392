"""What a suite's data come to on a machine: equal tables, or tables that grow with a scale."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from suites.definition import Profile, SizedBy, Suite

TABLE_THREADS = 5
"""Client threads to a table: 40 threads work on 8 tables in the study this suite follows."""


@dataclass(frozen=True)
class Part:
    """What one process loads."""

    options: Mapping[str, int]
    """Tells the suite's script which part it is."""
    rows: int
    """How many rows it has."""


@dataclass(frozen=True)
class WalkedRows:
    """The rows that the threads of a step walk through, when it uses rows up."""

    tables: int
    """How many tables have such rows; a thread draws the table of each transaction."""
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
    def bytes(self) -> int:
        """Estimated size of the loaded data on disk."""

    @property
    def scale(self) -> int | None:
        """Units of the suite's scale; None where it has none."""

    @property
    def options(self) -> Mapping[str, int]:
        """Tells the suite's script how large the data are, in `prepare` and in `run`."""

    @property
    def stages(self) -> Sequence[Sequence[Part]]:
        """How it is loaded: stage after stage, the parts of one stage side by side."""

    @property
    def facts(self) -> Mapping[str, int | str]:
        """What the history keeps of it with each session."""

    def walked(self, table: str | None) -> WalkedRows:
        """Return the rows that a step uses up whose `rows_of` is `table`."""


@dataclass(frozen=True)
class EqualTables:
    """Tables that are all alike. Implements DataSet."""

    tables: int
    rows_per_table: int
    bytes: int
    scale: None = field(default=None, init=False)

    @property
    def rows(self) -> int:
        """Loaded rows over all tables."""
        return self.tables * self.rows_per_table

    @property
    def options(self) -> Mapping[str, int]:
        """The number of tables and the rows of each."""
        return {"tables": self.tables, "table_size": self.rows_per_table}

    @property
    def stages(self) -> Sequence[Sequence[Part]]:
        """One process per table, so that the rows depend on nothing but the seed and the table's number."""
        return [[Part({"table": table}, self.rows_per_table) for table in range(1, self.tables + 1)]]

    @property
    def facts(self) -> Mapping[str, int | str]:
        """What the history keeps of it with each session."""
        return {"tables": self.tables, "rows_per_table": self.rows_per_table}

    def walked(self, table: str | None) -> WalkedRows:
        """Return all tables, whatever the step names."""
        return WalkedRows(self.tables, self.rows_per_table)


@dataclass(frozen=True)
class ScaledTables:
    """Tables that grow with a number of units, beside some that are fixed. Implements DataSet."""

    unit: str
    scale: int
    rows_by_table: Mapping[str, int]
    """Loaded rows of each table."""
    rows_per_unit: int
    """Rows of one unit, over the tables that grow."""
    bytes: int

    @property
    def rows(self) -> int:
        """Loaded rows over all tables."""
        return sum(self.rows_by_table.values())

    @property
    def options(self) -> Mapping[str, int]:
        """The number of units; how many rows each has is known to the script."""
        return {"scale": self.scale}

    @property
    def stages(self) -> Sequence[Sequence[Part]]:
        """First unit 0, which makes the tables and fills the fixed ones; then every unit by itself."""
        fixed = self.rows - self.scale * self.rows_per_unit
        units = [Part({"unit": unit}, self.rows_per_unit) for unit in range(1, self.scale + 1)]
        return [[Part({"unit": 0}, fixed)], units]

    @property
    def facts(self) -> Mapping[str, int | str]:
        """What the history keeps of it with each session."""
        return {"scale": self.scale, "unit": self.unit}

    def walked(self, table: str | None) -> WalkedRows:
        """Return one table; for a step that names none, because it uses no rows up, all rows."""
        return WalkedRows(1, self.rows if table is None else self.rows_by_table[table])


def equal_tables(suite: Suite, profile: Profile, wanted_bytes: float, threads: int) -> EqualTables:
    """Return as many rows as come to `wanted_bytes` within the profile's bounds, in equal tables."""
    assert suite.bytes_per_row is not None  # as the suite has been checked
    assert profile.rows is not None
    tables = max(1, threads // TABLE_THREADS)
    least, most = profile.rows
    wanted = int(wanted_bytes / suite.bytes_per_row)
    rows_per_table = max(1, min(max(wanted, least), most) // tables)
    return EqualTables(tables, rows_per_table, int(rows_per_table * tables * suite.bytes_per_row))


def scaled_tables(suite: Suite, profile: Profile, wanted_bytes: float, threads: int) -> ScaledTables:
    """Return as many units as come to `wanted_bytes` beside the fixed tables, within the profile's bounds."""
    assert suite.scale is not None  # as the suite has been checked
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


DATA_SETS: Mapping[SizedBy, Callable[[Suite, Profile, float, int], DataSet]] = {
    SizedBy.ROWS: equal_tables,
    SizedBy.SCALE: scaled_tables,
}
"""How each kind of suite is sized: from the suite, a profile, the wanted bytes and the client threads."""


def data_set(suite: Suite, profile: Profile, wanted_bytes: float, threads: int) -> DataSet:
    """Return the data of `suite` that come to `wanted_bytes` within the bounds of `profile`."""
    return DATA_SETS[suite.sized_by](suite, profile, wanted_bytes, threads)
