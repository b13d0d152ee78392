"""The types of values in a suite.toml."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
TableName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
# Strict, so that "5" and true are not accepted as numbers. TOML has inf and nan, which are not sizes.
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True)]
MAX_ROWS = 10**12
"""The most rows, bytes of a row, or units of a scale that a suite can ask for."""
MAX_SHARE = 1e6
"""The most that data may be of the memory, that a table may grow by, or that a step may do of the rows."""
Option = str | int | float | bool
"""The value of an option of a load generator."""


class Strict(BaseModel):
    """A part of a suite.toml, in which a key that is not known is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")
