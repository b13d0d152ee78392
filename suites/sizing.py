"""Sizes of data, server and load, computed from the cores and the memory of a machine."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from build.control_groups import memory_limit
from build.errors import TidemarkError
from build.host import usable_cores
from suites.control_groups.declared import DiskSpeed
from suites.data_sets import DataSet, data_set
from suites.definition import Suite
from suites.keys.profile import Profile
from suites.keys.step import Step

WAL_LIMIT_SHARE = 0.25
"""max_wal_size as a share of memory: large enough that a step does not force frequent checkpoints."""

WAL_LIMIT_MIN = 2 * 1024**3
WAL_LIMIT_MAX = 64 * 1024**3

DECLARED_WAL_LIMIT_MIN = 128 * 1024**2
"""The least max_wal_size of a server with a declared memory: its checkpoints are to come as often as on a
machine that has more of everything."""

MIN_BUFFER = 128 * 1024**2
"""The smallest buffer cache."""

WAL_TO_DATA = 16
"""max_wal_size as a multiple of the loaded data, at most."""


class DiskSpaceError(TidemarkError):
    """There is too little disk space for the data of a session."""


@dataclass(frozen=True)
class Hardware:
    """The properties of a machine that determine sizes."""

    cores: int
    """Number of usable cores."""
    memory_bytes: int
    """Its memory: physical, or what a control group leaves."""
    usable: tuple[int, ...] = ()
    """The numbers of the usable cores; empty if they are not known."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of one server of a session, its data and its load."""

    threads: int
    """Client threads, with one connection per thread."""
    data: DataSet
    """The loaded data."""
    buffer_bytes: int
    wal_limit_bytes: int
    disk_bytes: int
    """Estimated maximum disk space of one server."""
    workers: int
    """Number of processes that maintenance, such as vacuum and index builds, may use in parallel."""
    bound_to: tuple[int, ...] | None = None
    """The cores to which servers and load generators are bound; None does not bind them."""
    usable: tuple[int, ...] = ()
    """The numbers of the usable cores; empty if they are not known."""
    most_clients: int = 0
    """The clients of the highest level of any step; 0 without levels."""
    most_connections_of_client: int = 1
    """The most connections that a client of any step has, those in the background included."""
    memory_bytes: int | None = None
    """The memory of a server's control group, page cache included; None for all of the machine's."""
    disk: DiskSpeed | None = None
    """What a server's control group may ask of the disk; None for all that it does."""

    @property
    def connections(self) -> int:
        """The most connections that load generators open to one server."""
        return max(self.threads, self.most_clients) * self.most_connections_of_client

    def clients_of(self, step: Step) -> int:
        """Return the clients of a step: those of its level, else `threads`; one of a timed step."""
        if step.timed:
            return 1
        return step.clients[0] if step.clients else self.threads

    @property
    def data_loaded(self) -> str:
        """What is loaded, in words: its size, or the files that alone know it."""
        return str(self.data.facts.get("setup") or f"{self.data_bytes / 1e6:.0f} MB")

    @property
    def data_bytes(self) -> int:
        """Estimated size of the loaded data on disk."""
        return self.data.bytes


def this_machine() -> Hardware:
    """Return the cores and the memory that this process may use, within the limits of its control groups."""
    usable, limit = usable_cores(), memory_limit()
    memory = psutil.virtual_memory().total
    return Hardware(len(usable), memory if limit is None else min(memory, limit), usable)


