"""The types of values in a suite.toml."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from suites.control_groups.limits import LimitError, parse_memory


def _memory(value: object) -> int:
    try:
        return parse_memory(value if isinstance(value, str) else repr(value))
    except LimitError as error:
        raise ValueError(f"{error.what}; {error.hint}") from error


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
TableName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
# Strict, so that "5" and true are not accepted as numbers. TOML has inf and nan, which are not sizes.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True)]
MAX_ROWS = 10**12
"""The most rows, bytes of a row, or units of a scale that a suite can ask for."""
MAX_SHARE = 1e6
"""The most that data may be of the memory, that a table may grow by, or that a step may do of the rows."""
Memory = Annotated[int, BeforeValidator(_memory), WithJsonSchema({"type": "string"})]
"""An amount of memory in bytes, written as `1G` or `512M`."""
Option = str | int | float | bool
"""The value of an option of a load generator."""


class Strict(BaseModel):
    """A part of a suite.toml, in which a key that is not known is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")
