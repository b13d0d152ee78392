"""The option file of a server: rendered from the template of its engine, and shown to the server."""

import re
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from build.engines import ENGINES
from build.finished_build import Build
from build.version import Engine
from suites.capabilities import SettingError, rendered
from suites.keys.durability import Durability
from suites.layers.certificate import SERVER_CERTIFICATE, SERVER_KEY, certificate_beside, loopback_address
from suites.layers.choice import NONE, Layers, Transport
from suites.processes import ProcessError, as_server_user, own, run, write_for_server
from suites.server import Address, session_password
from suites.sizing import SPARE_CONNECTIONS, Sizes

NAME = "tidemark"
"""The account of clients, and the database to which it has all rights."""

ADMIN = "root"

CLIENT_HOST = "127.0.0.1"
"""Where connections over TCP come from, whatever address of the loopback interface they go to."""

ACCOUNTS_FILE = "accounts.sql"
"""The name of the file with the statements that a server executes before it lets anybody in."""

TCP_PORT = 3379
"""The port with TCP: a service of the machine may have the usual one at all addresses."""

MIN_OPEN_TABLES = 4000
"""The default of table_open_cache in MySQL, which is twice that of MariaDB."""

OPEN_TABLES_OF_CLIENT = 16
"""Tables that one connection may have open at once."""

POOL_CHUNK = 128 * 1024**2
"""The default of innodb_buffer_pool_chunk_size in MySQL, which rounds its pool up to a multiple of it."""

CHUNKS_OF_POOL = 512
"""The chunks of a pool with a declared memory, in which there is no room for 127 MiB more. MySQL's manual
advises against more than 1000."""

REDO_FILES = 2
"""Number of files of innodb_log_file_size in the redo log of MySQL before 8.0.30."""

# Of the question whether a server accepts an option file.
_CHECK_SECONDS = 60.0

# MariaDB says which program it is.
_REFUSED = re.compile(r"\[ERROR\] (?:\[MY-\d+\] )?(?:\[Server\] )?(?:/\S+: )?(.*)$")

# The help, which MariaDB prints while it reads the settings, is dropped; errors go to stderr.
_ONLY_ERRORS = ("sh", "-c", 'exec "$0" "$@" >/dev/null')


def fill_in(
    template: Path,
    build: Build,
    sizes: Sizes,
    durability: Durability,
    socket: Path,
    settings: Mapping[str, str],
    layers: Layers = NONE,
) -> str:
    """Return the text of the option file for a server in the folder of its `socket`.

    Settings of the template that the version does not have are omitted. `settings` come last and therefore
    take precedence, after those of the `layers`. Raises CapabilityError if the version does not have one of
    them.
    """
    folder = socket.parent
    values = {
        "prefix": build.prefix,
        "folder": folder,
        "data": folder / "data",
        "socket": socket,
        "log": folder / "server.log",
        "binlog": folder / "data" / "binlog",
        "max_connections": sizes.connections + SPARE_CONNECTIONS,
        "table_open_cache": max(MIN_OPEN_TABLES, sizes.connections * OPEN_TABLES_OF_CLIENT),
        "buffer_bytes": sizes.buffer_bytes,
        "buffer_limit": settings.get("innodb_buffer_pool_size", sizes.buffer_bytes),
        "chunk_bytes": _chunk_bytes(sizes),
        "flush_at_commit": 1 if durability is Durability.FULL else 0,
        "redo_bytes": sizes.wal_limit_bytes,
        "redo_file_bytes": sizes.wal_limit_bytes // REDO_FILES,
    }
    of_layers = _layer_settings(layers, folder) if layers.transport is Transport.TCP else []
    return rendered(template, build, values, of_layers, settings, lambda name, value: f"{name} = {value}")


