"""MySQL as an engine."""

from collections.abc import Sequence
from typing import Any

import pymysql

from suites.innodb.engine import InnodbEngine, explained_tables, setup_client
from suites.mysql.server import MysqlServer

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
