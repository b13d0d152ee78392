"""A MySQL server with a data directory of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from build.build import Build
from suites.capabilities import knows_setting, login_plugin
from suites.innodb.reset import DRIVEN
from suites.innodb.server import InnodbServer
from suites.mysql.roles import role_of
from suites.processes import delete_in


class MysqlServer(InnodbServer):
    """A MySQL server."""

    SOCKET = "mysqld.sock"
    TEMPLATE = Path(__file__).with_name("my.cnf.in")
    DRIVEN: ClassVar[Mapping[str, str]] = {
        **DRIVEN,
        # Purge truncates the history in batches, and sleeps while up to 128 of them are left.
        "innodb_purge_rseg_truncate_frequency": "1",
    }

    # The memory of performance_schema, which takes no lock of the server, unlike SHOW PROCESSLIST.
    CLIENT_STATES = (
        "SELECT processlist_state FROM performance_schema.threads"
        " WHERE processlist_command IN ('Query', 'Execute') AND processlist_id <> CONNECTION_ID()"
    )

    @staticmethod
    def check_options(build: Build) -> tuple[str, ...]:
        """Return the option of MySQL 8.0.16 and newer."""
        return ("--validate-config",) if knows_setting(build, "validate_config") else ()

    def initialize_command(self) -> list[str | Path]:
        """Return mysqld's command line for creating the data directory."""
        return [*self.command(), "--initialize-insecure"]

    def identified(self, password: str) -> str:
        """Return the clause with the plugin of the version."""
        return f"IDENTIFIED WITH {login_plugin(self.build)} BY '{password}'"

    def keep(self) -> None:
        """Do as for every engine, and delete spare redo log files, which the server creates on start."""
        super().keep()
        redo = self.loaded / "#innodb_redo"
        if redo.is_dir():  # since 8.0.30
            delete_in(redo, "#ib_redo*_tmp")

    def roles(self) -> Mapping[int, str]:
        """Return thread id -> role: `client connection`, `page cleaner`, `purge`, `log writer` and others."""
        query = "SELECT thread_os_id, name FROM performance_schema.threads WHERE thread_os_id IS NOT NULL"
        request = self.request("reading the threads")
        with request, self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return {int(thread): role_of(str(name)) for thread, name in cursor.fetchall()}