def address_of(engine: Engine, socket: Path, layers: Layers) -> Address:
    """Return the address of a server with new passwords."""
    is_tcp = layers.transport is Transport.TCP
    return Address(
        engine,
        socket,
        NAME,
        NAME,
        session_password(),
        ADMIN,
        secrets.token_hex(16),
        host=loopback_address(socket.parent) if is_tcp else "",
        port=TCP_PORT if is_tcp else 0,
        tls=certificate_beside(socket.parent) if layers.tls else None,
        protocol=layers.protocol,
    )


def account_statements(address: Address, identified: str) -> str:
    """Return the statements, one a line, that give the accounts of a server their passwords and rights.

    `identified` is the clause with the plugin and password of clients.
    """
    statements = [
        "SET sql_log_bin = 0",  # MariaDB would write the passwords into the binary log
        f"ALTER USER {ADMIN}@localhost IDENTIFIED BY '{address.admin_password}'",
        f"CREATE DATABASE IF NOT EXISTS {NAME}",
    ]
    for host in ("localhost", *([CLIENT_HOST] if address.host else [])):
        account = f"{NAME}@'{host}'"
        statements += [
            f"CREATE USER IF NOT EXISTS {account}",
            f"ALTER USER {account} {identified}",
            f"GRANT ALL ON {NAME}.* TO {account}",
        ]
    return "".join(f"{statement};\n" for statement in statements)


def _chunk_bytes(sizes: Sizes) -> int:
    """Return the unit of the buffer pool: whole MiB, as MySQL wants it."""
    if sizes.memory_bytes is None:
        return POOL_CHUNK
    mebibytes = sizes.buffer_bytes // CHUNKS_OF_POOL // 1024**2
    return min(POOL_CHUNK, max(1, mebibytes) * 1024**2)


def writes_directly(settings: Mapping[str, str]) -> bool:
    """Return whether a server with these settings writes data files past the page cache.

    The templates say O_DIRECT. MariaDB has settings for data files and log beside it.
    """
    method = settings.get("innodb_flush_method", "O_DIRECT").upper()
    buffered = settings.get("innodb_data_file_buffering", "OFF").upper()
    return method in ("O_DIRECT", "O_DIRECT_NO_FSYNC") and buffered in ("OFF", "0")


def _layer_settings(layers: Layers, folder: Path) -> list[str]:
    lines = [
        "skip_networking = OFF",
        f"bind_address = {loopback_address(folder)}",
        f"port = {TCP_PORT}",
        # Accounts are of addresses, and looking names up is not what is measured.
        "skip_name_resolve = ON",
    ]
    if layers.tls:
        certificate = folder / SERVER_CERTIFICATE
        lines += [f"ssl_cert = {certificate}", f"ssl_key = {folder / SERVER_KEY}", f"ssl_ca = {certificate}"]
        lines.append("require_secure_transport = ON")
    return lines


def check(build: Build, text: str, words: Sequence[str]) -> None:
    """Ask the server, by the `words` of its command line, whether it accepts `text`, a whole option file.

    It needs no data directory. Raises SettingError with the settings and values that the server refuses.
    """
    with tempfile.TemporaryDirectory() as folder:
        own(Path(folder))
        file = Path(folder) / "my.cnf"
        # Errors go to stderr, not to a log whose folder does not exist yet.
        kept = [line for line in text.splitlines() if not line.startswith("log_error =")]
        write_for_server(file, "\n".join(kept) + "\n")
        program = build.program(ENGINES[build.version.engine].server_program)
        command = [*_ONLY_ERRORS, *as_server_user([program, f"--defaults-file={file}", *words])]
        failure = None
        try:
            output = run(command, what="reading the configuration", seconds=_CHECK_SECONDS)
        except ProcessError as error:
            output, failure = error.what, error
    # MariaDB only notes what it refuses of a storage engine, and ends well.
    refused = [match[1].rstrip(".") for line in output.splitlines() if (match := _REFUSED.search(line))]
    if refused or failure is not None:
        reason = "; ".join(line for line in refused if line != "Aborting") or output or str(failure)
        raise SettingError(
            f"{build.version} refuses its settings: {reason}",
            hint="correct --with setting.NAME=VALUE, or the settings of the variant in the plan",
        ) from failure
