"""A Postgres server with a data directory of its own."""

import contextlib
import itertools
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import psycopg

from build.files import read_checked
from build.finished_build import Build
from build.version import Engine
from suites.accounting.activity import CHECKPOINT, DATA_WAIT, LOG_WAIT, VACUUM
from suites.capabilities import CapabilityError, knows_initdb_option
from suites.keys.durability import Durability
from suites.layers.certificate import certificate_beside, install_certificate, loopback_address
from suites.layers.choice import NONE, Layers, Transport
from suites.metrics import DEADLOCKS, FIRST_ANSWER, START, WAL_BYTES
from suites.postgres import log_volume, reset, shared_memory
from suites.postgres.configuration import (
    ADMIN,
    NAME,
    PASSWORD_METHOD,
    PORT,
    check,
    host_authentication,
    port_of,
    render,
)
from suites.postgres.connecting import Connection, connect
from suites.postgres.initdb_options import CHECKSUMS, EVERY
from suites.processes import (
    as_server_user,
    kill_processes_in,
    open_log,
    own,
    prefer,
    processes_in,
    require_reachable,
    run,
    start,
    write_for_server,
)
from suites.server import (
    CPU,
    WAITING,
    WORKING,
    Address,
    ClientStates,
    Instrument,
    LogVolume,
    Server,
    ServerError,
    require_short,
    session_password,
    start_pause,
)
from suites.sizing import Sizes


def initdb_words(build: Build, chosen: Mapping[str, str]) -> list[str]:
    """Return the words for the initdb of a build. Raises CapabilityError for what it does not have."""
    words = []
    for name, value in {**EVERY, **chosen}.items():
        if name == CHECKSUMS:
            words += _checksums(build, is_on=value == "on")
            continue
        for needed in (name, f"{name}={value}"):
            if not knows_initdb_option(build, needed):
                raise CapabilityError(f"the initdb of {build.version} has no {needed}", where="initdb")
        words.append(f"--{name}={value}")
    return words


def _checksums(build: Build, *, is_on: bool) -> list[str]:
    if is_on:
        return ["--data-checksums"]
    # Before there was a word for it, it was what initdb did without one.
    return ["--no-data-checksums"] if knows_initdb_option(build, "no-data-checksums") else []


# The function behind pg_stat_activity, without the names of users and databases that the view looks up. A
# backend without a wait event executes, or waits for a core; one that waits for its client has no query. The
# column `state` says the same of a moment before, in which short queries end. Grouped here, which is cheaper.
_STATES = f"""
SELECT coalesce('{WAITING};' || wait_event_type || ':' || wait_event, '{WORKING};{CPU}')
FROM pg_stat_get_activity(NULL)
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND wait_event IS DISTINCT FROM 'ClientRead'"""

_NAME = b"client_states"


def states_reader(connection: Connection) -> Callable[[], Mapping[str, int]]:
    """Return what reads the states through a connection. Both raise psycopg.Error.

    By libpq itself: a cursor of psycopg would use as much CPU time again.
    """
    libpq = connection.pgconn
    libpq.prepare(_NAME, _STATES.encode())

    def read() -> Mapping[str, int]:
        result = libpq.exec_prepared(_NAME, None)
        if result.status != psycopg.pq.ExecStatus.TUPLES_OK:
            raise psycopg.OperationalError(libpq.get_error_message())
        return Counter((result.get_value(row, 0) or b"").decode() for row in range(result.ntuples))

    return read


# The function behind pg_stat_activity, without the names that the view looks up. The wait events have
# other capitals before 17. A checkpointer without one has just woken up, or computes.
_ACTIVITIES = """
SELECT count(*) FILTER (WHERE backend_type = 'checkpointer'
                        AND lower(wait_event) <> 'checkpointermain') > 0,
       count(*) FILTER (WHERE backend_type = 'autovacuum worker') > 0,
       2 * count(*) FILTER (WHERE backend_type = 'client backend'
           AND lower(wait_event) IN ('walwrite', 'walsync', 'walinsert', 'walbufmapping'))
       > {working},
       2 * count(*) FILTER (WHERE backend_type = 'client backend'
           AND (lower(wait_event) LIKE 'datafile%' OR lower(wait_event) = 'aioiocompletion'))
       > {working},
       {checkpoints},
       {vacuums}
FROM pg_stat_get_activity(NULL)"""

