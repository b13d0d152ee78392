"""The options with which Postgres' own programs, and others of libpq, connect to a server."""

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
