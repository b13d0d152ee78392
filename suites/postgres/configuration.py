"""Rendering postgresql.conf for a version, the sizes of a machine and a durability."""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from build.finished_build import Build
from suites.capabilities import SettingError, rendered
from suites.keys.durability import Durability
from suites.layers.certificate import SERVER_CERTIFICATE, SERVER_KEY, loopback_address
from suites.layers.choice import NONE, Layers, Transport
from suites.processes import ProcessError, as_server_user, own, run, write_for_server
from suites.sizing import SPARE_CONNECTIONS, Sizes

TEMPLATE = Path(__file__).with_name("postgresql.conf.in")

NAME = "tidemark"
"""The role of clients and their database, which it owns."""

ADMIN = "tidemark_admin"
"""The superuser, which no dump names. Only the server's user, and root, reach the folder of the socket."""

PASSWORD_METHOD = "scram-sha-256"
"""How clients authenticate with TCP: the loopback interface is open to every user of the machine."""

_HOST_AUTHENTICATION = """local all {admin} trust
local replication {admin} trust
local all all {method}
"""

_WRONG_SETTING = "correct --with setting.NAME=VALUE, or the settings of the variant in the plan"
_NO_TLS = "tls=on needs a server that is compiled with OpenSSL, as those are that Tidemark compiles for it"

# Of the question whether a server accepts a configuration.
_CHECK_SECONDS = 60.0

PORT = 5432
"""The port, which is in the name of the Unix socket."""

_TCP_PORT = 5479
"""The same with TCP: a service of the machine may have the usual one at all addresses."""


def render(
    build: Build,
    sizes: Sizes,
    durability: Durability,
    socket_folder: Path,
    overrides: Mapping[str, str],
    layers: Layers = NONE,
) -> str:
    """Return the text of postgresql.conf for a server whose socket is in a folder.

    Settings that the version does not have are omitted. `overrides` come last and therefore take precedence,
    after the settings of the `layers`. Raises CapabilityError if the version does not have one of them.
    """
    values = {
        "socket_folder": _quote(str(socket_folder)),
        "max_connections": sizes.connections + SPARE_CONNECTIONS,
        "shared_buffers": _megabytes(sizes.buffer_bytes),
        "maintenance_work_mem": _megabytes(min(sizes.buffer_bytes // 4, 1024**3)),
        "synchronous_commit": "on" if durability is Durability.FULL else "off",
        "max_wal_size": _megabytes(sizes.wal_limit_bytes),
        "min_wal_size": _megabytes(min(sizes.wal_limit_bytes, 1024**3)),
        "maintenance_workers": sizes.workers,
        "effective_cache_size": _megabytes(2 * sizes.buffer_bytes),
        "io_method": "sync",
    }
    of_layers = _layer_settings(layers, socket_folder)
    return rendered(
        TEMPLATE, build, values, of_layers, overrides, lambda name, value: f"{name} = '{_quote(value)}'"
    )


def host_authentication(layers: Layers) -> str:
    """Return the text of pg_hba.conf: over TCP it lets in no role but that of clients."""
    if layers.transport is Transport.SOCKET:
        return _HOST_AUTHENTICATION.format(admin=ADMIN, method="trust")
    text = _HOST_AUTHENTICATION.format(admin=ADMIN, method=PASSWORD_METHOD)
    return text + f"host all {NAME} 127.0.0.0/8 {PASSWORD_METHOD}\n"


def port_of(layers: Layers) -> int:
    """Return the port of a server: with TCP one that no service of the machine has."""
    return _TCP_PORT if layers.transport is Transport.TCP else PORT


def _layer_settings(layers: Layers, folder: Path) -> list[str]:
    lines = []
    if layers.transport is Transport.TCP:
        lines += [f"listen_addresses = '{loopback_address(folder)}'", f"port = {port_of(layers)}"]
    if layers.tls:
        files = {"ssl_cert_file": SERVER_CERTIFICATE, "ssl_key_file": SERVER_KEY}
        lines += ["ssl = on", *(f"{key} = '{_quote(str(folder / file))}'" for key, file in files.items())]
    return lines


_REFUSED = re.compile(r"(?:LOG|FATAL|ERROR):\s+(.*?)(?: in file \".*)?$")


def writes_directly(settings: Mapping[str, str]) -> bool:
    """Return whether a server with these settings writes data and log past the page cache (since 16)."""
    directly = {word.strip() for word in settings.get("debug_io_direct", "").split(",")}
    return {"data", "wal"} <= directly


def check(build: Build, text: str) -> None:
    """Ask the server whether it accepts `text`, a whole configuration, without a data directory.

    Raises SettingError with the names of settings that it does not know and of values that it refuses.
    """
    with tempfile.TemporaryDirectory() as folder:
        own(Path(folder))
        write_for_server(Path(folder) / "postgresql.conf", text)
        command: list[str | Path] = [build.program("postgres"), "-D", folder, "-C", "max_connections"]
        try:
            run(as_server_user(command), what="reading the configuration", seconds=_CHECK_SECONDS)
        except ProcessError as error:
            lines = (match[1] for line in error.what.splitlines() if (match := _REFUSED.search(line)))
            reasons = [line for line in lines if not line.startswith(("skipping", "configuration file"))]
            raise SettingError(
                f"{build.version} refuses its settings: {'; '.join(reasons) or error.what}",
                hint=_NO_TLS if "SSL is not supported" in error.what else _WRONG_SETTING,
            ) from error


def _megabytes(size: int) -> str:
    return f"{size // 1024**2}MB"


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")
