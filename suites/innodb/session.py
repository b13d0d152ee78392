"""A session of PyMySQL for long queries: statements, a limit of their time, and loading a table."""

from pathlib import Path

from pymysql.cursors import SSCursor

from suites.engine import Rows, RowsError
from suites.innodb.connecting import connect
from suites.server import Address

CONNECT_SECONDS = 60
"""How long a server that works for other streams may take to accept a connection."""


class InnodbSession:
    """A session of PyMySQL."""

    limit = "SET SESSION max_execution_time = {milliseconds:.0f}"
    """The statement that limits the time of later ones."""

    def __init__(self, address: Address) -> None:
        self._address = address
        # Values as the texts that the server sends. No limit but that of the server.
        self._connection = connect(
            address, local_infile=True, connect_timeout=CONNECT_SECONDS, read_timeout=None, conv={}
        )

    def execute(self, text: str) -> Rows:
        """Carry one statement out, and return all its rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            rows: Rows = cursor.fetchall()
            return rows

    def discard(self, text: str) -> None:
        """Carry one statement out, and receive its rows, without the time that PyMySQL takes to read them."""
        with self._connection.cursor(SSCursor) as cursor:
            cursor.execute(text)

    def set_limit(self, seconds: float) -> None:
        """Set the server's own limit."""
        self.execute(self.limit.format(seconds=seconds, milliseconds=max(1, seconds * 1000)))

    def fill(self, table: str, rows: Path) -> None:
        """Load a table with LOAD DATA."""
        self.execute(
            f"LOAD DATA LOCAL INFILE '{rows}' INTO TABLE {table} FIELDS TERMINATED BY ',' "
            "OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\\n' IGNORE 1 LINES"
        )
        # With LOCAL, rows that do not fit are changed or left out, with a warning each.
        for _, _, text in self.execute("SHOW WARNINGS LIMIT 1"):
            raise RowsError(f"{table} does not take its rows: {text}")

    def prepare_load(self) -> None:
        """Compare bytes, as the other engine's C locale does, and keep the load out of the binary log."""
        self.execute(f"ALTER DATABASE {self._address.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        self.execute("SET sql_log_bin = 0")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
