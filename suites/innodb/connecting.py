"""Connections to a server of the MySQL family, through its Unix socket whatever transport clients use."""

from typing import Any

import pymysql

from suites.engine import PATIENCE_SECONDS
from suites.server import Address


def connect(address: Address, **options: Any) -> Any:
    """Return a connection of PyMySQL in autocommit mode, with further `options` of its.

    Raises pymysql.err.Error.
    """
    told = {"read_timeout": PATIENCE_SECONDS, "autocommit": True, **options}
    return pymysql.connect(
        unix_socket=str(address.socket),
        user=address.user,
        password=address.password,
        database=address.database,
        **told,
    )
