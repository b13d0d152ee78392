"""What is wrong with a plan, in lines for people."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from build.errors import did_you_mean

_NO_POOLS = (
    "boxes share no tasks any more: remove it, and name the boxes of each task by its key `boxes`; measured"
    " series stay where they are"
)


def mistakes(error: ValidationError) -> Sequence[str]:
    """Return a line for each mistake: the key and the reason, and of an unknown word the nearest one."""
    found = []
    for mistake in error.errors(include_url=False):
        key = ".".join(str(part) for part in mistake["loc"])
        reason: Any = mistake["msg"].removeprefix("Value error, ")
        if mistake["type"] == "enum":  # an engine, or how releases are followed
            expected = mistake["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
            reason = f"{reason}; {did_you_mean(str(mistake['input']), expected)}".removesuffix("; ")
        elif mistake["type"] == "extra_forbidden" and mistake["loc"][-1] in ("pool", "pools"):
            reason = _NO_POOLS
        found.append(f"{key}: {reason}" if key else str(reason))
    return found
