"""A program that opens connections to a Postgres server, says LISTEN on each, and waits.

    python -m suites.additions.listening FOLDER PORT USER DATABASE COUNT READY

It reads what the server sends, as a listener has to, and makes the file READY when all connections listen. It
ends with an error when the server closes one of them. The password, if there is one, is in PGPASSWORD.
"""

import resource
import selectors
import sys
from pathlib import Path

import psycopg

CHANNEL = "tidemark"
"""The channel on which they listen; whoever notifies another one wakes them up too, before Postgres 19."""

SPARE_FILES = 64


def main() -> int:
    """Listen until the server ends."""
    folder, port, user, database, count, ready = sys.argv[1:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = int(count) + SPARE_FILES
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (needed if most == resource.RLIM_INFINITY else min(needed, most), most)
    )
    with selectors.DefaultSelector() as selector:
        for _ in range(int(count)):
            connection = psycopg.connect(host=folder, port=port, user=user, dbname=database, autocommit=True)
            connection.execute(f"LISTEN {CHANNEL}".encode())
            selector.register(connection.fileno(), selectors.EVENT_READ, connection)
        Path(ready).touch()
        while True:
            for key, _ in selector.select():
                _read(key.data.pgconn)


def _read(connection: psycopg.pq.abc.PGconn) -> None:
    """Take in what has arrived, and throw it away. Raises psycopg.OperationalError at the end."""
    connection.consume_input()
    while connection.notifies() is not None:
        pass


if __name__ == "__main__":
    sys.exit(main())
