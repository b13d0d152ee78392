"""A server of the MySQL family with a data directory of its own: what MySQL and MariaDB do alike."""

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from build.engines import ENGINES, EngineRegistry
from build.files import json_value, read_checked
from build.finished_build import Build
from build.version import Engine
from suites.server import WAITING, WORKING, ServerError

if TYPE_CHECKING:
    from pymysql.cursors import Cursor
import signal
import subprocess
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar

import pymysql
from pymysql.connections import Connection

from suites.accounting.activity import FLUSH, FULL_LOG, LOG_WAIT, PURGE
from suites.control_groups.declared import MemoryUse
from suites.innodb import configuration, log_volume, reset
from suites.innodb.configuration import (
    ACCOUNTS_FILE,
    ADMIN,
    NAME,
    account_statements,
    address_of,
    fill_in,
    writes_directly,
)
from suites.innodb.monitor import counter_reader, deadlocks, monitor, pool_use
from suites.keys.durability import Durability
from suites.layers.certificate import install_certificate
from suites.layers.choice import NONE, Layers
from suites.metrics import DEADLOCKS, FIRST_ANSWER, START, WAL_BYTES
from suites.processes import (
    as_server_user,
    delete_in,
    open_log,
    own,
    require_reachable,
    run,
    start,
    tail_of,
    write_for_server,
)
from suites.server import ClientStates, Instrument, LogVolume, Server, require_short, start_pause
from suites.sizing import Sizes

UNKNOWN = "of an unknown release"


_POSTGRES = re.compile(r"([0-9.]{1,20})\s*")
_MARIADB = re.compile(r"([0-9.]{1,20})-MariaDB\s*")


def _of_postgres(data: Path) -> str | None:
    return _release_in(data / "PG_VERSION", _POSTGRES)


def _of_mysql(data: Path) -> str | None:
    """From 8.4 on, a file lists the versions that have used the directory; older ones leave other files."""
    with contextlib.suppress(OSError, ValueError, KeyError, IndexError, TypeError):
        history = json_value(read_checked(data / "mysql_upgrade_history"))["upgrade_history"]
        return re.sub(r"[^0-9.].*", "", str(history[-1]["version"]))
    return UNKNOWN if any((data / name).exists() for name in ("mysql.ibd", "auto.cnf")) else None


def _of_mariadb(data: Path) -> str | None:
    """mariadb-install-db notes its version, as `11.8.6-MariaDB`; the system tables are Aria's."""
    for name in ("mariadb_upgrade_info", "mysql_upgrade_info"):
        release = _release_in(data / name, _MARIADB)
        if release is not None:
            return release
    return UNKNOWN if (data / "aria_log_control").exists() else None


def _release_in(path: Path, pattern: re.Pattern[str]) -> str | None:
    """Return the release that a file consists of, if there is one; the file belongs to the server's user."""
    with contextlib.suppress(OSError, ValueError):
        match = pattern.fullmatch(read_checked(path).decode())
        return match[1] if match else None
    return None


RELEASES: EngineRegistry[Callable[[Path], str | None]] = EngineRegistry(
    "way to tell which release has used a data directory",
    __name__,
    {Engine.POSTGRES: _of_postgres, Engine.MYSQL: _of_mysql, Engine.MARIADB: _of_mariadb},
)
"""For each engine: the release that last used a data directory, UNKNOWN, or None if no release of it did."""


def require_own_data(data: Path, build: Build) -> None:
    """Raise ServerError if another engine, or another release of the same, has used the directory `data`."""
    engine = build.version.engine
    for other, release_of in RELEASES.items():
        last = release_of(data)
        if last is None or (other is engine and last in (build.release, UNKNOWN)):
            continue
        title = ENGINES[other].title
        wanted = build.release if other is engine else f"{ENGINES[engine].title} {build.release}"
        raise ServerError(
            f"the data directory was last used by {title} {last}, not {wanted}",
            where=str(data),
            hint="remove it: every version must be measured on a data directory that it has created",
        )


STATES_PER_SECOND = 4.0
"""How often a server is asked: both questions together take a millisecond of CPU time."""

