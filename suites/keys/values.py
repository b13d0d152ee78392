"""The types of values in a suite.toml."""

from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from suites.control_groups.declared import DiskSpeed, LimitError, parse_disk, parse_memory

T = TypeVar("T")


def _read_by(parse: Callable[[str], T]) -> Callable[[object], T]:
    """Return a validator of the text that `parse` reads."""

    def validate(value: object) -> T:
        try:
            return parse(value if isinstance(value, str) else repr(value))
        except LimitError as error:
            raise ValueError(f"{error.what}; {error.hint}") from error

    return validate


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
TableName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
# Strict, so that "5" and true are not accepted as numbers. TOML has inf and nan, which are not sizes.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True)]
MAX_ROWS = 10**12
"""The most rows, bytes of a row, or units of a scale that a suite can ask for."""
MAX_SHARE = 1e6
"""The most that data may be of the memory, that a table may grow by, or that a step may do of the rows."""
Memory = Annotated[int, BeforeValidator(_read_by(parse_memory)), WithJsonSchema({"type": "string"})]
"""An amount of memory in bytes, written as `1G` or `512M`."""
Disk = Annotated[DiskSpeed, BeforeValidator(_read_by(parse_disk)), WithJsonSchema({"type": "string"})]
"""The speed of a disk, written as `2000iops`, `100MB/s` or `2000iops,100MB/s`."""
Option = str | int | float | bool
"""The value of an option of a load generator."""


class Strict(BaseModel):
    """A part of a suite.toml, in which a key that is not known is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")
