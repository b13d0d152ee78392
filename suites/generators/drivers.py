"""How sysbench is told which server to connect to: by the options of the driver that an engine needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from build.engines import EngineRegistry
from build.version import Engine
from suites.server import Address, postgres_port


@dataclass(frozen=True)
class SysbenchDriver:
    """One of the database drivers that sysbench is compiled with."""

    name: str
    """As `--db-driver` takes it; its own options begin with it."""

    place: Callable[[Address], Mapping[str, object]]
    """Its options, without the driver's name, that say where the server is and how to log in."""


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
    },
)


def connection_options(address: Address) -> list[str]:
    """The options of sysbench that name the server at `address`, its account and its database."""
    driver = DRIVERS[address.engine]
    options = {**driver.place(address), "user": address.user, "db": address.database}
    named = (f"--{driver.name}-{name}={value}" for name, value in options.items())
    return [f"--db-driver={driver.name}", *named]