_WORKING = """count(*) FILTER (WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
           AND wait_event IS DISTINCT FROM 'ClientRead')"""

_CHECKPOINTS = {
    170000: "pg_stat_get_checkpointer_num_timed() + pg_stat_get_checkpointer_num_requested()",
    150000: "pg_stat_get_bgwriter_timed_checkpoints() + pg_stat_get_bgwriter_requested_checkpoints()",
    0: "(SELECT checkpoint_lsn FROM pg_control_checkpoint())",
}
"""Server version -> what another checkpoint changes, which also tells of one between two questions. Before 15
the counters come from a file that another process writes, up to half a second late: the control file has the
last one that ended."""


_VACUUMS = {
    150000: "(SELECT COALESCE(sum(pg_stat_get_autovacuum_count(oid)), 0) FROM pg_class "
    "WHERE relkind = 'r' AND oid >= 16384)",
    0: "0",
}
"""Server version -> the autovacuums of tables of users that have ended: one that ran while other servers had
their slices was seen by no question. Before 15 the file of the counters would have to be waited for."""


def activity_reader(connection: Connection) -> Callable[[], Collection[str]]:
    """Return what reads the activities since the last call. Both raise psycopg.Error."""
    version = connection.info.server_version
    counted = {
        name: next(text for least, text in texts.items() if version >= least)
        for name, texts in (("checkpoints", _CHECKPOINTS), ("vacuums", _VACUUMS))
    }
    query = _ACTIVITIES.format(working=_WORKING, **counted)
    known: tuple[object, ...] = ()

    def read() -> Collection[str]:
        nonlocal known
        row = connection.execute(query, prepare=True).fetchone()
        assert row is not None
        checkpointing, vacuuming, for_log, for_data, *ended = row
        before, known = known or tuple(ended), tuple(ended)
        found = {
            CHECKPOINT: checkpointing or before[0] != ended[0],
            VACUUM: vacuuming or before[1] != ended[1],
            LOG_WAIT: for_log,
            DATA_WAIT: for_data,
        }
        return [name for name, goes_on in found.items() if goes_on]

    return read


def checkpoint_ended(connection: Connection, lsn: str) -> bool:
    """Return whether a checkpoint is over that began at a place in the WAL, or after it.

    The control file has the place where the last finished one began. Raises psycopg.Error.
    """
    query = "SELECT redo_lsn >= %s::pg_lsn FROM pg_control_checkpoint()"
    row = connection.execute(query, [lsn]).fetchone()
    assert row is not None
    return bool(row[0])


def deadlocks(connection: Connection) -> float:
    """Return how many transactions the server has ended because of a deadlock. Raises psycopg.Error.

    A backend adds its own at the latest when its client goes.
    """
    row = connection.execute("SELECT sum(deadlocks) FROM pg_stat_database").fetchone()
    assert row is not None
    return float(row[0] or 0)


SOCKET = f".s.PGSQL.{PORT}"
START_SECONDS = 300
"""Time limit of a start, including crash recovery."""
FAST_STOP_SECONDS = 120
IMMEDIATE_STOP_SECONDS = 20
_STATUS = 7
"""The line of the postmaster's lock file that says what state it is in; the first one is its process id."""
_AT_ONCE = ((signal.SIGQUIT, IMMEDIATE_STOP_SECONDS), (signal.SIGKILL, 5.0))


def _address(folder: Path, layers: Layers) -> Address:
    is_tcp = layers.transport is Transport.TCP
    return Address(
        Engine.POSTGRES,
        folder / f".s.PGSQL.{port_of(layers)}",
        NAME,
        NAME,
        session_password() if is_tcp else "",
        ADMIN,
        host=loopback_address(folder) if is_tcp else "",
        port=port_of(layers) if is_tcp else 0,
        tls=certificate_beside(folder) if layers.tls else None,
        protocol=layers.protocol,
    )


