"""MariaDB: its servers, the roles of their threads, and what it is as an engine."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from build.finished_build import Build
from build.recipes.mariadb import INSTALL_DB
from suites.innodb.engine import InnodbEngine, InnodbSession, setup_client
from suites.innodb.server import OPTION_FILE, InnodbServer

CONNECTION = "client connection"
"""The role of a thread of the process list, as MySQL's have it."""

BACKGROUND = "background"
"""The role of a thread without a name of its own: of all but connections in releases such as 10.11."""

_ROLES = {
    "page_cleaner": "page cleaner",
    # One pool runs purge, the completion of I/O and checkpoints.
    "ib_tpool_worker": "InnoDB worker",
    "my_getevents": "io",
    "io_uring_wait": "io",
    "signal_handler": "signal handler",
}


def role_of(name: str) -> str:
    """Return the role of a thread that the kernel calls `name`."""
    return _ROLES.get(name, BACKGROUND)


class MariadbServer(InnodbServer):
    """A MariaDB server."""

    SOCKET = "mariadbd.sock"
    TEMPLATE = Path(__file__).with_name("mariadb.cnf.in")

    CLIENT_STATES = (
        "SELECT state FROM information_schema.processlist"
        " WHERE command IN ('Query', 'Execute') AND id <> CONNECTION_ID()"
    )

    @staticmethod
    def check_options(build: Build) -> tuple[str, ...]:
        """Return options of every version; without --verbose it does not read settings of storage engines."""
        del build
        return ("--help", "--verbose")

    def initialize_command(self) -> list[str | Path]:
        """Return the command line of mariadb-install-db, which feeds SQL to a server without connections."""
        return [
            self.build.prefix / INSTALL_DB,
            f"--defaults-file={self.folder / OPTION_FILE}",
            f"--basedir={self.build.prefix}",
            f"--datadir={self.data}",
            # With the other method there is a root without password for addresses, too.
            "--auth-root-authentication-method=socket",
            "--skip-test-db",
            # Without looking up the host's name, which no account needs.
            "--force",
        ]

    def identified(self, password: str) -> str:
        """Return the clause with MariaDB's default plugin, mysql_native_password."""
        return f"IDENTIFIED BY '{password}'"

    def roles(self) -> Mapping[int, str]:
        """Return thread id -> role: `client connection`, or what the name of a background thread says.

        performance_schema, from which MySQL's come, is off in MariaDB unless it is switched on.
        """
        query = "SELECT tid FROM information_schema.processlist WHERE tid <> 0"
        request = self.request("reading the threads")
        with request, self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            connections = {int(str(row[0])) for row in cursor.fetchall()}
        roles = dict.fromkeys(connections, CONNECTION)
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(OSError):
                roles.setdefault(int(thread.name), role_of((thread / "comm").read_text().strip()))
        return roles


MEMORY_OF_MARIADB = 160 * 1024**2
"""What MariaDB needs beside its buffer pool: 11.8.6 with one client has 75 MiB, and 25 MiB of its program."""


class MariadbSession(InnodbSession):
    """MariaDB's max_statement_time holds for every statement; MySQL's max_execution_time for SELECT alone."""

    limit = "SET SESSION max_statement_time = {seconds:.3f}"


class Mariadb(InnodbEngine):
    """MariaDB."""

    server = MariadbServer
    session_class = MariadbSession
    socket = MariadbServer.SOCKET
    memory_beside_buffers = MEMORY_OF_MARIADB
    setup = setup_client("mariadb")
