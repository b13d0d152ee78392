"""A program that reads the binary log of a MySQL or MariaDB server as a replica does, and throws it away.

    python -m suites.additions.binlog_stream SOCKET USER PROGRESS

It streams from the present end of the log, and keeps in the file PROGRESS how far it has come. It ends with
an error when the server closes the connection. The password is in MYSQL_PWD.
"""

import mmap
import os
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pymysql.connections import Connection
from pymysql.constants import COMMAND
from pymysql.cursors import Cursor

SERVER_ID = 1_000_003
"""The id of this replica, which no server has."""

PROGRESS_BYTES = 512
_PLACE = struct.Struct("<Q504s")
"""The file PROGRESS: the position, and the name of the log's file, filled up with zero bytes."""

ROTATE = 4
"""The type of the event that names the next file (binlog_event.h of both servers)."""

_HEADER = struct.Struct("<xIBIIIH")
"""After the byte that says that no error follows: time, type, server, length, end position, flags."""

CHUNK_BYTES = 1 << 20

_PACKET = 4
"""Bytes before each packet: three of its length, one of its number."""

# A checksum of four bytes may follow the name.
_NAME = re.compile(rb"[A-Za-z0-9_-]{1,200}\.[0-9]{6,10}")

# MariaDB: events of global transaction ids too. Both: checksums as they are in the log.
_SET_UP = (
    "SET @mariadb_slave_capability = 4",
    "SET @master_binlog_checksum = @@global.binlog_checksum",
    "SET @source_binlog_checksum = @@global.binlog_checksum",
)

if TYPE_CHECKING:
    _Connection = Connection[Cursor]
else:
    _Connection = Connection  # which takes no parameter when the program runs

Position = tuple[str, int]
"""A file of the log, and the bytes of it up to some event."""


def main() -> int:
    """Stream until the server ends."""
    socket, user, progress = sys.argv[1:]
    connection = Stream(unix_socket=socket, user=user, password=os.environ["MYSQL_PWD"])
    begin = logs(connection)[-1]
    with Path(progress).open("x+b") as file:
        file.truncate(PROGRESS_BYTES)
        with mmap.mmap(file.fileno(), PROGRESS_BYTES) as shared:
            for name, position in _positions(connection, begin):
                _PLACE.pack_into(shared, 0, position, name.encode())
    return 1


def progress_in(file: Path) -> Position | None:
    """Return how far a stream has come, as it says in its file; None before it has begun."""
    try:
        position, name = _PLACE.unpack(file.read_bytes())
    except (OSError, struct.error):
        return None
    text = name.rstrip(b"\0").decode("ascii", errors="replace")
    return (text, position) if text else None


def logs(connection: "Connection[Any]") -> list[Position]:
    """Return the files of the binary log with their sizes. Raises pymysql's error if there is no log."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        return [(str(row[0]), int(row[1])) for row in cursor.fetchall()]


class Stream(_Connection):
    """A connection over which a server sends its log. pymysql's own packets would take most of the time."""

    def request(self, begin: Position) -> None:
        """Ask for the log from `begin` on."""
        with self.cursor() as cursor:
            for statement in _SET_UP:
                cursor.execute(statement)
        name, position = begin
        request = struct.pack("<IHI", position, 0, SERVER_ID) + name.encode()
        self._execute_command(COMMAND.COM_BINLOG_DUMP, request)  # type: ignore[attr-defined]

    def arrived(self) -> bytes:
        """Wait for bytes of the log; none when the server has closed the connection."""
        chunk: bytes = self._rfile.read1(CHUNK_BYTES)  # type: ignore[attr-defined]
        return chunk


def _positions(stream: Stream, begin: Position) -> Iterator[Position]:
    """Yield how far the stream has come, whenever something has arrived."""
    stream.request(begin)
    rest, reached = b"", begin
    yield reached
    while arrived := stream.arrived():
        rest, reached = after(rest + arrived, reached)
        yield reached


def after(packets: bytes, reached: Position) -> tuple[bytes, Position]:
    """Return what follows the last whole one of the `packets`, and where the log stands after it.

    The log stood at `reached` before. Raises ValueError for an error of the server, and for what is no event.
    """
    name, position = reached
    offset, length = 0, len(packets)
    while offset + _PACKET <= length:
        size = int.from_bytes(packets[offset : offset + 3], "little")
        event = offset + _PACKET
        if event + size > length:
            break
        if size < _HEADER.size or packets[event] != 0:
            raise ValueError(f"no event: {packets[event : event + min(size, 200)]!r}")
        _, kind, _, _, end, _ = _HEADER.unpack_from(packets, event)
        if kind == ROTATE:
            match = _NAME.match(packets, event + _HEADER.size + 8, event + size)
            if match is None:
                raise ValueError("a rotation without the name of a file")
            name, position = match[0].decode(), struct.unpack_from("<Q", packets, event + _HEADER.size)[0]
        elif end > position:
            # What is made up for this connection, such as a heartbeat, has no position or an earlier one.
            position = end
        offset = event + size
    return packets[offset:], (name, position)


if __name__ == "__main__":
    sys.exit(main())
