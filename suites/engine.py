"""What a database engine is here: one class for each, which has all in which servers and clients differ.

The classes are suites/<engine>/engine.py, and suites.engines finds the one of an address. What has to be
known without the engines' client libraries has registries of its own: suites.capabilities, by which versions
differ, suites.counting.engines, which comparisons read, and suites.keys.sql_statements.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from build.finished_build import Build
from suites.server import Address, Server
from suites.sizing import MEMORY_BESIDE_BUFFERS

PATIENCE_SECONDS = 2 * 3600
"""The longest that one query of Tidemark's own may take."""

DIGEST_DIGITS = 15
"""Hexadecimal digits of a row's hash that are summed up: they fit into the integers of every engine."""

MAX_INDEX_LEVEL = 20
"""No index is so deep: what has more is encrypted, or no root page."""

Connect = Callable[[], None]
"""Connects, has one statement answered, and disconnects. Raises ConnectionError."""

Rows = Sequence[Sequence[str | None]]
"""Values as the texts that the server sends."""


class RowsError(Exception):
    """A table does not take its rows; the text says why."""


class Leftover(Protocol):
    """A resource of a server that outlives its processes and is not in its folder."""

    def remove(self) -> None:
        """Remove the resource, unless a running server uses it."""


class QuerySession(Protocol):
    """A connection in which statements take effect at once, unless a transaction is begun."""

    def execute(self, text: str) -> Rows:
        """Carry one statement out, and return all its rows. Raises one of ERRORS."""

    def discard(self, text: str) -> None:
        """Carry one statement out, and receive all its rows, but do not read them. Raises one of ERRORS."""

    def set_limit(self, seconds: float) -> None:
        """Ask the server to end every later statement after so many seconds; MySQL ends queries alone."""

    def fill(self, table: str, rows: Path) -> None:
        """Load a table from a file of CSV with a header. Raises one of ERRORS, OSError, or RowsError."""

    def prepare_load(self) -> None:
        """Do what comes before the tables are created."""

    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True)
class TableDigest:
    """The rows of one table: their number, and the sum of a digest of each, in which order does not count."""

    rows: int
    content: int


@dataclass(frozen=True)
class DataExtent:
    """The loaded data of one server, once they have been flushed."""

    rows: int
    """The rows of all tables as the server has just estimated them. VACUUM of Postgres reads every page of
    freshly loaded tables; InnoDB takes 20 pages of each at random, and may be 10 % off for wide rows."""

    bytes: int
    """The bytes of tables and indexes on disk."""

    index_levels: int
    """The levels of the deepest B-tree, 1 for a single page; 0 if none is known."""

    cache_bytes: int
    """The bytes of the server's buffer cache."""


def deepest(levels: list[int]) -> int:
    """Return the levels of the deepest index of those whose roots have these levels; 0 without any."""
    return 1 + max((level for level in levels if level <= MAX_INDEX_LEVEL), default=-1)


def digest_of(cursor: Any) -> TableDigest:
    """Return the digest that a query for rows and content has found."""
    rows, content = cursor.fetchone()
    return TableDigest(int(rows), int(content))


@dataclass(frozen=True)
class SysbenchDriver:
    """One of the database drivers that sysbench is compiled with."""

    name: str
    """The value of `--db-driver`, with which the driver's own options begin."""

    options: Callable[[Address], Mapping[str, object]]
    """The driver's options for an address, without the driver's name."""

    reads_certificate: bool = False
    """Whether it reads the certificate from files of its own names in the current folder."""


@dataclass(frozen=True)
class SetupClient:
    """What runs files in the servers of one engine."""

    program: str
    """Its name among the programs of a build."""

    run: Callable[[Path, Address, Path, str], None]
    """Runs a SQL file of a folder in a server with the program at a path. Raises SetupError."""

    variables: Callable[[Address], Mapping[str, str]]
    """Returns the variables that tell a program of a server."""

    with_all_rights: Callable[[Address], AbstractContextManager[Address]]
    """Returns a context with the address at which files are loaded, by an account with all rights; clients
    have theirs to what was loaded afterwards. Raises TidemarkError."""

    restore: Callable[[Build, Address, Path, str], None] | None = None
    """Restores a dump of a folder with the programs of a build; None if no dump is but SQL. Raises
    SetupError."""

    advice: Callable[[str, str], str] = lambda said, name: ""
    """Returns what to do about what a server said of a statement of a file; else nothing."""

    trial: Callable[[Address], AbstractContextManager[Address]] = nullcontext
    """Returns a context with the address at which scripts are tried: of a copy of the loaded data, or of
    these themselves where the engine cannot copy a database."""


class DatabaseEngine(ABC):
    """One engine: how its servers are made, what clients it has, and the SQL that only it understands."""

    server: ClassVar[Callable[..., Server]]
    """Creates a server of a build in a folder, as suites.engines.make_server describes it."""

    socket: str
    """The name of the server's socket in its folder."""

    memory_beside_buffers: int = MEMORY_BESIDE_BUFFERS
    """The bytes of memory without which, beside its buffer cache, a server does not start or work."""

    driver: SysbenchDriver
    setup: SetupClient

    table_names: str
    """The query for the names of the tables of a database."""

    held_transaction: Sequence[str]
    """The statements that open a transaction from whose snapshot on no old row version is removed."""

    # --- servers

    @abstractmethod
    def writes_directly(self, settings: Mapping[str, str]) -> bool:
        """Return whether a server with such settings writes its data past the page cache."""

    def leftovers(self, data: Path) -> Sequence[Leftover]:
        """Return what the server of a data directory has outside of it, whether that runs or was killed.

        Nothing if the directory belongs to another engine.
        """
        del data
        return ()

    # --- connections

    @abstractmethod
    def connect(self, address: Address) -> Any:
        """Return a connection (DB-API 2.0, PEP 249) in autocommit mode."""

    @abstractmethod
    def connector(self, address: Address) -> Connect:
        """Return what connects as often as it is called, by the client library alone."""

    @abstractmethod
    def session(self, address: Address) -> QuerySession:
        """Return a session for long queries."""

    # --- what is read

    @abstractmethod
    def explain(self, connection: Any, statements: Sequence[str]) -> list[str]:
        """Return the plans of statements, in their order."""

    @abstractmethod
    def table_digests(self, cursor: Any) -> Iterator[tuple[str, TableDigest]]:
        """Yield the digests of the tables of a database that outlive a crash.

        Columns of a time are left out, because the clock fills them.
        """

    @abstractmethod
    def index_rows(self, cursor: Any) -> Iterator[tuple[str, int]]:
        """Yield how many rows each index leads to, by its name with its table's."""

    @abstractmethod
    def extent(self, cursor: Any) -> DataExtent:
        """Return how large the data of a database are."""