ROW_LOCK = "row lock"
"""What stands for the state of clients that wait for a row lock, which no state of a thread says."""

_ROW_LOCKS = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_row_lock_current_waits'"
"""The number of clients that wait for a row lock, which InnoDB counts by default. It is most of the cost."""

_WAITS = re.compile(r"wait|\block\b|^sending to client|^writing to net", re.IGNORECASE)
"""Matches the states in which a query waits, such as `waiting for handler commit` and `System lock`."""


def states_by(cursor: "Cursor", query: str) -> Mapping[str, int]:
    """Return suites.server.ClientStates of a `query` for states. Raises pymysql.err.Error."""
    cursor.execute(query)
    names = [str(state or "no state").replace(";", ",") for (state,) in cursor.fetchall()]
    locked = 0
    if not all(map(_WAITS.search, names)):
        cursor.execute(_ROW_LOCKS)
        locked = sum(int(str(count)) for (count,) in cursor.fetchall())
    return states_of(names, locked)


def states_of(names: Iterable[str], locked: int) -> Mapping[str, int]:
    """Return the number of clients by their states, of which so many are `locked`.

    One that waits for a row lock is in the stage of its statement too, such as `updating`, from which it is
    taken: from the stage with most clients first.
    """
    clients, kept = Counter(names), 0
    for name, number in clients.most_common():
        if not _WAITS.search(name):
            taken = min(number, locked - kept)
            clients[name] -= taken
            kept += taken
    clients[ROW_LOCK] += kept
    return {
        f"{WAITING if _WAITS.search(name) else WORKING};{name}": number for name, number in (+clients).items()
    }


_COUNTERS = """
SELECT name, count FROM information_schema.innodb_metrics
WHERE name IN ('log_waits', 'os_log_fsyncs', 'os_log_pending_fsyncs', 'buffer_pool_wait_free',
               'trx_rseg_history_len')"""
"""Counters that are switched on; not every version has those of flushes of the log."""

_CAPACITY = """
SHOW GLOBAL VARIABLES
WHERE variable_name IN ('innodb_redo_log_capacity', 'innodb_log_file_size', 'innodb_log_files_in_group')"""

LONG_HISTORY = 1000
"""The transactions in the history list from which on it is told that purge works it off."""

NEARLY_FULL = 0.85
"""The share of the redo log, not yet in the data files, from which on it is told that the log is nearly full.

Somewhat below the whole, writers have to wait until pages are flushed."""


@dataclass(frozen=True)
class LogFill:
    """How full the redo log is."""

    used: int
    """Bytes of changes that are not in the data files yet."""
    capacity: int


def activity_reader(connection: "Connection[pymysql.cursors.Cursor]") -> Callable[[], Collection[str]]:
    """Return what reads the activities since the last call. Both raise pymysql.err.Error."""
    capacity = log_capacity(connection)
    before: Mapping[str, int] = {}

    def read() -> Collection[str]:
        nonlocal before
        with connection.cursor() as cursor:
            cursor.execute(_COUNTERS)
            now = {str(name): int(str(count)) for name, count in cursor.fetchall()}
        said = monitor(connection)
        found = going_on(before, now, LogFill(said.log_sequence_number - said.checkpoint, capacity))
        before = now
        return found

    return read


def log_capacity(connection: "Connection[pymysql.cursors.Cursor]") -> int:
    """Return the bytes that the redo log holds. Raises pymysql.err.Error."""
    with connection.cursor() as cursor:
        cursor.execute(_CAPACITY)
        return capacity_of({str(name): int(str(value)) for name, value in cursor.fetchall()})


def capacity_of(variables: Mapping[str, int]) -> int:
    """Return the same from the variables that a version has of it.

    MySQL from 8.0.30 on has one setting for it, and ignores the others. MariaDB has one file from 10.5 on.
    """
    files = variables.get("innodb_log_file_size", 0) * variables.get("innodb_log_files_in_group", 1)
    return variables.get("innodb_redo_log_capacity", files)


