"""The registry of companions: beside which engines they run, and what they need of a server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from build.finished_build import Build
from build.version import Engine
from suites.additions.binlog import BinlogConsumer
from suites.additions.companion import Companion, CompanionError
from suites.additions.consumers import KEPT_WAL, LogicalConsumer, PhysicalConsumer
from suites.additions.names import CompanionName
from suites.additions.pooler import PROGRAM, Pooler
from suites.generators.placement import Placement
from suites.processes import tool
from suites.server import Address, Server


@dataclass(frozen=True)
class CompanionKind:
    """One kind of companion."""

    make: Callable[[str, Build, Address], Companion]
    engines: frozenset[Engine]
    settings: Mapping[str, str] = field(default_factory=dict)
    """Server settings that it needs, which those of a variant override."""

    build_programs: tuple[str, ...] = ()
    """Programs of the server's build, which slim builds do not have."""

    system_programs: tuple[str, ...] = ()

    disk_bytes: int = 0
    """Disk space that it needs at most, beside the server's."""

    among_clients: bool = False
    """Whether it runs on the cores of the load generator; others run on cores that nobody is bound to."""

    prepares: bool = True
    """Whether clients can prepare statements through it."""


_WAL = {"max_wal_senders": "2", "max_slot_wal_keep_size": KEPT_WAL}
_SLOT = 2 * 1024**3  # what the slot keeps, and as much that a checkpoint has yet to remove
_POSTGRES = frozenset({Engine.POSTGRES})

COMPANIONS: Mapping[CompanionName, CompanionKind] = {
    # 1.18, Debian's, does not know prepared statements in transaction mode.
    CompanionName.PGBOUNCER: CompanionKind(
        Pooler, _POSTGRES, system_programs=(PROGRAM,), among_clients=True, prepares=False
    ),
    CompanionName.LOGICAL_CONSUMER: CompanionKind(
        LogicalConsumer, _POSTGRES, {**_WAL, "wal_level": "logical"}, ("pg_recvlogical",), disk_bytes=_SLOT
    ),
    CompanionName.PHYSICAL_CONSUMER: CompanionKind(
        PhysicalConsumer, _POSTGRES, _WAL, ("pg_receivewal",), disk_bytes=_SLOT
    ),
    CompanionName.BINLOG_CONSUMER: CompanionKind(BinlogConsumer, frozenset({Engine.MYSQL, Engine.MARIADB})),
}
"""Every companion by the name that `--companion` takes."""


def require_companions(names: Sequence[str], engine: Engine) -> None:
    """Raise CompanionError unless all of `names` exist, run beside `engine`, and are installed."""
    for name in names:
        kind = kind_of(name)
        if engine not in kind.engines:
            raise CompanionError(
                f"{name} does not run beside {engine}",
                where="--companion",
                hint="it runs beside: " + ", ".join(sorted(kind.engines)),
            )
        if names.count(name) > 1:
            raise CompanionError(f"{name} is named twice", where="--companion")
        for program in kind.system_programs:
            tool(program)


def kind_of(name: str) -> CompanionKind:
    """Return the companion called `name`. Raises CompanionError, which lists all, if there is none."""
    if name not in set(CompanionName):
        raise CompanionError(
            f"there is no companion '{name[:40]}'",
            where="--companion",
            hint="the companions are: " + ", ".join(CompanionName),
        )
    return COMPANIONS[CompanionName(name)]


def prepares(names: Sequence[str]) -> bool:
    """Return whether clients can prepare statements in spite of these companions."""
    return all(kind_of(name).prepares for name in names)


def settings_for(names: Sequence[str]) -> dict[str, str]:
    """Return the server settings that companions need together."""
    together: dict[str, str] = {}
    for name in names:
        together |= kind_of(name).settings
    return together


class Companions:
    """All companions of one server; what suites.server.Beside asks of them."""

    def __init__(self, server: Server, names: Sequence[str], cores: Placement, usable: Sequence[int]) -> None:
        """Create them; nothing is started yet. `cores` are those of the server and its clients."""
        self._version = server.build.version
        self._running = [kind_of(name).make(name, server.build, server.own_address) for name in names]
        self._cores = {name: _cores_of(name, cores, usable) for name in names}
        self._server = server
        self.lag_bytes = 0.0
        """How far they were behind the server's log when the counters were read last."""

    def start(self) -> None:
        """Start all of them. Raises CompanionError, and none runs."""
        try:
            for companion in self._running:
                companion.start(self._cores[companion.name])
        except BaseException:
            self.stop()
            raise

    @property
    def address(self) -> Address | None:
        """The address of the pooler among them; None without one."""
        return next((own.address for own in self._running if own.address is not None), None)

    def death(self) -> str | None:
        """Return None while all run, else how the first one that ended did."""
        for companion in self._running:
            if (gone := companion.death()) is not None:
                return f"its companion {companion.name} ended: {gone}"
        return None

    def counters(self) -> Mapping[str, float]:
        """Return their CPU time, and note how far they are behind.

        Raises CompanionError if one of them no longer does its work.
        """
        self.lag_bytes = sum(companion.lag_bytes() for companion in self._running)
        for companion in self._running:
            reason = companion.death() or companion.trouble()
            if reason is not None and self._server.own_death() is None:
                raise CompanionError(f"{self._version}: its companion {companion.name} failed: {reason}")
        return {"companion_cpu_us_per_op": sum(own.cpu_seconds() for own in self._running) * 1e6}

    def stop(self) -> Mapping[str, float]:
        """End those that run, whatever happens; return how many bytes of the log they were behind."""
        with ExitStack() as stack:
            while self._running:
                stack.callback(self._running.pop(0).stop)
        return {"companion_lag_bytes": self.lag_bytes}


@contextmanager
def accompanied(
    server: Server, names: Sequence[str], cores: Placement, usable: Sequence[int]
) -> Iterator[Companions]:
    """Run companions beside a running server until its reset, its end or that of the block.

    Without `names` it records the same metrics as a server with some. Raises CompanionError.
    """
    companions = Companions(server, names, cores, usable)
    companions.start()
    server.beside = companions
    try:
        yield companions
    finally:
        server.beside = None
        companions.stop()


def _cores_of(name: str, cores: Placement, usable: Sequence[int]) -> tuple[int, ...] | None:
    """Return the cores of a companion: the clients', or those that neither they nor the server have.

    None if there are no others.
    """
    if kind_of(name).among_clients:
        return cores.client
    taken = {*(cores.server or usable), *(cores.client or usable)}
    return tuple(core for core in usable if core not in taken) or None
