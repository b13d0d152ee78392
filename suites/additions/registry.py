"""The registry of companions: beside which engines they run, and what they need of a server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from build.finished_build import Build
from build.version import Engine
from suites.additions.binlog import BinlogConsumer
from suites.additions.companion import Companion, CompanionError
from suites.additions.consumers import KEPT_WAL, LogicalConsumer, PhysicalConsumer
from suites.additions.pooler import PROGRAM, Pooler
from suites.additions.variant import CompanionName
from suites.processes import tool
from suites.server import Address


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
"""Every companion by its name."""


def require_companions(names: Sequence[CompanionName], engine: Engine) -> None:
    """Raise CompanionError unless all of `names` run beside `engine` once, and are installed."""
    for name in names:
        kind = COMPANIONS[name]
        if engine not in kind.engines:
            raise CompanionError(
                f"{name} does not run beside {engine}",
                where=f"companion {name}",
                hint="it runs beside: " + ", ".join(sorted(kind.engines)),
            )
        if names.count(name) > 1:
            raise CompanionError(f"{name} is named twice", where=f"companion {name}")
        for program in kind.system_programs:
            tool(program)


def prepares(names: Sequence[CompanionName]) -> bool:
    """Return whether clients can prepare statements in spite of these companions."""
    return all(COMPANIONS[name].prepares for name in names)


def settings_for(names: Sequence[CompanionName]) -> dict[str, str]:
    """Return the server settings that companions need together."""
    together: dict[str, str] = {}
    for name in names:
        together |= COMPANIONS[name].settings
    return together
