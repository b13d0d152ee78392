"""The options with which sysbench connects to a server, by the driver for its engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from build.engines import EngineRegistry
from build.version import Engine
from suites.server import Address, postgres_port


@dataclass(frozen=True)
class SysbenchDriver:
    """One of the database drivers that sysbench is compiled with."""

    name: str
    """The value of `--db-driver`, with which the driver's own options begin."""

    place: Callable[[Address], Mapping[str, object]]
    """The driver's options for an address, without the driver's name."""


def _postgres(address: Address) -> dict[str, object]:
    return {"host": address.socket.parent, "port": postgres_port(address.socket)}


def _mysql(address: Address) -> dict[str, object]:
    return {"socket": address.socket, "password": address.password}


DRIVERS = EngineRegistry(
    "sysbench driver",
    __name__,
    {
        Engine.POSTGRES: SysbenchDriver("pgsql", _postgres),
        Engine.MYSQL: SysbenchDriver("mysql", _mysql),
        # Both speak the same protocol, and Debian links this driver with MariaDB's own client library.
        Engine.MARIADB: SysbenchDriver("mysql", _mysql),
    },
)


def connection_options(address: Address) -> list[str]:
    """Return sysbench's options for connecting to the server at `address`."""
    driver = DRIVERS[address.engine]
    options = {**driver.place(address), "user": address.user, "db": address.database}
    named = (f"--{driver.name}-{name}={value}" for name, value in options.items())
    return [f"--db-driver={driver.name}", *named]
