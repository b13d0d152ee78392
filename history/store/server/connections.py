"""Connections to a Postgres server that may go away: how soon that is noticed, and what a pooler allows."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import URL, Connection

CONNECT_SECONDS = 10
"""How long a server may take to accept a connection."""

_KEEPALIVE = {"tcp_keepalives_idle": 60, "tcp_keepalives_interval": 10, "tcp_keepalives_count": 6}
"""With these a server releases the locks of a disconnected box after two minutes, not after two hours."""

_OURS = {
    "connect_timeout": CONNECT_SECONDS,
    # In milliseconds and seconds: a network that is gone is noticed within half a minute, by tcp(7).
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
}


def connection_defaults(url: URL) -> dict[str, Any]:
    """Return what psycopg is told beside a URL, whose own parameters win.

    Nothing is prepared: behind a pooler in transaction mode the next transaction has another connection,
    which knows nothing of it (www.pgbouncer.org/features.html).
    """
    if url.get_driver_name() != "psycopg":
        return {}
    return {"prepare_threshold": None} | {
        name: value for name, value in _OURS.items() if name not in url.query
    }


def configure_postgres(connection: Any, _record: object) -> None:
    """Let the server notice a box that is gone. Behind a pooler this is about the pooler's connection."""
    with connection.cursor() as cursor:
        for name, value in _KEEPALIVE.items():
            cursor.execute(f"SET {name} = {value}")
    connection.commit()


@contextmanager
def ended_after(seconds: float, connection: Connection) -> Iterator[None]:
    """End the connection of a transaction that takes longer: its next word raises an error of the driver.

    A server that is frozen, or behind a proxy that passes nothing on, answers TCP and nothing else, so that
    no time limit of libpq applies.
    """
    pgconn = getattr(connection.connection.driver_connection, "pgconn", None)
    if pgconn is None:
        yield
        return
    # A descriptor of its own: that of libpq may be another file's by then.
    ours = socket.socket(fileno=os.dup(pgconn.socket))
    timer = threading.Timer(seconds, _shut, [ours])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        ours.close()


def _shut(ours: socket.socket) -> None:
    with suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)
