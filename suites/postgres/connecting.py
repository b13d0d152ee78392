"""How clients and this process connect to a measured Postgres server, whatever the caller's variables say."""

import os
from typing import Any

import psycopg

from suites.server import Address, postgres_port


def client_place(address: Address) -> tuple[str, int]:
    """Return host and port for clients: a folder with a Unix socket, or an address."""
    return address.host or str(address.socket.parent), postgres_port(address.socket)


def client_database(address: Address) -> str:
    """Return the database for clients: its name or, with TCP, a connection string.

    libpq takes a string with an equals sign in place of a name, and the password from a variable. Encryption
    is never left to its default, which asks the server.
    """
    words = client_words(address)
    if not words:
        return address.database
    return " ".join(f"{name}={value}" for name, value in {"dbname": address.database, **words}.items())


def client_words(address: Address) -> dict[str, str]:
    """Return what libpq is told of encryption; nothing for a socket."""
    if not address.host:
        return {}
    return {"sslmode": "require" if address.tls else "disable", "gssencmode": "disable"}


def client_options(address: Address) -> list[str]:
    """Return the options of a program for host, port and user."""
    host, port = client_place(address)
    return [f"--host={host}", f"--port={port}", f"--username={address.user}"]


CONNECT_SECONDS = 10

_DEFAULTS = {"sslcertmode": "allow", "min_protocol_version": "3.0", "max_protocol_version": "3.0"}
"""The defaults of options that take no empty text, for which libpq does not name a default."""

Connection = psycopg.Connection[tuple[Any, ...]]


def connect(address: Address, database: str | None = None, **options: Any) -> Connection:
    """Return a connection in autocommit mode; `options` are further ones of psycopg.connect.

    Raises psycopg.OperationalError.
    """
    told: dict[str, Any] = {**told_of(address, database), "autocommit": True}
    return psycopg.connect(**{**told, **options})


def told_of(address: Address, database: str | None = None) -> dict[str, str]:
    """Return what libpq is told for a connection to an address.

    libpq takes what it is not told from variables such as PGOPTIONS, which a history on a server may need.
    Those that no argument overrides are kept out of the process altogether, as
    build.environment.kept_from_process says.
    """
    return {
        **_defaults_of_variables(),
        "host": str(address.socket.parent),
        "port": str(postgres_port(address.socket)),
        "user": address.user,
        "dbname": database or address.database,
        "connect_timeout": str(CONNECT_SECONDS),
        **({"password": address.password} if address.password else {}),
    }


def _defaults_of_variables() -> dict[str, str]:
    """Return libpq's own default for every option that a variable sets; an empty text is none."""
    chosen = {}
    for option in psycopg.pq.Conninfo.get_defaults():
        name = option.keyword.decode()
        if option.envvar is not None and option.envvar.decode() in os.environ and name != "service":
            chosen[name] = (option.compiled or b"").decode() or _DEFAULTS.get(name, "")
    return chosen
