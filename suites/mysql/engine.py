"""MySQL: its servers, the roles of their threads, and what it is as an engine."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pymysql

from build.finished_build import Build
from suites.capabilities import knows_setting, login_plugin
from suites.innodb.engine import InnodbEngine, explained_tables, setup_client
from suites.innodb.reset import DRIVEN
from suites.innodb.server import InnodbServer
from suites.processes import delete_in

_ROLES = (
    ("one_connection", "client connection"),
    ("page_flush|page_cleaner", "page cleaner"),
    ("purge|srv_worker", "purge"),
    ("log_", "log writer"),
    ("io_(read|write|ibuf|log)", "io"),
    ("^main$", "main"),
)
"""Pairs of a pattern in the last part of a name and the role. Some names differ between 5.7 and 9.x."""


def role_of(name: str) -> str:
    """Return the role of a thread such as `thread/innodb/page_flush_thread`, or its name if unknown."""
    plain = name.rsplit("/", 1)[-1].removesuffix("_thread")
    for pattern, role in _ROLES:
        if re.search(pattern, plain):
            return role
    return plain.replace("_", " ").replace(";", " ")


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


MEMORY_OF_MYSQL = 576 * 1024**2
"""What MySQL needs beside its buffer pool: 9.7.2 with one client has 510 MiB, and 40 MiB of its program."""


class Mysql(InnodbEngine):
    """MySQL."""

    server = MysqlServer
    socket = MysqlServer.SOCKET
    memory_beside_buffers = MEMORY_OF_MYSQL
    setup = setup_client("mysql")

    def explain(self, connection: Any, statements: Sequence[str]) -> list[str]:
        """Return each plan as a tree."""
        return [_tree(connection.cursor(), text) for text in statements]


def _tree(cursor: "pymysql.cursors.Cursor", text: str) -> str:
    """Return a plan as a tree, or in versions without one (before 8.0.16) its tables and keys."""
    try:
        cursor.execute(f"EXPLAIN FORMAT=TREE {text}")
        return "\n".join(str(row[0]) for row in cursor.fetchall())
    except pymysql.err.Error:
        return explained_tables(cursor, text)
