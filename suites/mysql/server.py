"""A MySQL server on a data directory of its own."""

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
from suites.server import Address, ServerError, require_short
from suites.sizing import Sizes

NAME = "tidemark"
"""Account, its password and database. The socket lies in a folder that only the server's user can enter."""

SOCKET = "mysqld.sock"
START_SECONDS = 300
"""How long a start may take, crash recovery included."""
STOP_SECONDS = 300
"""How long a shutdown may take: it writes every dirty page."""

HISTORY_FILE = "mysql_upgrade_history"
"""In the data directory from 8.4 on: which versions have used it."""


class MysqlServer(LocalServer):
    """Implements suites.server.Server. Beside its data lies `my.cnf`."""

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
        """`--initialize-insecure`, a start to make account and database, and the server stays down."""
        require_short(self.address.socket)
        require_reachable(self.build.prefix)
        require_reachable(self.folder.parent)
        if self.data.exists():
            self._require_own_data()
            raise ServerError(
                "there is a data directory already", where=str(self.data), hint="remove it, or start it"
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
            said = tail_of(self.folder / "initialize.log")
            raise ServerError(
                f"{self.build.version} cannot make a data directory: {said}", where=str(self.folder)
            ) from error

    def start(self) -> None:
        """Start mysqld, through crash recovery if it must, and wait until it answers."""
        self._require_own_data()
        open_log(self.log).close()
        argv = as_server_user(self._command(), dies_by="TERM")
        self._process = start(
            argv, subprocess.DEVNULL, bound_to=self._bound_to, stderr=subprocess.DEVNULL, cwd=self.folder
        )
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._connect("root", "").close()
                break
            except pymysql.err.OperationalError as error:
                self._require_starting(error, deadline)
            time.sleep(0.05)
        self._create_account()

    def connect(self) -> "Connection[pymysql.cursors.Cursor]":
        """A connection in autocommit mode. Raises ServerError when the server refuses it."""
        try:
            return self._connect(NAME, NAME)
        except pymysql.err.OperationalError as error:
            raise ServerError(
                f"{self.build.version} refuses the login of '{NAME}': {error.args[-1]}",
                where=str(self.log),
                hint="has something dropped or locked the account? Data directories are made anew by a run",
            ) from error

    def stop(self) -> None:
        """Shutdown by SIGTERM; SIGKILL after STOP_SECONDS. InnoDB leaves no shared memory."""
        self._end(((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 30)))
        self._remove_socket()

    def abandon(self) -> None:
        """SIGKILL: to write pages that nobody will read would be time for nothing."""
        self._end(((signal.SIGKILL, 30),))
        self._remove_socket()

    def keep(self) -> None:
        """As for every engine, without spare files of the redo log, which the server makes at its start."""
        super().keep()
        for spare in (self.loaded / "#innodb_redo").glob("#ib_redo*_tmp"):
            spare.unlink()

    def settings(self) -> Mapping[str, str]:
        """Every global variable as the server sees it."""
        asked = self._steering("asking for the settings")
        with asked, self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL VARIABLES")
            return {str(name): str(value) for name, value in cursor.fetchall()}

    def counters(self) -> Mapping[str, float]:
        """Bytes of redo written (the log sequence number), and pages flushed since the start."""
        with self._steering("asking for the counters"), self.connect() as connection:
            return {
                "wal_bytes_per_op": float(reset.log_sequence_number(connection)),
                "pages_flushed_per_op": reset.status(connection, "Innodb_buffer_pool_pages_flushed"),
            }

    def roles(self) -> Mapping[int, str]:
        """What each thread is for: `client connection`, `page cleaner`, `purge`, `log writer` and others."""
        query = "SELECT thread_os_id, name FROM performance_schema.threads WHERE thread_os_id IS NOT NULL"
        asked = self._steering("asking for the threads")
        with asked, self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return {int(thread): role_of(str(name)) for thread, name in cursor.fetchall()}

    def reset(self) -> Mapping[str, float]:
        """Purge, flush, verify: see suites.mysql.reset."""
        with self._steering("the reset"), self.connect() as connection:
            return reset.reset(connection, NAME, self.limits)

    @contextlib.contextmanager
    def _steering(self, what: str) -> Iterator[None]:
        """Turn what pymysql raises, such as when the server dies under a statement, into ServerError."""
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
        """Raise ServerError when mysqld has ended, refuses us, or takes too long."""
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
        """Raise ServerError when another version has used the data directory: mysqld would upgrade it."""
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
            history = json.loads((self.data / HISTORY_FILE).read_text())["upgrade_history"]
            last = re.sub(r"[^0-9.].*", "", str(history[-1]["version"]))
            if last != self.build.release:
                raise ServerError(
                    f"the data directory was left by MySQL {last}, not {self.build.release}",
                    where=str(self.data),
                    hint="remove it: a comparison needs a data directory made by the version itself",
                )