class PostgresServer(Server):
    """A Postgres server."""

    DRIVER_ERROR = psycopg.Error
    ERROR = re.compile(r" (?:ERROR|FATAL|PANIC):  (.*)")
    # What the postmaster says before it ends all others, and itself, which tells no signal.
    CRASH = re.compile(r" LOG:  (.* \(PID \d+\) was terminated by .*)")

    def __init__(
        self,
        build: Build,
        sizes: Sizes,
        durability: Durability,
        folder: Path,
        overrides: Mapping[str, str] | None = None,
        layers: Layers = NONE,
        initdb: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(build, sizes, folder, _address(folder, layers), overrides or {})
        self._layers = layers
        self._initdb_words = initdb_words(build, initdb or {})
        self._configuration = render(build, sizes, durability, folder, self.chosen, layers)
        self._has_clients = False

    def require_accepted(self) -> None:
        """Ask `postgres -C` whether it accepts postgresql.conf."""
        check(self.build, self._configuration)

    def create(self, data: Path | None = None) -> None:
        """Run initdb with the options that were chosen; write the configuration and the authentication.

        Instead of initdb, `data` are copied if they are given.
        """
        require_short(self.own_address.socket)
        require_reachable(self.build.prefix)
        self.folder.mkdir(mode=0o700, parents=True)
        own(self.folder)
        require_reachable(self.folder.parent)
        if data is not None:
            self._copy_in(data)
        else:
            self._initdb()
        if self._layers.tls:
            install_certificate(self.folder)
        write_for_server(self.data / "postgresql.conf", self._configuration)
        write_for_server(self.data / "pg_hba.conf", host_authentication(self._layers))

    def _initdb(self) -> None:
        initdb: list[str | Path] = [self.build.program("initdb"), "--pgdata", self.data, "--username", ADMIN]
        options = [*self._initdb_words, "--encoding=UTF8", "--no-sync", "--auth=trust"]
        run(as_server_user([*initdb, *options]), what=f"initdb of {self.build.version}", cwd=self.folder)

    def start(self, instrument: Instrument | None = None) -> Mapping[str, float]:
        """Start the postmaster, wait until it accepts connections, and ask it something."""
        command: list[str | Path] = [self.build.program("postgres"), "-D", self.data]
        if instrument is not None:
            beside = instrument.settings_beside(self.chosen)
            settings = (("-c", f"{name}={value}") for name, value in beside.items())
            command = [*instrument.command, *command, *itertools.chain.from_iterable(settings)]
        bound_to = self._bound_to if instrument is None else None
        self._log.begin()
        argv = self._limited(as_server_user(command), instrument)
        with open_log(self.log) as log:
            began = time.monotonic()
            self._process = start(argv, log, bound_to=bound_to, stderr=subprocess.STDOUT, cwd=self.folder)
        while not self._is_ready():
            self._require_starting(began, START_SECONDS)
            time.sleep(start_pause(began))
        ready = time.monotonic()
        self._log.begin()
        if instrument is not None:
            return {}
        with self.request("creating the database"), self.connect("postgres") as connection:
            row = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME]).fetchone()
            answered = time.monotonic()
            if not self._has_clients:
                self._let_clients_in(connection, has_database=row is not None)
        return {START: ready - began, FIRST_ANSWER: answered - ready}

    def _let_clients_in(self, connection: Connection, *, has_database: bool) -> None:
        """Create the role of clients and its database, unless the data have them; set its password."""
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [NAME]).fetchone() is None:
            connection.execute(f"CREATE ROLE {NAME} LOGIN")
        if self.own_address.password:
            stored = connection.pgconn.encrypt_password(
                self.own_address.password.encode(), NAME.encode(), PASSWORD_METHOD.encode()
            )
            connection.execute(f"ALTER ROLE {NAME} PASSWORD '{stored.decode()}'")
        if not has_database:
            connection.execute(f"CREATE DATABASE {NAME} OWNER {NAME}")
        self._has_clients = True

    def connect(self, database: str = NAME) -> Connection:
        """Return one of the superuser in autocommit mode. Raises ServerError if the server refuses it."""
        try:
            return connect(self.own_address.of_admin, database)
        except psycopg.OperationalError as error:
            raise ServerError(
                f"{self.build.version} does not accept connections: {str(error).strip()}", where=str(self.log)
            ) from error

    def _stop(self) -> None:
        """Shut down in fast mode, after FAST_STOP_SECONDS in immediate mode, and finally by SIGKILL."""
        self._end_cleanly(((signal.SIGINT, FAST_STOP_SECONDS), *_AT_ONCE))

    def _abandon(self) -> None:
        """Shut down in immediate mode, as the data directory is no longer needed, and finally by SIGKILL."""
        self._end_cleanly(_AT_ONCE)

    def settings(self) -> Mapping[str, str]:
        """Return every setting of the running server, with its unit if it has one: `8192 8kB`."""
        with self.request("reading the settings"), self.connect() as connection:
            rows = connection.execute(
                "SELECT name, setting || COALESCE(' ' || unit, '') FROM pg_settings ORDER BY name"
            )
            return self.without_places({str(name): str(value) for name, value in rows})

    @contextlib.contextmanager
    def open_counters(self) -> Iterator[Callable[[], Mapping[str, float]]]:
        """Yield a function that returns the bytes of WAL inserted since initdb."""
        with self.connect() as connection:

            def read() -> Mapping[str, float]:
                with self.request("reading the WAL position"):
                    return {WAL_BYTES: float(reset.wal_position(connection))}

            yield read

    def _counters(self) -> Mapping[str, float]:
        """Return the bytes of WAL inserted, and the deadlocks of all databases."""
        with self.connect() as connection, self.request("reading the counters"):
            return {
                WAL_BYTES: float(reset.wal_position(connection)),
                DEADLOCKS: deadlocks(connection),
            }

    @contextlib.contextmanager
    def open_client_states(self) -> Iterator[ClientStates]:
        """Yield what counts the clients by wait event."""
        with self.connect() as connection:
            read = states_reader(connection)
            prefer(connection.info.backend_pid)
            yield ClientStates(lambda: self.ask_often(read))

    @contextlib.contextmanager
    def open_activities(self) -> Iterator[Callable[[], Collection[str]]]:
        """Yield a function that returns what the server did beside queries since its last call."""
        with self.connect() as connection:
            prefer(connection.info.backend_pid)
            yield self.request("reading its activities")(activity_reader(connection))

    def checkpoint_meter(self) -> Callable[[], float]:
        """Return a function that says whether a checkpoint has begun and ended since then: 1, or 0."""
        what = "reading the last checkpoint"
        with self.request(what), self.connect() as connection:
            begin = log_volume.position(connection)

        def ended() -> float:
            with self.request(what), self.connect() as connection:
                return float(checkpoint_ended(connection, begin.lsn))

        return ended

    def log_meter(self) -> Callable[[], LogVolume | None]:
        """Return a function that reads the records of WAL since then, which it flushes."""
        program, what = self.build.program(log_volume.PROGRAM), "reading the WAL"
        with self.request(what), self.connect() as connection:
            begin = log_volume.position(connection)

        def read() -> LogVolume | None:
            if not program.exists():
                return None
            with self.request(what), self.connect() as connection:
                end = log_volume.flushed_position(connection)
            return log_volume.written(program, self.data / log_volume.FOLDER, begin, end)

        return read

    def debt(self) -> Mapping[str, float]:
        """Return the dead tuples, once all clients have reported theirs, as they do when they disconnect."""
        with self.request("reading the dead tuples"), self.connect() as connection:
            return {"debt_dead_tuples": float(reset.dead_tuples(connection))}

    def roles(self) -> Mapping[int, str]:
        """Return process id -> role: `client backend`, `checkpointer`, `io worker` and others."""
        with self.request("reading the processes"), self.connect() as connection:
            rows = connection.execute("SELECT pid, backend_type FROM pg_stat_activity")
            return {self.pid: "postmaster"} | {int(pid): str(role) for pid, role in rows}

    def _reset(self) -> Mapping[str, float]:
        """Vacuum, checkpoint and verify; see suites.postgres.reset."""
        with self.request("the reset"):
            return reset.reset(self.connect, self.cores)

    def _is_ready(self) -> bool:
        """Whether the postmaster accepts connections, as the lock file says, which may be an older one's.

        The postmaster writes so once it no longer refuses them (process_pm_child_exit in postmaster.c).
        """
        try:
            lines = read_checked(self.data / "postmaster.pid").decode(errors="replace").splitlines()
        except OSError:
            return False
        return len(lines) > _STATUS and lines[0] == str(self.pid) and lines[_STATUS].strip() == "ready"

    def _end_cleanly(self, signals: Sequence[tuple[int, float]]) -> None:
        if self._process is not None:
            segments = shared_memory.segments_of(self.data)
            self._end(signals)
            self._clean_up(segments)

    def _clean_up(self, segments: shared_memory.Segments) -> None:
        """Remove the backends, shared memory and socket that remain if the server was killed or crashed."""
        if any(processes_in(self.data)):
            kill_processes_in(self.data)
        segments.remove()
        self._remove_socket()
