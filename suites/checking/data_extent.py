"""How large loaded data are: rows, bytes, the depth of the deepest index, and the cache of their server."""

from suites.checking.queries import connected
from suites.engine import DataExtent
from suites.engines import engine_of
from suites.server import Address


def data_extent(address: Address) -> DataExtent:
    """Return how large the data of a database are. Raises QueryError.

    The depth of indexes is read from their files, and is that of the last checkpoint.
    """
    with connected(address.of_admin) as connection, connection.cursor() as cursor:
        return engine_of(address.engine).extent(cursor)
