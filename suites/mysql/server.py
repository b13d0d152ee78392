"""A MySQL server on a data directory of its own."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pymysql
from pymysql.connections import Connection

from build.build import Build
from build.version import Engine
from suites.capabilities import login_plugin
from suites.durability import Durability
from suites.mysql import reset
from suites.mysql.configuration import render
from suites.processes import as_server_user, how_it_ended, own, require_reachable, run, start, tail_of
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


class MysqlServer:
    """Implements suites.server.Server. All of it lies in `folder`: `data/`, `my.cnf`, socket and logs."""

    def __init__(
        self,
        build: Build,
        sizes: Sizes,
        durability: Durability,
        folder: Path,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.build = build
        self.cores = sizes.workers
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "server.log"
        self.limits = reset.Limits()
        self.address = Address(Engine.MYSQL, folder / SOCKET, NAME, NAME, NAME)
        self._configuration = render(build, sizes, durability, folder, settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """mysqld."""
        if self._process is None:
            raise ServerError(f"{self.build.version} is not running", where=str(self.folder))
        return self._process.pid

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
        (self.folder / "my.cnf").write_text(self._configuration, encoding="utf-8")
        (self.folder / "my.cnf").chmod(0o644)
        own(self.folder / "my.cnf")
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
        self.log.touch()
        own(self.log)
        argv = as_server_user(self._command(), dies_by="TERM")
        self._process = start(argv, subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
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
        process, self._process = self._process, None
        if process is None:
            return
        for order, patience in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 30)):
            if process.poll() is not None:
                break
            process.send_signal(order)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
        self.address.socket.unlink(missing_ok=True)
        self.address.socket.with_name(SOCKET + ".lock").unlink(missing_ok=True)

    def destroy(self) -> None:
        """Stop, without waiting for pages to be written, and delete the folder."""
        if self._process is not None and self._process.poll() is None:
            # Nothing of the data directory is kept, so that writing it out would be time for nothing.
            self._process.kill()
            self._process.wait()
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def death(self) -> str | None:
        """None while mysqld runs; else how it ended and the tail of its log."""
        if self._process is None:
            return "it was stopped"
        status = self._process.poll()
        if status is None:
            return None
        return f"{how_it_ended(status)}; the end of its log:\n{tail_of(self.log)}"

    def settings(self) -> Mapping[str, str]:
        """Every global variable as the server sees it."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL VARIABLES")
            return {str(name): str(value) for name, value in cursor.fetchall()}

    def counters(self) -> Mapping[str, float]:
        """Bytes of redo written (the log sequence number), and pages flushed since the start."""
        with self.connect() as connection:
            return {
                "wal_bytes": float(reset.log_sequence_number(connection)),
                "pages_flushed": reset.status(connection, "Innodb_buffer_pool_pages_flushed"),
            }

    def reset(self) -> Mapping[str, float]:
        """Purge, flush, verify: see suites.mysql.reset."""
        with self.connect() as connection:
            return reset.reset(connection, NAME, self.limits)

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
