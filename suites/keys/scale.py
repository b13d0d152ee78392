"""The scale of a suite whose tables differ, and what its tables hold."""

from pydantic import Field, model_validator

from suites.keys.values import MAX_ROWS, Count, Name, Number, Strict, TableName


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
