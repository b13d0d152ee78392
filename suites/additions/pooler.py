"""PgBouncer between clients and a Postgres server."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psycopg

from suites.additions.companion import Companion
from suites.postgres.connecting import connect
from suites.processes import tool, write_for_server
from suites.server import Address, postgres_port

PORT = 6432
SERVER_CONNECTIONS = 32
"""Connections to the server, which all clients share."""

MAX_CLIENTS = 20_000
PROGRAM = "pgbouncer"

# Its socket is beside the server's, whose length was checked, and which only the server's user reaches.
_CONFIGURATION = """[databases]
{database} = host={folder} port={port} user={user} dbname={database}
[pgbouncer]
listen_port = {listen}
listen_addr =
unix_socket_dir = {folder}
unix_socket_mode = 0700
auth_type = any
pool_mode = {mode}
default_pool_size = {pool}
max_client_conn = {clients}
ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
stats_period = 3600
"""


def configuration_before(
    server: Address, *, mode: str = "transaction", connections: int = SERVER_CONNECTIONS
) -> str:
    """Return the configuration of a PgBouncer whose socket is beside that of a server, on PORT."""
    return _CONFIGURATION.format(
        database=server.database,
        user=server.user,
        folder=server.socket.parent,
        port=postgres_port(server.socket),
        listen=PORT,
        mode=mode,
        pool=connections,
        clients=MAX_CLIENTS,
    )


class Pooler(Companion):
    """PgBouncer in transaction mode."""

    @property
    def address(self) -> Address:
        """The socket of PgBouncer, with the same user and database."""
        return replace(self.server, socket=self.server.socket.with_name(f".s.PGSQL.{PORT}"))

    def prepare(self) -> None:
        """Write its configuration."""
        write_for_server(self._file, configuration_before(self.server))

    def command(self) -> Sequence[str | Path]:
        """Return the command line; it logs to stderr."""
        return [tool(PROGRAM), self._file]

    def is_ready(self) -> bool:
        """Return whether a statement gets through to the server."""
        try:
            # What is prepared would be on another connection of the server next time.
            with connect(self.address, prepare_threshold=None) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def clear(self) -> None:
        """Remove its socket, which a killed pooler leaves."""
        self.address.socket.unlink(missing_ok=True)
        self.address.socket.with_name(f"{self.address.socket.name}.lock").unlink(missing_ok=True)

    @property
    def _file(self) -> Path:
        return self.folder / "pgbouncer.ini"
