"""Sizes of data, server and load by the cores and memory of a machine, and what bounds the clients."""

import resource
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from build.control_groups import memory_limit
from build.errors import TidemarkError
from build.host import usable_cores
from build.version import Version
from suites.capabilities import CAPABILITIES
from suites.control_groups.declared import DiskSpeed
from suites.definition import Scale, ScaledTable, Suite
from suites.keys.profile import Profile
from suites.keys.step import Step
from suites.keys.values import Option

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


SPARE_CONNECTIONS = 20
"""Connections of a server besides the load generator's: for Tidemark, vacuum, and whoever inspects it."""


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


TABLE_THREADS = 5
"""Client threads per table: the study that the write-heavy suite follows uses 40 threads on 8 tables."""


@dataclass(frozen=True)
class Part:
    """The part of a data set that one process loads."""

    options: Mapping[str, int]
    """Options that identify the part to the suite's script."""
    rows: int
    """Number of rows in the part."""


@dataclass(frozen=True)
class WalkedRows:
    """The rows that the threads of a step visit in order, if the step uses rows up."""

    tables: int
    """Number of tables with such rows; a thread draws the table of each transaction at random."""
    rows_per_table: int

    @property
    def rows(self) -> int:
        """Rows over all these tables."""
        return self.tables * self.rows_per_table


@dataclass(frozen=True)
class DataSet:
    """The loaded data of one server: equal tables, tables of a scale, or those that files of a suite make."""

    bytes: int
    """Estimated size of the loaded data on disk."""
    options: Mapping[str, Option]
    """Options that give the size of the data to the suite's script, in `prepare` and in `run`, where those of
    a step override them."""
    facts: Mapping[str, int | str]
    """The description of the data that the history stores with each session."""
    stages: Sequence[Sequence[Part]] = ()
    """The stages of loading, one after the other; the parts of one stage are loaded in parallel."""
    rows: int = 0
    """Loaded rows over all tables; 0 if they are known to the suite's files alone."""
    tables: int = 0
    """The equal tables, or 1; 0 if they are known to the suite's files alone."""
    rows_by_table: Mapping[str, int] = field(default_factory=dict)
    """Loaded rows of each table of a suite's scale; empty if the suite has no scale."""
    scale: int | None = None
    """Number of units of the suite's scale; None if the suite has no scale."""

    def walked(self, table: str | None) -> WalkedRows:
        """Return the rows that are used up by a step whose `rows_of` is `table`; all if it is None."""
        if table is not None:
            return WalkedRows(1, self.rows_by_table[table])
        return WalkedRows(self.tables, self.rows // max(1, self.tables))


def equal_tables(tables: int, rows_per_table: int, size: int) -> DataSet:
    """Return so many tables with the same structure and number of rows, of `size` bytes in all.

    They are loaded in one stage with one part per table, so that rows depend only on the seed and the table's
    number.
    """
    return DataSet(
        size,
        {"tables": tables, "table_size": rows_per_table},
        {"tables": tables, "rows_per_table": rows_per_table},
        [[Part({"table": table}, rows_per_table) for table in range(1, tables + 1)]],
        tables * rows_per_table,
        tables,
    )


def scaled_tables(scale: Scale, units: int) -> DataSet:
    """Return the tables of a scale with so many units, whose rows the script knows.

    Unit 0 creates the tables and fills those of fixed size, then all others are loaded in parallel.
    """
    growing = {name: table for name, table in scale.tables.items() if not table.fixed}
    fixed = {name: table for name, table in scale.tables.items() if table.fixed}
    rows_per_unit = sum(table.rows for table in growing.values())
    fixed_rows = sum(table.rows for table in fixed.values())
    return DataSet(
        int(_bytes_of_rows(fixed.values()) + units * _bytes_of_rows(growing.values())),
        {"scale": units},
        {"scale": units, "unit": scale.unit},
        [
            [Part({"unit": 0}, fixed_rows)],
            [Part({"unit": unit}, rows_per_unit) for unit in range(1, units + 1)],
        ],
        fixed_rows + units * rows_per_unit,
        1,
        {name: table.rows * (1 if table.fixed else units) for name, table in scale.tables.items()},
        units,
    )


def own_tables(suite: Suite, profile: Profile, wanted_bytes: float) -> DataSet:
    """Return the tables of the suite's own files, which are taken to have `wanted_bytes`, or those of a dump.

    A script prepares them with the options that all steps have with the same value, or the profile for all.
    """
    first, *others = [{**step.options, **_known(profile.options, step.options)} for step in suite.steps]
    shared = {
        name: value for name, value in first.items() if all(other.get(name) == value for other in others)
    }
    files = [name for name in (suite.load, suite.setup, suite.script) if name is not None]
    dumped = 0 if suite.load is None else _bytes_of_files(suite.folder / suite.load)
    options = shared if suite.script is not None else {}
    return DataSet(max(int(wanted_bytes), dumped), options, {"setup": ", ".join(files)})


def _bytes_of_files(path: Path) -> int:
    """Return the size of a file, or of all files of a folder."""
    return sum(part.stat().st_size for part in (path, *path.rglob("*")) if part.is_file())


def _known(options: Mapping[str, Option], own: Mapping[str, Option]) -> Mapping[str, Option]:
    return {name: value for name, value in options.items() if name in own}


def _bytes_of_rows(tables: Iterable[ScaledTable]) -> float:
    return sum(table.bytes for table in tables)


def data_set(suite: Suite, profile: Profile, wanted_bytes: float, threads: int) -> DataSet:
    """Return the data of `suite` of about `wanted_bytes` in all, within the bounds of `profile`."""
    if suite.scale is not None and profile.scale is not None:
        fixed_bytes = _bytes_of_rows(table for table in suite.scale.tables.values() if table.fixed)
        unit_bytes = _bytes_of_rows(table for table in suite.scale.tables.values() if not table.fixed)
        least, most = profile.scale
        return scaled_tables(
            suite.scale, min(max(int((wanted_bytes - fixed_bytes) / unit_bytes), least), most)
        )
    if suite.bytes_per_row is None or profile.rows is None:
        return own_tables(suite, profile, wanted_bytes)
    tables = profile.tables or max(1, threads // TABLE_THREADS)
    least, most = profile.rows
    growing = [table for table in suite.beside.values() if not table.fixed]
    bytes_per_row = suite.bytes_per_row + sum(table.rows * table.bytes_per_row for table in growing)
    fixed_bytes = sum(table.rows * table.bytes_per_row for table in suite.beside.values() if table.fixed)
    wanted = int((wanted_bytes - fixed_bytes) / bytes_per_row)
    rows_per_table = max(1, min(max(wanted, least), most) // tables)
    return equal_tables(tables, rows_per_table, int(rows_per_table * tables * bytes_per_row + fixed_bytes))


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
