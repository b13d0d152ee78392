"""The statements of a step, as the sysbench script of its suite prints them."""

import re
from collections.abc import Sequence

_STATEMENT = re.compile(r"tidemark: statement [a-z_]+: (.+)")


def statements_in(output: str) -> Sequence[str]:
    """Return the statements in the output of a script's command `statements`."""
    return [match[1] for line in output.splitlines() if (match := _STATEMENT.fullmatch(line))]
