"""A MySQL server with a data directory of its own."""

import contextlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pymysql
from pymysql.connections import Connection

from build.build import Build
from build.version import Engine
from suites.capabilities import login_plugin
from suites.durability import Durability
from suites.lifecycle import LocalServer
from suites.mysql import reset
from suites.mysql.configuration import render
from suites.mysql.roles import role_of
from suites.processes import (
    as_server_user,
    open_log,
    own,
    require_reachable,
    run,
    start,
    tail_of,
    write_for_server,
)
from suites.server import Address, Instrument, ServerError, require_short
from suites.sizing import Sizes

NAME = "tidemark"
"""Account, password and database. Only the server's user can access the folder of the socket."""

SOCKET = "mysqld.sock"
START_SECONDS = 300
"""Time limit of a start, including crash recovery."""
STOP_SECONDS = 300
"""Time limit of a shutdown, which writes all dirty pages."""

HISTORY_FILE = "mysql_upgrade_history"
"""The file in the data directory, from 8.4 on, that lists the versions that have used it."""


class MysqlServer(LocalServer):
    """A MySQL server; implements suites.server.Server. Its `my.cnf` is beside the data directory."""

    def __init__(
        self,
        build: Build,
        sizes: Sizes,
        durability: Durability,
        folder: Path,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(build, sizes, folder, Address(Engine.MYSQL, folder / SOCKET, NAME, NAME, NAME))
        self.limits = reset.ResetLimits()
        self._configuration = render(build, sizes, durability, folder, settings or {})

    def create(self) -> None:
        """Create `my.cnf` and, with `--initialize-insecure`, the data directory. Raises ServerError."""
        require_short(self.address.socket)
        require_reachable(self.build.prefix)
        require_reachable(self.folder.parent)
        if self.data.exists():
            self._require_own_data()
            raise ServerError(
                "the data directory exists already",
                where=str(self.data),
                hint="remove it, or start the server instead of creating it",
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        own(self.folder)
        write_for_server(self.folder / "my.cnf", self._configuration)
        log_error = f"--log-error={self.folder / 'initialize.log'}"
        argv = [*self._command(), "--initialize-insecure", log_error]
        try:
            run(
                as_server_user(argv, dies_by="TERM"),
                what=f"initializing {self.build.version}",
                cwd=self.folder,
            )
        except Exception as error:
            last_lines = tail_of(self.folder / "initialize.log")
            raise ServerError(
                f"{self.build.version} cannot create a data directory: {last_lines}", where=str(self.folder)
            ) from error

    def start(self, instrument: Instrument | None = None) -> None:
        """Start mysqld, with crash recovery if necessary, and wait until it accepts connections."""
        self._require_own_data()
        open_log(self.log).close()
        command, bound_to = self._command(), self._bound_to
        if instrument is not None:
            settings = (f"--{name}={value}" for name, value in instrument.settings.items())
            command, bound_to = [*instrument.command, *command, *settings], None
        argv = as_server_user(command, dies_by="TERM")
        self._process = start(
            argv, subprocess.DEVNULL, bound_to=bound_to, stderr=subprocess.DEVNULL, cwd=self.folder
        )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._connect("root", "").close()
                break
            except pymysql.err.OperationalError as error:
                self._require_starting(error, deadline)
            time.sleep(0.05)
        # The loaded data, from which a server starts under an instrument, have the account.
        if instrument is None:
            self._create_account()

    def connect(self) -> "Connection[pymysql.cursors.Cursor]":
        """Return a connection in autocommit mode. Raises ServerError if the server refuses it."""
        try:
            return self._connect(NAME, NAME)
        except pymysql.err.OperationalError as error:
            raise ServerError(
                f"{self.build.version} refuses the login of '{NAME}': {error.args[-1]}",
                where=str(self.log),
                hint="check whether the account was dropped or locked; a new run creates it again",
            ) from error

    def stop(self) -> None:
        """Shut down by SIGTERM, and after STOP_SECONDS by SIGKILL. InnoDB uses no shared memory."""
        self._end(((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 30)))
        self._remove_socket()

    def abandon(self) -> None:
        """Kill the server, because flushing dirty pages that are no longer needed would waste time."""
        self._end(((signal.SIGKILL, 30),))
        self._remove_socket()

    def keep(self) -> None:
        """Do as for every engine, and delete spare redo log files, which the server creates on start."""
        super().keep()
        for spare in (self.loaded / "#innodb_redo").glob("#ib_redo*_tmp"):
            spare.unlink()

    def settings(self) -> Mapping[str, str]:
        """Return every global variable of the running server."""
        request = self._request("reading the settings")
        with request, self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL VARIABLES")
            return {str(name): str(value) for name, value in cursor.fetchall()}

    def counters(self) -> Mapping[str, float]:
        """Return the bytes of redo written (log sequence number) and the pages flushed since the start."""
        with self._request("reading the counters"), self.connect() as connection:
            return {
                "wal_bytes_per_op": float(reset.log_sequence_number(connection)),
                "pages_flushed_per_op": reset.status(connection, "Innodb_buffer_pool_pages_flushed"),
            }

    def roles(self) -> Mapping[int, str]:
        """Return thread id -> role: `client connection`, `page cleaner`, `purge`, `log writer` and others."""
        query = "SELECT thread_os_id, name FROM performance_schema.threads WHERE thread_os_id IS NOT NULL"
        request = self._request("reading the threads")
        with request, self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return {int(thread): role_of(str(name)) for thread, name in cursor.fetchall()}

    def reset(self) -> Mapping[str, float]:
        """Purge, flush and verify; see suites.mysql.reset."""
        with self._request("the reset"), self.connect() as connection:
            return reset.reset(connection, NAME, self.limits)

    @contextlib.contextmanager
    def _request(self, what: str) -> Iterator[None]:
        """Convert errors of pymysql, such as after the death of the server, into ServerError."""
        try:
            with self._answering(what):
                yield
        except pymysql.err.Error as error:
            reason = self._death_soon() or str(error)
            raise ServerError(
                f"{self.build.version}: {what} failed: {reason}", where=str(self.log)
            ) from error

    def _remove_socket(self) -> None:
        self.address.socket.unlink(missing_ok=True)
        self.address.socket.with_name(SOCKET + ".lock").unlink(missing_ok=True)

    def _command(self) -> list[str | Path]:
        return [self.build.program("mysqld"), f"--defaults-file={self.folder / 'my.cnf'}"]

    def _connect(self, user: str, password: str) -> "Connection[pymysql.cursors.Cursor]":
        socket = str(self.address.socket)
        return pymysql.connect(
            unix_socket=socket, user=user, password=password, autocommit=True, connect_timeout=10
        )

    def _require_starting(self, error: pymysql.err.OperationalError, deadline: float) -> None:
        """Raise ServerError if mysqld has ended, refuses the login, or has not started at the deadline."""
        ended = self.death()
        if ended is not None:
            raise ServerError(f"{self.build.version} did not start: {ended}", where=str(self.log)) from error
        if error.args[0] == pymysql.constants.ER.ACCESS_DENIED_ERROR:
            self.stop()
            raise ServerError(f"{self.build.version} refuses the login of root: {error.args[-1]}") from error
        if time.monotonic() > deadline:
            self.stop()
            raise ServerError(
                f"{self.build.version} did not answer within {START_SECONDS} s: {tail_of(self.log)}",
                where=str(self.log),
            ) from error

    def _create_account(self) -> None:
        plugin = login_plugin(self.build)
        with self._connect("root", "") as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE USER IF NOT EXISTS {NAME}@localhost IDENTIFIED WITH {plugin} BY '{NAME}'")
            cursor.execute(f"GRANT ALL ON *.* TO {NAME}@localhost")
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {NAME}")

    def _require_own_data(self) -> None:
        """Raise ServerError if another version has used the data directory: mysqld would upgrade it."""
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
            history = json.loads((self.data / HISTORY_FILE).read_text())["upgrade_history"]
            last = re.sub(r"[^0-9.].*", "", str(history[-1]["version"]))
            if last != self.build.release:
                raise ServerError(
                    f"the data directory was last used by MySQL {last}, not {self.build.release}",
                    where=str(self.data),
                    hint="remove it: every version must be measured on a data directory that it has created",
                )