def going_on(before: Mapping[str, int], now: Mapping[str, int], log: LogFill) -> Collection[str]:
    """Return what went on between two readings of the counters, of which `before` may be empty, the first.

    Clients waited for the log if they waited for its buffer, or if one flush lasted from one reading to the
    next.
    """
    found = [FULL_LOG] if log.used >= NEARLY_FULL * log.capacity > 0 else []
    if not before:
        return found
    more = {name: count - before.get(name, count) for name, count in now.items()}
    pending = min(counters.get("os_log_pending_fsyncs", 0) for counters in (before, now))
    if more.get("log_waits", 0) > 0 or (pending and more.get("os_log_fsyncs") == 0):
        found.append(LOG_WAIT)
    if more.get("buffer_pool_wait_free", 0) > 0:
        found.append(FLUSH)
    history = before.get("trx_rseg_history_len", 0)
    if now.get("trx_rseg_history_len", 0) < history >= LONG_HISTORY:
        found.append(PURGE)
    return found


START_SECONDS = 300
"""Time limit of a start, including crash recovery."""
SLOW_START_SECONDS = 1200
"""The same under an instrument, which takes a minute on a free core."""
STOP_SECONDS = 300
"""Time limit of a shutdown, which writes all dirty pages."""

OPTION_FILE = "my.cnf"
"""The name of the option file, which is beside the data directory."""

_AT_RANDOM = ("server_uuid",)
"""Variables of which every new data directory has a value of its own."""


