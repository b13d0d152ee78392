"""The options with which sysbench connects to a server, by the driver for its engine."""

from pathlib import Path

from suites.engines import engine_of
from suites.server import Address

SIMPLE = "simple"
"""The protocol in which statements are sent as text; in any other, sysbench prepares them."""


def connection_options(address: Address) -> list[str]:
    """Return sysbench's options for connecting to the server at `address`, without the password."""
    driver = engine_of(address.engine).driver
    named = (f"--{driver.name}-{name}={value}" for name, value in driver.options(address).items())
    return [f"--db-driver={driver.name}", *named]


def statement_options(address: Address, *, prepares: bool) -> list[str]:
    """Return sysbench's option for sending statements as text, where they are not prepared."""
    return [] if prepares and address.protocol != SIMPLE else ["--db-ps-mode=disable"]


def current_folder(*addresses: Address) -> Path | None:
    """Return the folder in which a sysbench has to run to reach servers with TLS; None for any folder."""
    folders = (address.tls for address in addresses if engine_of(address.engine).driver.reads_certificate)
    return next((folder for folder in folders if folder is not None), None)
