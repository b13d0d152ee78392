"""The C library with MySQL's protocol that sysbench uses, by ctypes.

It costs little beside a query. PyMySQL takes 0.4 ms of the processor for 20 rows of 8 columns, even if it
drops them: 4 % of a query of 10 ms. Of the library's functions those are used that libmariadb and
libmysqlclient have in common.
"""

import ctypes
from collections.abc import Sequence
from functools import cache

import pymysql

from build.errors import TidemarkError
from suites.server import Address

LIBRARIES = ("libmariadb.so.3", "libmysqlclient.so.24", "libmysqlclient.so.21")
"""What a distribution's sysbench is linked with."""

CHARSET_NAME, LOCAL_INFILE = 7, 8
"""Of enum mysql_option, in both libraries."""


class InnodbClient:
    """A connection to MySQL or MariaDB, in autocommit mode. Other threads run while it waits."""

    def __init__(self, address: Address) -> None:
        """Connect. Raises pymysql.err.OperationalError, or TidemarkError if there is no library."""
        self._library = client_library()
        self._handle = ctypes.c_void_p(self._library.mysql_init(None))
        self._library.mysql_options(self._handle, CHARSET_NAME, b"utf8mb4")
        self._library.mysql_options(self._handle, LOCAL_INFILE, ctypes.byref(ctypes.c_uint(1)))
        names = (address.user, address.password, address.database)
        user, password, database = (name.encode() for name in names)
        socket = str(address.socket).encode()
        if not self._library.mysql_real_connect(self._handle, None, user, password, database, 0, socket, 0):
            error = self._error()
            self.close()
            raise error

    @property
    def number(self) -> int:
        """The number of the connection, for KILL."""
        return int(self._library.mysql_thread_id(self._handle))

    def discard(self, text: str) -> None:
        """Carry one statement out, and receive its rows. Raises pymysql.err.OperationalError."""
        self._library.mysql_free_result(self._result(text))

    def execute(self, text: str) -> list[list[str | None]]:
        """Carry one statement out, and return its rows as the server sends them.

        Raises pymysql.err.OperationalError.
        """
        result = self._result(text)
        if not result:
            return []
        try:
            columns = range(self._library.mysql_num_fields(result))
            rows = []
            while row := self._library.mysql_fetch_row(result):
                lengths = self._library.mysql_fetch_lengths(result)
                rows.append([_text(row[column], lengths[column]) for column in columns])
        finally:
            self._library.mysql_free_result(result)
        return rows

    def close(self) -> None:
        """Close the connection."""
        self._library.mysql_close(self._handle)
        self._handle = ctypes.c_void_p()

    def _result(self, text: str) -> "ctypes.c_void_p | None":
        """Return all rows in the library's memory; None for a statement without rows."""
        sent = text.encode()
        if self._library.mysql_real_query(self._handle, sent, len(sent)):
            raise self._error()
        result = self._library.mysql_store_result(self._handle)
        if not result and self._library.mysql_field_count(self._handle):
            raise self._error()
        return ctypes.c_void_p(result) if result else None

    def _error(self) -> pymysql.err.OperationalError:
        message = self._library.mysql_error(self._handle).decode(errors="replace")
        return pymysql.err.OperationalError(self._library.mysql_errno(self._handle), message)


def _text(value: int | None, length: int) -> str | None:
    return None if value is None else ctypes.string_at(value, length).decode()


def library_version() -> str:
    """Return the version of the library; empty if there is none, as may be where only Postgres runs."""
    try:
        version: bytes = client_library().mysql_get_client_info()
    except TidemarkError:
        return ""
    return version.decode()


@cache
def client_library() -> ctypes.CDLL:
    """Return the library, with the types of its functions. Raises TidemarkError."""
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        raise TidemarkError(
            f"none of {', '.join(LIBRARIES)} is installed",
            hint="install sysbench from packages, which depends on one of them",
        )
    handle, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint
    pointers = ctypes.POINTER(ctypes.c_void_p)
    types: dict[str, tuple[object, Sequence[object]]] = {
        "mysql_init": (handle, (handle,)),
        "mysql_options": (ctypes.c_int, (handle, ctypes.c_int, handle)),
        "mysql_real_connect": (handle, (handle, text, text, text, text, number, text, ctypes.c_ulong)),
        "mysql_real_query": (ctypes.c_int, (handle, text, ctypes.c_ulong)),
        "mysql_store_result": (handle, (handle,)),
        "mysql_free_result": (None, (handle,)),
        "mysql_field_count": (number, (handle,)),
        "mysql_num_fields": (number, (handle,)),
        "mysql_fetch_row": (pointers, (handle,)),
        "mysql_fetch_lengths": (ctypes.POINTER(ctypes.c_ulong), (handle,)),
        "mysql_thread_id": (ctypes.c_ulong, (handle,)),
        "mysql_errno": (number, (handle,)),
        "mysql_error": (text, (handle,)),
        "mysql_close": (None, (handle,)),
        "mysql_get_client_info": (text, ()),
    }
    for name, (result, arguments) in types.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
