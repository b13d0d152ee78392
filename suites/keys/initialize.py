"""How pgbench's own tables are made."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from suites.keys.pgbench_scripts import MAX_PARTITIONS
from suites.keys.values import Count, Strict


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
