"""Consumers of a Postgres server's WAL: a replication slot each, read by the server's own programs."""

import contextlib
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import psycopg

from build import environment
from build.finished_build import Build
from suites.additions.companion import STOP_SECONDS, Companion, CompanionError
from suites.postgres.connecting import Connection, connect
from suites.processes import as_server_user, run
from suites.server import Address, postgres_port

PUBLICATION = "tidemark"

KEPT_WAL = "1GB"
"""WAL that a slot keeps for a consumer that does not read it; then it is lost, before the disk is full."""

SPARE_WAL = 128 * 1024**2
"""Bytes of WAL above both limits of the server, which removes it by whole segments and checkpoints."""

WATCH_SECONDS = 0.5
"""How often a consumer is watched."""

# In megabytes.
_LIMITS = "SELECT setting FROM pg_settings WHERE name IN ('max_wal_size', 'max_slot_wal_keep_size')"


class WalConsumer(Companion):
    """A program that reads a slot; a subclass says which kind of slot.

    The server gives up a slot whose reader is gone when it has kept KEPT_WAL. For a reader that hangs it
    waits, however much WAL there is, so that such a one is killed.
    """

    SLOT: ClassVar[str]
    """The name of its slot."""

    def __init__(self, name: str, build: Build, server: Address) -> None:
        super().__init__(name, build, server)
        self._most_wal = 0
        self._killed = ""
        self._stopped = threading.Event()

    def create_slot(self, connection: Connection) -> None:
        """Create the slot at the server's present position."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Create the slot. Raises CompanionError."""
        try:
            with self._connect() as connection:
                self.create_slot(connection)
                rows = connection.execute(_LIMITS).fetchall()
        except psycopg.Error as error:
            raise CompanionError(f"{self.name} cannot have a slot: {str(error).strip()}") from error
        self._most_wal = sum(int(row[0]) for row in rows) * 1024**2 + SPARE_WAL
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        """End the program and what watches it."""
        self._stopped.set()
        super().stop()

    def death(self) -> str | None:
        """Return None while the program runs, else how it ended, and why it was killed if it was."""
        ended = super().death()
        return f"{self._killed}{ended}" if ended is not None else None

    def _watch(self) -> None:
        while not self._stopped.wait(WATCH_SECONDS):
            self.tidy()
            wal = sum(
                _size(file) for file in (self.server.socket.parent / "data" / "pg_wal").glob("[0-9A-F]*")
            )
            if wal > self._most_wal and self._process is not None:
                self._killed = f"it did not read for too long, and the WAL grew to {wal / 1e6:.0f} MB: "
                self._process.kill()
                return

    def tidy(self) -> None:
        """Remove what it has received and nobody needs."""

    def is_ready(self) -> bool:
        """Return whether the server streams to it."""
        return bool(self._ask("SELECT 1", "state = 'streaming'"))

    def trouble(self) -> str | None:
        """Return that the slot is lost, or that nobody reads it."""
        rows = self._ask("SELECT wal_status, active")
        if not rows or rows[0][0] == "lost":
            return f"its slot is lost: the server has removed WAL that it did not read within {KEPT_WAL}"
        return None if rows[0][1] else "nobody reads its slot"

    def lag_bytes(self) -> float:
        """Return the bytes of WAL that were written and not yet sent to it."""
        rows = self._ask("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), COALESCE(sent_lsn, restart_lsn))")
        return max(0.0, float(rows[0][0])) if rows and rows[0][0] is not None else 0.0

    def clear(self) -> None:
        """Drop the slot, which would keep WAL; of a server that is gone nothing is left to drop."""
        deadline = time.monotonic() + STOP_SECONDS
        while True:
            try:
                with self._connect() as connection:
                    drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                    connection.execute(f"{drop} WHERE slot_name = %s".encode(), [self.SLOT])
                    connection.execute(f"DROP PUBLICATION IF EXISTS {PUBLICATION}".encode())
                return
            except psycopg.errors.ObjectInUse as error:
                # The server notices a moment later that its reader has gone.
                if time.monotonic() > deadline:
                    raise CompanionError(f"the slot of {self.name} cannot be dropped: {error}") from error
                time.sleep(0.05)
            except psycopg.OperationalError:
                return

    @property
    def source(self) -> list[str]:
        """The options with which Postgres' programs find the server and the slot."""
        socket = self.server.socket
        place = [f"--host={socket.parent}", f"--port={postgres_port(socket)}"]
        login = [f"--username={self.server.admin}", "--no-password"]
        return [*place, *login, f"--slot={self.SLOT}", "--no-loop"]

    def _ask(self, columns: str, condition: str = "true") -> list[tuple[Any, ...]]:
        """Return columns of its slot and of the connection that reads it, if there is such a slot.

        None if the server does not answer, which others report.
        """
        question = (
            f"{columns} FROM pg_replication_slots LEFT JOIN pg_stat_replication ON pid = active_pid "
            f"WHERE slot_name = %s AND {condition}"
        )
        with contextlib.suppress(psycopg.OperationalError), self._connect() as connection:
            return connection.execute(question.encode(), [self.SLOT]).fetchall()
        return []

    def _connect(self) -> Connection:
        return connect(self.server.of_admin)


class LogicalConsumer(WalConsumer):
    """pg_recvlogical, which gets all tables by pgoutput and throws the changes away."""

    SLOT = "tidemark_logical"

    def create_slot(self, connection: Connection) -> None:
        """Create a publication of all tables and a slot that decodes it."""
        connection.execute(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES".encode())
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [self.SLOT])

    def command(self) -> Sequence[str | Path]:
        """Return the command line: no output, and a report of its position every second."""
        program = self.build.program("pg_recvlogical")
        options = [
            "--option=proto_version=1",
            f"--option=publication_names={PUBLICATION}",
            "--file=/dev/null",
        ]
        where = [*self.source, f"--dbname={self.server.database}"]
        return [program, *where, "--start", *options, "--status-interval=1", "--fsync-interval=0"]


class PhysicalConsumer(WalConsumer):
    """pg_receivewal, whose finished segments are deleted."""

    SLOT = "tidemark_physical"

    def create_slot(self, connection: Connection) -> None:
        """Create a slot that keeps WAL from now on."""
        connection.execute("SELECT pg_create_physical_replication_slot(%s, true)", [self.SLOT])

    def prepare(self) -> None:
        """Create the slot and the folder of the segments."""
        super().prepare()
        run(as_server_user(["mkdir", self._received]), what="creating a folder")

    def command(self) -> Sequence[str | Path]:
        """Return the command line."""
        program = self.build.program("pg_receivewal")
        return [program, *self.source, f"--directory={self._received}", "--status-interval=1"]

    @property
    def _received(self) -> Path:
        return self.folder / "received"

    def tidy(self) -> None:
        """Delete finished segments, since the WAL of a long step could fill the disk."""
        finished = list(self._received.glob("[0-9A-F]" * 24))
        if finished:
            # With the rights of the server user, who could put a link where the folder was.
            argv = as_server_user(["rm", "--force", "--", *finished])
            subprocess.run(argv, env=environment.measured(), check=False)


def _size(file: Path) -> int:
    with contextlib.suppress(OSError):
        return file.lstat().st_size
    return 0
