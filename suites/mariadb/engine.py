"""MariaDB as an engine."""

from suites.innodb.engine import InnodbEngine, setup_client
from suites.innodb.session import InnodbSession
from suites.mariadb.server import MariadbServer

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
