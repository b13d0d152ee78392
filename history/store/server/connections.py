"""Connections to a Postgres server that may go away: how soon that is noticed, and what a pooler allows."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import URL, Engine, event

from build.programs import environment

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
    which knows nothing of it (www.pgbouncer.org/features.html). libpq finds its variables by itself, except
    PGSERVICE, which is kept from it while servers are measured.
    """
    if url.get_driver_name() != "psycopg":
        return {}
    service = environment.caller_value("PGSERVICE")
    ours = {**_OURS, "service": service} if service else _OURS
    return {"prepare_threshold": None} | {
        name: value for name, value in ours.items() if name not in url.query
    }


def configure_postgres(connection: Any, lock_timeout_ms: int) -> None:
    """Let the server notice a box that is gone, and give up waiting for a lock.

    Behind a pooler all this is about one of its connections; who writes does not depend on it.
    """
    chosen = {"lock_timeout": lock_timeout_ms, **_KEEPALIVE}
    # One statement, because a network may take its time for each.
    parts = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in chosen.items())
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {parts}")
    connection.commit()


class Watch:
    """Ends a connection that a transaction waits for in vain: its next word raises an error of the driver.

    A server that is frozen, or behind a proxy that passes nothing on, answers TCP and nothing else, so that
    no time limit of libpq applies, except to the first words of a connection.
    """

    def __init__(self, engine: Engine) -> None:
        self._used = threading.local()
        for name in ("connect", "checkout"):
            # Before SQLAlchemy's own, which asks the server already.
            event.listen(engine.pool, name, self._note, insert=True)

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Give what this thread asks of the server at most so many seconds."""
        sockets: list[socket.socket] = []
        self._used.sockets = sockets
        timer = threading.Timer(seconds, _shut, [sockets])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._used.sockets = None
            for open_socket in sockets:
                open_socket.close()

    def _note(self, connection: Any, *_: object) -> None:
        sockets, pgconn = getattr(self._used, "sockets", None), getattr(connection, "pgconn", None)
        if sockets is not None and pgconn is not None:
            # A descriptor of its own: that of libpq may be another file's by then.
            sockets.append(socket.socket(fileno=os.dup(pgconn.socket)))


def _shut(sockets: list[socket.socket]) -> None:
    for open_socket in list(sockets):
        with suppress(OSError):
            open_socket.shutdown(socket.SHUT_RDWR)
