"""A Postgres server for a history, as it fares in a fleet: killed, replaced by its replica, without room."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg

from build.finished_build import Build
from suites.additions import pooler
from suites.keys.durability import Durability
from suites.postgres.configuration import ADMIN, NAME, PORT
from suites.postgres.server import PostgresServer
from suites.processes import (
    ProcessError,
    as_server_user,
    kill_processes_in,
    own,
    run,
    start,
    tool,
    write_for_server,
)
from suites.server import ServerError
from suites.sizing import Sizes, equal_tables

SMALL = Sizes(1, equal_tables(1, 1, 1), 128 * 1024**2, 1024**3, 1, 1)

SETTINGS = {
    "max_connections": "60",
    "max_wal_senders": "4",
    "wal_keep_size": "64MB",
    "hot_standby": "on",
    "shared_buffers": "128MB",
    "restart_after_crash": "on",
}

FULL_BYTES = 1024**2
"""The largest file while there is no room: less than the tables of a history that was written to have."""


class HistoryServer:
    """A running server with an empty database."""

    def __init__(self, build: Build, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """`folder` must not exist; its path must be short, and every user must reach its parent."""
        self._build, self._settings = build, SETTINGS | dict(settings or {})
        self.server = PostgresServer(build, SMALL, Durability.FULL, folder, self._settings)

    @property
    def socket(self) -> Path:
        """Its Unix socket."""
        return self.server.address.socket

    @property
    def url(self) -> str:
        """The URL of its database."""
        return f"postgresql+psycopg://{NAME}@/{NAME}?host={self.server.folder}&port={PORT}"

    def begin(self) -> None:
        """Initialize and start it."""
        self.server.create()
        self.server.start()

    def kill(self) -> None:
        """Kill it as a machine that loses its power would: all processes at once, nothing is flushed."""
        with suppress(ProcessLookupError):
            os.kill(self.server.pid, signal.SIGKILL)
        kill_processes_in(self.server.folder)
        self.server.abandon()

    def restart(self) -> None:
        """Stop it cleanly, if it runs, and start it."""
        self.server.stop()
        self.server.start()

    def execute(self, statement: str) -> None:
        """Carry out a statement in its database, outside a transaction."""
        with self.server.connect() as connection:
            connection.execute(statement)

    def replica(self, folder: Path) -> "HistoryServer":
        """Copy it and start the copy as a replica that follows it."""
        copied = self.server.folder / f"copy-{folder.name}"
        command: list[str | Path] = [self._build.program("pg_basebackup"), "--pgdata", copied]
        options = ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
        where: list[str | Path] = ["--host", self.server.folder, "--port", str(PORT), "--username", ADMIN]
        run(as_server_user([*command, *options, *where]), what="pg_basebackup", cwd=self.server.folder)
        other = HistoryServer(self._build, folder, self._settings)
        other.server.create(copied)
        shutil.rmtree(copied)
        other.server.start()
        return other

    def promote(self) -> None:
        """Make a replica a primary, and wait for it."""
        self.execute("SELECT pg_promote()")

    @contextmanager
    def pooled(self, mode: str = "transaction", connections: int = 2) -> Iterator[str]:
        """Run PgBouncer before it, with few connections; yield the URL through it."""
        folder = self.server.folder
        file = folder / "pgbouncer.ini"
        write_for_server(
            file, pooler.configuration_before(self.server.address, mode=mode, connections=connections)
        )
        with (folder / "pgbouncer.log").open("ab") as log:
            process = start(
                as_server_user([tool(pooler.PROGRAM), file]), log, stderr=subprocess.STDOUT, cwd=folder
            )
        try:
            deadline = time.monotonic() + 20
            while not (folder / f".s.PGSQL.{pooler.PORT}").exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            yield f"postgresql+psycopg://{NAME}@/{NAME}?host={folder}&port={pooler.PORT}"
        finally:
            process.terminate()
            process.wait(20)

    @contextmanager
    def small_disk(self, megabytes: int) -> Iterator[str]:
        """Mount a file system of a few megabytes; yield the name of a table space on it. Needs root."""
        folder = self.server.folder / "disk"
        folder.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", folder], check=True
        )
        try:
            own(folder)
            self.execute(f"CREATE TABLESPACE small OWNER {NAME} LOCATION '{folder}'")
            yield "small"
            self.execute("DROP TABLESPACE small")
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)

    @contextmanager
    def no_room(self) -> Iterator[None]:
        """Let no file of it grow beyond FULL_BYTES, as on a full disk; start it again if that ended it."""
        self._limit_files(FULL_BYTES)
        try:
            yield
        finally:
            self._limit_files(None)
            try:
                self.execute("CHECKPOINT")
            except (psycopg.Error, ServerError):
                self.kill()
                self.server.start()

    def _limit_files(self, most: int | None) -> None:
        """Set the soft limit, as the user of the server, who may."""
        with suppress(psutil.NoSuchProcess):
            postmaster = psutil.Process(self.server.pid)
            for child in (postmaster, *postmaster.children()):
                limit = f"--fsize={'unlimited' if most is None else most}:"
                with suppress(ProcessError):  # one that has just ended
                    run(as_server_user(["prlimit", "--pid", str(child.pid), limit]), what="prlimit")

    def destroy(self) -> None:
        """End it, and delete its folder."""
        self.server.destroy()
