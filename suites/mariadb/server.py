"""A MariaDB server with a data directory of its own."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from build.build import Build
from build.recipes.mariadb import INSTALL_DB
from suites.innodb.server import OPTION_FILE, InnodbServer
from suites.mariadb.roles import CONNECTION, role_of


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
