"""What a Postgres server does beside queries, as its processes say."""

from collections.abc import Callable, Collection

from suites.accounting.activity import CHECKPOINT, DATA_WAIT, LOG_WAIT, VACUUM
from suites.postgres.connecting import Connection

# The function behind pg_stat_activity, without the names that the view looks up. The wait events have
# other capitals before 17. A checkpointer without one has just woken up, or computes.
_ACTIVITIES = """
SELECT count(*) FILTER (WHERE backend_type = 'checkpointer'
                        AND lower(wait_event) <> 'checkpointermain') > 0,
       count(*) FILTER (WHERE backend_type = 'autovacuum worker') > 0,
       2 * count(*) FILTER (WHERE backend_type = 'client backend'
           AND lower(wait_event) IN ('walwrite', 'walsync', 'walinsert', 'walbufmapping'))
       > {working},
       2 * count(*) FILTER (WHERE backend_type = 'client backend'
           AND (lower(wait_event) LIKE 'datafile%' OR lower(wait_event) = 'aioiocompletion'))
       > {working},
       {checkpoints},
       {vacuums}
FROM pg_stat_get_activity(NULL)"""

_WORKING = """count(*) FILTER (WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
           AND wait_event IS DISTINCT FROM 'ClientRead')"""

_CHECKPOINTS = {
    170000: "pg_stat_get_checkpointer_num_timed() + pg_stat_get_checkpointer_num_requested()",
    150000: "pg_stat_get_bgwriter_timed_checkpoints() + pg_stat_get_bgwriter_requested_checkpoints()",
    0: "(SELECT checkpoint_lsn FROM pg_control_checkpoint())",
}
"""Server version -> what another checkpoint changes, which also tells of one between two questions. Before 15
the counters come from a file that another process writes, up to half a second late: the control file has the
last one that ended."""


_VACUUMS = {
    150000: "(SELECT COALESCE(sum(pg_stat_get_autovacuum_count(oid)), 0) FROM pg_class "
    "WHERE relkind = 'r' AND oid >= 16384)",
    0: "0",
}
"""Server version -> the autovacuums of tables of users that have ended: one that ran while other servers had
their slices was seen by no question. Before 15 the file of the counters would have to be waited for."""


def activity_reader(connection: Connection) -> Callable[[], Collection[str]]:
    """Return what reads the activities since the last call. Both raise psycopg.Error."""
    version = connection.info.server_version
    counted = {
        name: next(text for least, text in texts.items() if version >= least)
        for name, texts in (("checkpoints", _CHECKPOINTS), ("vacuums", _VACUUMS))
    }
    query = _ACTIVITIES.format(working=_WORKING, **counted)
    known: tuple[object, ...] = ()

    def read() -> Collection[str]:
        nonlocal known
        row = connection.execute(query, prepare=True).fetchone()
        assert row is not None
        checkpointing, vacuuming, for_log, for_data, *ended = row
        before, known = known or tuple(ended), tuple(ended)
        found = {
            CHECKPOINT: checkpointing or before[0] != ended[0],
            VACUUM: vacuuming or before[1] != ended[1],
            LOG_WAIT: for_log,
            DATA_WAIT: for_data,
        }
        return [name for name, goes_on in found.items() if goes_on]

    return read


def checkpoint_ended(connection: Connection, lsn: str) -> bool:
    """Return whether a checkpoint is over that began at a place in the WAL, or after it.

    The control file has the place where the last finished one began. Raises psycopg.Error.
    """
    query = "SELECT redo_lsn >= %s::pg_lsn FROM pg_control_checkpoint()"
    row = connection.execute(query, [lsn]).fetchone()
    assert row is not None
    return bool(row[0])


def deadlocks(connection: Connection) -> float:
    """Return how many transactions the server has ended because of a deadlock. Raises psycopg.Error.

    A backend adds its own at the latest when its client goes.
    """
    row = connection.execute("SELECT sum(deadlocks) FROM pg_stat_database").fetchone()
    assert row is not None
    return float(row[0] or 0)
