"""A consumer of the binary log of a MySQL or MariaDB server."""

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pymysql

from build.home import ROOT
from suites.additions import binlog_stream
from suites.additions.companion import Companion
from suites.processes import tool


class BinlogConsumer(Companion):
    """suites.additions.binlog_stream in a process of its own. The server has no slot that it could leave."""

    as_server_user = False  # its Python need not be readable for the server's user

    def command(self) -> Sequence[str | Path]:
        """Return the command line."""
        login = [str(self.server.socket), self.server.admin]
        ends_with_us = [tool("setpriv"), "--pdeathsig=TERM", "--"]
        return [*ends_with_us, sys.executable, "-P", "-m", binlog_stream.__name__, *login, self._progress]

    @property
    def environment(self) -> Mapping[str, str]:
        """The modules of this checkout, and the password."""
        return {"PYTHONPATH": str(ROOT), **self.server.of_admin.password_variables}

    def is_ready(self) -> bool:
        """Return whether it has come anywhere."""
        return binlog_stream.progress_in(self._progress) is not None

    def lag_bytes(self) -> float:
        """Return the bytes of the log behind the position that it has come to."""
        reached = binlog_stream.progress_in(self._progress)
        logs = self._logs()
        names = [name for name, _ in logs]
        if reached is None or reached[0] not in names:
            return 0.0
        behind = logs[names.index(reached[0]) :]
        return max(0.0, float(sum(size for _, size in behind) - reached[1]))

    def _logs(self) -> list[binlog_stream.Position]:
        """Return the files of the log; none if the server does not answer, which others report."""
        with contextlib.suppress(pymysql.err.OperationalError), self._connect() as connection:
            return binlog_stream.logs(connection)
        return []

    def _connect(self) -> "pymysql.connections.Connection[Any]":
        server = self.server
        return pymysql.connect(
            unix_socket=str(server.socket), user=server.admin, password=server.admin_password
        )

    @property
    def _progress(self) -> Path:
        return self.folder / "progress"
