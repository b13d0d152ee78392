"""What the clients of a Postgres server do at a moment, as the server's wait events say."""

from collections import Counter
from collections.abc import Callable, Mapping

import psycopg

from suites.postgres.connecting import Connection
from suites.server import CPU, WAITING, WORKING

# The function behind pg_stat_activity, without the names of users and databases that the view looks up. A
# backend without a wait event executes, or waits for a core; one that waits for its client has no query. The
# column `state` says the same of a moment before, in which short queries end. Grouped here, which is cheaper.
_STATES = f"""
SELECT coalesce('{WAITING};' || wait_event_type || ':' || wait_event, '{WORKING};{CPU}')
FROM pg_stat_get_activity(NULL)
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND wait_event IS DISTINCT FROM 'ClientRead'"""

_NAME = b"client_states"


def states_reader(connection: Connection) -> Callable[[], Mapping[str, int]]:
    """Return what reads the states through a connection. Both raise psycopg.Error.

    By libpq itself: a cursor of psycopg would use as much CPU time again.
    """
    libpq = connection.pgconn
    libpq.prepare(_NAME, _STATES.encode())

    def read() -> Mapping[str, int]:
        result = libpq.exec_prepared(_NAME, None)
        if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            raise psycopg.OperationalError(libpq.get_error_message())
        return Counter((result.get_value(row, 0) or b"").decode() for row in range(result.ntuples))

    return read
