"""Plans of statements, as a server's EXPLAIN prints them."""

from collections.abc import Sequence

from build.errors import TidemarkError
from suites.checking.queries import QueryError, connected
from suites.engines import engine_of
from suites.plans.trees import normalized
from suites.server import Address


class ExplainError(TidemarkError):
    """A server cannot explain a statement."""


def explain(address: Address, statements: Sequence[str]) -> str:
    """Return the plans of statements, a paragraph for each in alphabetical order. Raises ExplainError."""
    try:
        with connected(address) as connection:
            plans = engine_of(address.engine).explain(connection, sorted(statements))
    except QueryError as error:
        raise ExplainError(f"the server cannot explain a statement: {error.what}") from error
    return "\n\n".join(map(normalized, plans))