def sizes(suite: Suite, profile: Profile, machine: Hardware, steps: Sequence[Step] = ()) -> Sizes:
    """Return the sizes of `suite` in `profile`: data are sized by memory, threads by cores.

    The memory is what the profile declares for each server, else that of the machine.

    `steps` are those of a session, whose highest level decides how many connections there can be.

    Up to 4 cores, one client thread is enough to keep a core busy and leave another one for background work.
    Above that, there are 5 threads per 6 cores (40 threads on 48 cores).
    """
    threads = 1 if machine.cores <= 4 else machine.cores * 5 // 6
    memory = machine.memory_bytes if profile.memory is None else profile.memory
    least_wal = WAL_LIMIT_MIN if profile.memory is None else DECLARED_WAL_LIMIT_MIN
    data = data_set(suite, profile, memory * profile.data_to_memory, threads)
    wal_limit = int(min(max(memory * WAL_LIMIT_SHARE, least_wal), WAL_LIMIT_MAX))
    # Small data need little log, as a checkpoint follows every step. InnoDB allocates its log in advance.
    wal_limit = min(wal_limit, max(WAL_TO_DATA * data.bytes, least_wal // 2))
    return Sizes(
        threads=threads,
        data=data,
        buffer_bytes=max(int(memory * profile.buffer_to_memory), MIN_BUFFER),
        wal_limit_bytes=wal_limit,
        disk_bytes=int(data.bytes * suite.growth) + wal_limit,
        workers=max(1, machine.cores // 2),
        bound_to=_bound_to(machine, threads),
        usable=machine.usable,
        most_clients=max((clients for step in steps for clients in step.clients), default=0),
        most_connections_of_client=max((step.connections_of_client for step in steps), default=1),
        memory_bytes=profile.memory,
        disk=profile.disk,
    )


def _bound_to(machine: Hardware, threads: int) -> tuple[int, ...] | None:
    """Return the last core if there is one client thread, else None.

    On virtual machines, scheduling is the largest source of noise: throughput changes by a factor of two to
    five depending on whether client and server share a core or wake each other up across two, which hides the
    cost of the server's own work (docs/decisions/0016-interleaved-rounds.md).
    """
    return machine.usable[-1:] if threads == 1 and machine.usable else None


def require_disk(folder: Path, needed_bytes: int) -> None:
    """Raise DiskSpaceError unless the file system of `folder` has `needed_bytes` free."""
    existing = next(path for path in [folder, *folder.parents] if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed_bytes:
        raise DiskSpaceError(
            f"too little disk space: {needed_bytes / 1e9:.1f} GB needed, {free / 1e9:.1f} GB free",
            where=str(folder),
            hint="free some disk space, set TIDEMARK_HOME to a larger file system, or use a smaller profile",
        )


MEMORY_BESIDE_BUFFERS = 256 * 1024**2
"""Memory that a server needs besides its buffer cache."""

MEMORY_OF_CLIENT = 8 * 1024**2
"""Memory that a server needs for each client of a level, with its prepared statements."""

MEMORY_SHARE = 0.8
"""Share of the memory that servers may use which run at the same time; the rest caches their files."""


def fit_together(servers: int, sizes: Sizes, machine: Hardware) -> bool:
    """Return whether the memory is sufficient for this number of servers at the same time."""
    beside = MEMORY_BESIDE_BUFFERS + sizes.most_clients * MEMORY_OF_CLIENT
    server_bytes = sizes.memory_bytes or sizes.buffer_bytes + beside
    return servers * server_bytes <= machine.memory_bytes * MEMORY_SHARE


def least_memory(profile: Profile, sizes: Sizes, beside_buffers: int) -> int:
    """Return the least memory in bytes that can be declared for a server: its buffers and what is beside.

    `beside_buffers` are the bytes that a server of its engine needs without clients.
    """
    beside = beside_buffers + sizes.most_clients * MEMORY_OF_CLIENT
    return int(max(MIN_BUFFER + beside, beside / (1 - profile.buffer_to_memory)))


OWN_CACHE_SHARE = 0.85
"""The buffers of a server that has no other cache, as a share of what it does not need beside them.

The rest is for what it allocates while it works, and for its logs, which go through the page cache."""


def with_own_cache(sizes: Sizes, beside_buffers: int) -> Sizes:
    """Return the sizes of a server that reads and writes data past the page cache, of an engine as above.

    With a declared memory its buffers are all that caches data, and get what the page cache of another server
    holds too. Otherwise it shares the machine's memory with servers whose number is not known here.
    """
    if sizes.memory_bytes is None:
        return sizes
    left = sizes.memory_bytes - beside_buffers - sizes.most_clients * MEMORY_OF_CLIENT
    return replace(sizes, buffer_bytes=max(MIN_BUFFER, int(left * OWN_CACHE_SHARE)))


def max_transactions(step: Step, sizes: Sizes) -> int | None:
    """Return the maximum number of transactions of a step on its data; None if it does not use rows up."""
    share = step.most_work_to_rows
    return None if share is None else max(1, int(sizes.data.walked(step.rows_of).rows * share))
