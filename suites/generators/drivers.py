"""The options with which sysbench connects to a server, by the driver for its engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from build.engines import EngineRegistry
from build.version import Engine
from suites.postgres.client_options import client_database, client_place
from suites.server import Address


@dataclass(frozen=True)
class SysbenchDriver:
    """One of the database drivers that sysbench is compiled with."""

    name: str
    """The value of `--db-driver`, with which the driver's own options begin."""

    options: Callable[[Address], Mapping[str, object]]
    """The driver's options for an address, without the driver's name."""

    reads_certificate: bool = False
    """Whether it reads the certificate from files of its own names in the current folder."""


def _postgres(address: Address) -> dict[str, object]:
    host, port = client_place(address)
    return {"host": host, "port": port, "user": address.user, "db": client_database(address)}


def _mysql(address: Address) -> dict[str, object]:
    place: dict[str, object] = {"socket": address.socket}
    if address.host:
        place = {"host": address.host, "port": address.port}
    tls = {} if address.tls is None else {"ssl": "on"}
    return {**place, **tls, "user": address.user, "db": address.database}


SIMPLE = "simple"
"""The protocol in which statements are sent as text; in any other, sysbench prepares them."""

DRIVERS = EngineRegistry(
    "sysbench driver",
    __name__,
    {
        Engine.POSTGRES: SysbenchDriver("pgsql", _postgres),
        Engine.MYSQL: SysbenchDriver("mysql", _mysql, reads_certificate=True),
        # Both speak the same protocol, and Debian links this driver with MariaDB's own client library.
        Engine.MARIADB: SysbenchDriver("mysql", _mysql, reads_certificate=True),
    },
)


def connection_options(address: Address) -> list[str]:
    """Return sysbench's options for connecting to the server at `address`, without the password."""
    driver = DRIVERS[address.engine]
    named = (f"--{driver.name}-{name}={value}" for name, value in driver.options(address).items())
    return [f"--db-driver={driver.name}", *named]


def statement_options(address: Address, *, prepares: bool) -> list[str]:
    """Return sysbench's option for sending statements as text, where they are not prepared."""
    return [] if prepares and address.protocol != SIMPLE else ["--db-ps-mode=disable"]


def current_folder(*addresses: Address) -> Path | None:
    """Return the folder in which a sysbench has to run to reach servers with TLS; None for any folder."""
    folders = (address.tls for address in addresses if DRIVERS[address.engine].reads_certificate)
    return next((folder for folder in folders if folder is not None), None)
