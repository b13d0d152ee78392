"""What bounds the clients of a session: servers, settings, open files, processes, memory."""

import resource
from collections.abc import Mapping
from pathlib import Path

from build.errors import TidemarkError
from build.version import Version
from suites.capabilities import CAPABILITIES
from suites.sizing import SPARE_CONNECTIONS, Hardware, Sizes, fit_together

FILES_OF_CLIENT = 4
"""Open files that one client may take in the largest of the processes that serve it."""

OTHER_FILES = 4096
"""Open files of that process besides: tables, logs, its own."""

OTHER_PROCESSES = 1000
"""Processes and threads of the machine that are not clients or their backends."""

MAX_CONNECTIONS = "max_connections"
"""The setting of every engine that limits connections."""


class ClientsError(TidemarkError):
    """A server or the machine cannot carry so many clients."""


def require_clients(sizes: Sizes, chosen: Mapping[Version, Mapping[str, str]], machine: Hardware) -> None:
    """Raise ClientsError if the highest level has more clients than a server or the machine can carry.

    `chosen` are the settings of the session by version. The limit of open files of this process, which all
    programs inherit, is raised if necessary.
    """
    clients = sizes.most_clients * sizes.most_connections_of_client
    if not clients:
        return
    for version, settings in chosen.items():
        _require_of_server(clients, version, settings.get(MAX_CONNECTIONS))
    _require_of_kernel(clients * len(chosen))
    if not fit_together(1, sizes, machine):
        raise _too_many(
            f"a server with {clients} clients does not fit into {machine.memory_bytes / 1e9:.1f} GB of memory"
        )
    _raise_open_files(clients * FILES_OF_CLIENT + OTHER_FILES, clients)


def _require_of_server(clients: int, version: Version, chosen: str | None) -> None:
    most = CAPABILITIES[version.engine].most_connections
    if chosen is not None and chosen.isdigit():
        most = min(most, int(chosen))
    if clients + SPARE_CONNECTIONS > most:
        raise _too_many(
            f"{version} takes {most} connections: {clients} clients and {SPARE_CONNECTIONS} others connect"
        )


def _require_of_kernel(clients: int) -> None:
    """A client is a thread of sysbench and a process or thread of the server."""
    limits = [_number(Path("/proc/sys/kernel/pid_max")), _number(Path("/proc/sys/kernel/threads-max"))]
    most = min(limit for limit in (*limits, 2**31) if limit)
    if 2 * clients + OTHER_PROCESSES > most:
        raise _too_many(
            f"{clients} clients of all servers and their backends are {2 * clients} threads; the kernel "
            f"has at most {most}"
        )


def _raise_open_files(needed: int, clients: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise _too_many(f"{clients} clients need {needed} open files, of at most {hard} (ulimit -Hn)")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _too_many(what: str) -> ClientsError:
    return ClientsError(what, where="--clients", hint="use fewer clients, or give them more room")
