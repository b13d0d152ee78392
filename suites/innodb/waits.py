"""What the clients of a server of the MySQL family do at a moment, as the states of their threads say."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from suites.server import WAITING, WORKING

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

STATES_PER_SECOND = 4.0
"""How often a server is asked: both questions together take a millisecond of CPU time."""

ROW_LOCK = "row lock"
"""What stands for the state of clients that wait for a row lock, which no state of a thread says."""

_ROW_LOCKS = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_row_lock_current_waits'"
"""The number of clients that wait for a row lock, which InnoDB counts by default. It is most of the cost."""

_WAITS = re.compile(r"wait|\block\b|^sending to client|^writing to net", re.IGNORECASE)
"""Matches the states in which a query waits, such as `waiting for handler commit` and `System lock`."""


def states_by(cursor: "Cursor", query: str) -> Mapping[str, int]:
    """Return suites.server.ClientStates of a `query` for states. Raises pymysql.err.Error."""
    cursor.execute(query)
    names = [str(state or "no state").replace(";", ",") for (state,) in cursor.fetchall()]
    locked = 0
    if not all(map(_WAITS.search, names)):
        cursor.execute(_ROW_LOCKS)
        locked = sum(int(str(count)) for (count,) in cursor.fetchall())
    return states_of(names, locked)


def states_of(names: Iterable[str], locked: int) -> Mapping[str, int]:
    """Return the number of clients by their states, of which so many are `locked`.

    One that waits for a row lock is in the stage of its statement too, such as `updating`, from which it is
    taken: from the stage with most clients first.
    """
    clients, kept = Counter(names), 0
    for name, number in clients.most_common():
        if not _WAITS.search(name):
            taken = min(number, locked - kept)
            clients[name] -= taken
            kept += taken
    clients[ROW_LOCK] += kept
    return {
        f"{WAITING if _WAITS.search(name) else WORKING};{name}": number for name, number in (+clients).items()
    }