class InnodbServer(Server):
    """A server of the MySQL family; of MySQL or of MariaDB."""

    DRIVER_ERROR = pymysql.err.Error
    ERROR = re.compile(r"\[ERROR\] (.*)")

    SOCKET: ClassVar[str]
    """The name of the socket in the server's folder."""

    TEMPLATE: ClassVar[Path]
    """The template of the option file."""

    DRIVEN: ClassVar[Mapping[str, str]] = reset.DRIVEN
    """Settings that the reset changes while it waits."""

    CLIENT_STATES: ClassVar[str]
    """The query for the state of each other client that executes a statement."""

    def __init__(
        self,
        build: Build,
        sizes: Sizes,
        durability: Durability,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        layers: Layers = NONE,
    ) -> None:
        address = address_of(build.version.engine, folder / self.SOCKET, layers)
        super().__init__(build, sizes, folder, address, settings or {})
        self.limits = reset.ResetLimits()
        self._layers = layers
        self._configuration = self.render(build, sizes, durability, folder, self.chosen, layers)
        self._has_accounts = False

    @classmethod
    def render(
        cls,
        build: Build,
        sizes: Sizes,
        durability: Durability,
        folder: Path,
        settings: Mapping[str, str],
        layers: Layers = NONE,
    ) -> str:
        """Return the text of the option file of a server in `folder`, with `settings` as its last lines.

        Raises CapabilityError if the version is too old, or does not have one of the `settings`.
        """
        return fill_in(cls.TEMPLATE, build, sizes, durability, folder / cls.SOCKET, settings, layers)

    def require_accepted(self) -> None:
        """Ask the server whether it accepts its option file; one that cannot be asked refuses to start."""
        words = self.check_options(self.build)
        if words:
            configuration.check(self.build, self._configuration, words)

    @staticmethod
    def check_options(build: Build) -> tuple[str, ...]:
        """Return the options with which the server reads its option file and ends; none if it cannot."""
        raise NotImplementedError

    def initialize_command(self) -> list[str | Path]:
        """Return the command that creates the data directory, with a root account without password."""
        raise NotImplementedError

    def identified(self, password: str) -> str:
        """Return the clause that gives the account of clients its plugin and a password."""
        raise NotImplementedError

    @contextlib.contextmanager
    def open_client_states(self) -> Iterator[ClientStates]:
        """Yield what counts the clients by the state of their thread."""
        connection = self.connect()

        def read() -> Mapping[str, int]:
            with connection.cursor() as cursor:
                return states_by(cursor, self.CLIENT_STATES)

        with contextlib.closing(connection):
            yield ClientStates(lambda: self.ask_often(read), STATES_PER_SECOND)

    def roles(self) -> Mapping[int, str]:
        """Return thread id -> role of a thread. Raises ServerError."""
        raise NotImplementedError

    def create(self, data: Path | None = None) -> None:
        """Create the option file and the data directory, a copy of `data` if given. Raises ServerError."""
        require_short(self.own_address.socket)
        require_reachable(self.build.prefix)
        require_reachable(self.folder.parent)
        if self.data.exists():
            require_own_data(self.data, self.build)
            raise ServerError(
                "the data directory exists already",
                where=str(self.data),
                hint="remove it, or start the server instead of creating it",
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        own(self.folder)
        if self._layers.tls:
            install_certificate(self.folder)
        write_for_server(self.folder / OPTION_FILE, self._configuration)
        if data is not None:
            self._copy_in(data)
            # Their index names them by the path of the session that wrote them. Nothing reads them.
            delete_in(self.data, "binlog.*")
        else:
            self._initialize()

    def _initialize(self) -> None:
        log = self.folder / "initialize.log"
        argv = [*self.initialize_command(), f"--log-error={log}"]
        try:
            run(
                as_server_user(argv, dies_by="TERM"),
                what=f"initializing {self.build.version}",
                cwd=self.folder,
            )
        except Exception as error:
            # A program that does not even start has no log, and says why itself.
            said = tail_of(log) if log.exists() else str(error)
            raise ServerError(
                f"{self.build.version} cannot create a data directory: {said}", where=str(self.folder)
            ) from error

    def start(self, instrument: Instrument | None = None) -> Mapping[str, float]:
        """Start the server, wait until it has accepted a connection, and ask it something on another one."""
        require_own_data(self.data, self.build)
        open_log(self.log).close()
        self._log.begin()
        command, bound_to = self.command(), self._bound_to
        if not self._has_accounts:
            # Nobody can connect before, with a password of the data or with none.
            accounts = account_statements(self.own_address, self.identified(self.own_address.password))
            write_for_server(self.folder / ACCOUNTS_FILE, accounts)
            command.append(f"--init-file={self.folder / ACCOUNTS_FILE}")
        if instrument is not None:
            beside = instrument.settings_beside(self.chosen)
            settings = (f"--{name}={value}" for name, value in beside.items())
            command, bound_to = [*instrument.command, *command, *settings], None
        argv = self._limited(as_server_user(command, dies_by="TERM"), instrument)
        began = time.monotonic()
        self._process = start(
            argv, subprocess.DEVNULL, bound_to=bound_to, stderr=subprocess.DEVNULL, cwd=self.folder
        )
        limit = START_SECONDS if instrument is None else SLOW_START_SECONDS
        while not self._accepts_root(began, limit):
            time.sleep(start_pause(began))
        ready = time.monotonic()
        self._log.begin()
        self._has_accounts = True
        (self.folder / ACCOUNTS_FILE).unlink(missing_ok=True)
        if instrument is not None:
            return {}
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            answered = time.monotonic()
        return {START: ready - began, FIRST_ANSWER: answered - ready}

    def connect(self) -> "Connection[pymysql.cursors.Cursor]":
        """Return one of root in autocommit mode. Raises ServerError if the server refuses it."""
        try:
            return self._connect()
        except pymysql.err.OperationalError as error:
            raise ServerError(
                f"{self.build.version} refuses the login of '{ADMIN}': {error.args[-1]}",
                where=str(self.log),
                hint="check whether the account was dropped or locked; a new run creates it again",
            ) from error

    def _stop(self) -> None:
        """Shut down by SIGTERM, and after STOP_SECONDS by SIGKILL. InnoDB uses no shared memory."""
        self._end(((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 30)))
        self._remove_socket()

    def _abandon(self) -> None:
        """Kill the server, because flushing dirty pages that are no longer needed would waste time."""
        self._end(((signal.SIGKILL, 30),))
        self._remove_socket()

    def settings(self) -> Mapping[str, str]:
        """Return every global variable of the running server that says how it is configured."""
        request = self.request("reading the settings")
        with request, self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL VARIABLES")
            told = {str(name): str(value) for name, value in cursor.fetchall() if name not in _AT_RANDOM}
            told["init_file"] = self.chosen.get("init_file", "")  # the first start has another
            return self.without_places(told)

    @contextlib.contextmanager
    def open_counters(self) -> Iterator[Callable[[], Mapping[str, float]]]:
        """Yield a function that returns the bytes of redo written, and the memory used of the buffer pool."""
        asked = self.request("reading InnoDB's monitor")
        with contextlib.closing(asked(self.connect)()) as connection:
            yield asked(asked(counter_reader)(connection))

    def cache_use(self) -> MemoryUse:
        """Return the use of the buffer pool, unless files are read through the page cache."""
        if not writes_directly(self.chosen):
            return super().cache_use()
        with self.request("reading the use of the buffer pool"), self.connect() as connection:
            return pool_use(connection)

    @contextlib.contextmanager
    def open_activities(self) -> Iterator[Callable[[], Collection[str]]]:
        """Yield a function that returns what InnoDB did beside queries since its last call."""
        asked = self.request("reading InnoDB's counters")
        with contextlib.closing(self.connect()) as connection:
            yield asked(asked(activity_reader)(connection))

    def _counters(self) -> Mapping[str, float]:
        """Return the bytes of redo and of the binary log, the pages flushed and deadlocks since the start."""
        with self.request("reading the counters"), self.connect() as connection:
            return {
                DEADLOCKS: deadlocks(connection),
                WAL_BYTES: float(monitor(connection).log_sequence_number),
                "pages_flushed_per_op": reset.status(connection, "Innodb_buffer_pool_pages_flushed"),
                "binlog_bytes_per_op": float(sum(log_volume.binlog_sizes(self.data).values())),
            }

    def checkpoint_meter(self) -> Callable[[], float]:
        """Return a function that says which share of the log was written since then; at most 1."""
        with self.request("reading the size of the log"), self.connect() as connection:
            begin, capacity = self._sequence_number(), log_capacity(connection)
        return lambda: min(1.0, (self._sequence_number() - begin) / capacity)

    def log_meter(self) -> Callable[[], LogVolume | None]:
        """Return a function that returns the redo since then, and what was added to the binary log."""
        return log_volume.meter(self.data, self._sequence_number)

    def _sequence_number(self) -> int:
        with self.request("reading the log sequence number"), self.connect() as connection:
            return monitor(connection).log_sequence_number

    def debt(self) -> Mapping[str, float]:
        """Return the length of the history list, in transactions."""
        with self.request("reading the history list"), self.connect() as connection:
            return {"debt_history": reset.history(connection)}

    @contextlib.contextmanager
    def keeping_row_versions(self) -> Iterator[None]:
        """Hold a snapshot, which keeps purge from removing any version of a row that is written meanwhile."""
        what = "holding a snapshot"
        with self.request(what):
            connection = self.connect()
        with contextlib.closing(connection):
            with self.request(what), connection.cursor() as cursor:
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            yield

    def _reset(self) -> Mapping[str, float]:
        """Purge, flush and verify; see suites.innodb.reset."""
        with self.request("the reset"), self.connect() as connection:
            return reset.reset(connection, NAME, self.data, self.DRIVEN, self.limits)

    def command(self) -> list[str | Path]:
        """Return the command that starts the server."""
        program = self.build.program(ENGINES[self.build.version.engine].server_program)
        return [program, f"--defaults-file={self.folder / OPTION_FILE}"]

    def _connect(self) -> "Connection[pymysql.cursors.Cursor]":
        return pymysql.connect(
            unix_socket=str(self.own_address.socket),
            user=self.own_address.admin,
            password=self.own_address.admin_password,
            autocommit=True,
            connect_timeout=10,
        )

    def _accepts_root(self, began: float, limit: float) -> bool:
        """Whether the server accepts a connection. Raises ServerError as `_require_starting` does, and if it
        refuses the login.

        Once it listens, it lets clients wait until it is ready for them, so that no attempt is too early.
        """
        error = None
        if self.own_address.socket.exists():
            try:
                self._connect().close()
            except pymysql.err.OperationalError as refusal:
                error = refusal
            else:
                return True
        self._require_starting(began, limit, error)
        if error is not None and error.args[0] == pymysql.constants.ER.ACCESS_DENIED_ERROR:
            self.stop()
            raise ServerError(f"{self.build.version} refuses the login of root: {error.args[-1]}") from error
        return False
