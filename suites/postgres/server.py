"""A Postgres server on a data directory of its own."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from build.build import Build
from build.version import Engine
from suites.durability import Durability
from suites.lifecycle import LocalServer
from suites.postgres import reset, shared_memory
from suites.postgres.configuration import render
from suites.processes import (
    as_server_user,
    kill_living_in,
    living_in,
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
"""Role and database that the suites use."""

PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
START_SECONDS = 300
"""How long a start may take, crash recovery included."""
FAST_STOP_SECONDS = 120
IMMEDIATE_STOP_SECONDS = 20
_AT_ONCE = ((signal.SIGQUIT, IMMEDIATE_STOP_SECONDS), (signal.SIGKILL, 5.0))

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresServer(LocalServer):
    """Implements suites.server.Server."""

    def __init__(
        self,
        build: Build,
        sizes: Sizes,
        durability: Durability,
        folder: Path,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        address = Address(Engine.POSTGRES, folder / SOCKET, NAME, NAME)
        super().__init__(build, sizes, folder, address)
        self._configuration = render(build, sizes, durability, folder, overrides or {})

    def create(self) -> None:
        """initdb with data checksums, the C locale and trust over the socket; then our configuration."""
        require_short(self.address.socket)
        require_reachable(self.build.prefix)
        self.folder.mkdir(parents=True)
        own(self.folder)
        require_reachable(self.folder.parent)
        initdb: list[str | Path] = [self.build.program("initdb"), "--pgdata", self.data, "--username", NAME]
        options = ["--auth=trust", "--data-checksums", "--encoding=UTF8", "--locale=C", "--no-sync"]
        run(as_server_user([*initdb, *options]), what=f"initdb of {self.build.version}", cwd=self.folder)
        write_for_server(self.data / "postgresql.conf", self._configuration)

    def start(self) -> None:
        """Start the postmaster and wait until it answers."""
        with open_log(self.log) as log:
            argv = as_server_user([self.build.program("postgres"), "-D", self.data])
            self._process = start(
                argv, log, bound_to=self._bound_to, stderr=subprocess.STDOUT, cwd=self.folder
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            ended = self.death()
            if ended is not None:
                raise ServerError(f"{self.build.version} did not start: {ended}", where=str(self.log))
            if time.monotonic() > deadline:
                self.stop()
                raise ServerError(
                    f"{self.build.version} did not answer within {START_SECONDS} s: {tail_of(self.log)}",
                    where=str(self.log),
                )
            time.sleep(0.02)
        self._create_database()

    def connect(self, database: str = NAME) -> Connection:
        """A connection in autocommit mode. Raises ServerError when the server does not take it."""
        try:
            return psycopg.connect(
                host=str(self.folder),
                port=PORT,
                user=NAME,
                dbname=database,
                autocommit=True,
                connect_timeout=10,
            )
        except psycopg.OperationalError as error:
            raise ServerError(
                f"{self.build.version} does not take connections: {str(error).strip()}", where=str(self.log)
            ) from error

    def stop(self) -> None:
        """Fast shutdown; immediate after FAST_STOP_SECONDS; SIGKILL at last. Then nothing of it is left."""
        self._end_cleanly(((signal.SIGINT, FAST_STOP_SECONDS), *_AT_ONCE))

    def abandon(self) -> None:
        """Immediate shutdown, for a data directory that is of no more use; SIGKILL at last."""
        self._end_cleanly(_AT_ONCE)

    def settings(self) -> Mapping[str, str]:
        """Every setting as the server sees it, with its unit in front of none: `8192 8kB` style."""
        with self._steering("asking for the settings"), self.connect() as connection:
            rows = connection.execute(
                "SELECT name, setting || COALESCE(' ' || unit, '') FROM pg_settings ORDER BY name"
            )
            return {str(name): str(value) for name, value in rows}

    def counters(self) -> Mapping[str, float]:
        """Bytes of WAL inserted since initdb."""
        with self._steering("asking for the WAL position"), self.connect() as connection:
            return {"wal_bytes_per_op": float(reset.wal_position(connection))}

    def roles(self) -> Mapping[int, str]:
        """What each process is for: `client backend`, `checkpointer`, `walwriter`, `io worker` and others."""
        with self._steering("asking for the processes"), self.connect() as connection:
            rows = connection.execute("SELECT pid, backend_type FROM pg_stat_activity")
            return {self.pid: "postmaster"} | {int(pid): str(role) for pid, role in rows}

    def reset(self) -> Mapping[str, float]:
        """Vacuum, checkpoint, verify: see suites.postgres.reset."""
        with self._steering("the reset"):
            return reset.reset(self.connect, self.cores)

    @contextlib.contextmanager
    def _steering(self, what: str) -> Iterator[None]:
        """Turn what psycopg raises, such as when the server dies under a statement, into ServerError."""
        try:
            with self._answering(what):
                yield
        except psycopg.Error as error:
            reason = self._death_soon() or str(error).strip()
            raise ServerError(
                f"{self.build.version}: {what} failed: {reason}", where=str(self.log)
            ) from error

    def _create_database(self) -> None:
        with self._steering("making the database"), self.connect("postgres") as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME]).fetchone()
            if row is None:
                connection.execute(f"CREATE DATABASE {NAME}")

    def _answers(self) -> bool:
        """Whether the postmaster accepts connections: the socket exists early, the answer comes later."""
        if not self.address.socket.exists():
            return False
        try:
            self.connect("postgres").close()
        except ServerError:
            return False
        return True

    def _end_cleanly(self, orders: Sequence[tuple[int, float]]) -> None:
        if self._process is not None:
            segments = shared_memory.segments_of(self.data)
            self._end(orders)
            self._clean_up(segments)

    def _clean_up(self, segments: shared_memory.Segments) -> None:
        """After a death that was not a shutdown, backends and shared memory may have been left behind."""
        if any(living_in(self.data)):
            kill_living_in(self.data)
        segments.remove()
        self.address.socket.unlink(missing_ok=True)
        self.address.socket.with_name(f"{self.address.socket.name}.lock").unlink(missing_ok=True)
