"""What differs by engine when a server's instructions are counted."""

from collections.abc import Mapping
from dataclasses import dataclass

from build.engines import EngineRegistry
from build.version import Engine


@dataclass(frozen=True)
class CountedEngine:
    """How the instructions of one engine's servers are counted."""

    mark: str
    """The SQL statement that is a mark."""

    mark_function: str
    """The function that only this statement calls, once; without its parameters."""

    flush: str
    """A statement that writes all commits so far to the log, so that they outlive a crash of the server."""

    log_files: str
    """A regular expression of the paths of files that have to be durable before a commit is acknowledged."""

    durability: frozenset[str]
    """The settings that decide how durable commits are."""

    durable: tuple[str, ...]
    """Statements after which new connections commit durably."""

    role: str
    """The role of the thread or process that works for the client, as CPU profiles call it."""

    waits: tuple[str, ...]
    """Functions that are not counted, with all that they call, because what they do depends on the clock."""

    rest: Mapping[str, str]
    """Server settings with which background work, which depends on the clock, rests."""

    settings: Mapping[str, str]
    """Further server settings of a counted pass."""

    agreement: float
    """How much two passes of a step may differ, as a fraction; beyond that, one of them is not trusted."""

    allowance: float
    """How much two builds of the same source may differ, as a fraction, each with its own loaded data."""

    programs: tuple[str, ...] = ()
    """Programs of a build that are needed to read its log."""

    options: tuple[str, ...] = ()
    """Further options of callgrind."""

    beside_rounds: bool = True
    """Whether rounds have passes without being asked for; those of a server that starts slowly have none."""


_INNODB_LOGS = r"/(?:ib_logfile|#ib_redo|binlog\.)[0-9]+$"

_INNODB_DURABILITY = ("innodb_flush_log_at_trx_commit", "sync_binlog")

_INNODB_DURABLE = tuple(f"SET GLOBAL {name} = 1" for name in _INNODB_DURABILITY)

COUNTED = EngineRegistry(
    "rule for counting instructions",
    __name__,
    {
        Engine.POSTGRES: CountedEngine(
            mark="SELECT pg_backend_pid()",
            mark_function="pg_backend_pid",
            flush="SELECT pg_switch_wal()",
            log_files=r"/pg_wal/",
            programs=("pg_waldump",),
            durability=frozenset({"fsync", "synchronous_commit"}),
            durable=("ALTER DATABASE tidemark SET synchronous_commit = on",),
            role="client backend",
            # Reading from the client: whether its next message is there already decides if the backend waits.
            # Statistics are sent at most once a second. The WAL writer prepares pages of WAL in advance when
            # it wakes up, which a backend then need not do.
            waits=("secure_read", "pgstat_report_stat", "AdvanceXLInsertBuffer"),
            rest={"autovacuum": "off", "bgwriter_lru_maxpages": "0", "checkpoint_timeout": "86400"},
            settings={
                # A commit writes its own log. If the WAL writer does it some time later, it depends on the
                # clock which hint bits can be set, and so how often commits are looked up.
                "synchronous_commit": "on",
                "fsync": "off",
                "wal_writer_delay": "10000",
                "jit": "off",
            },
            agreement=0.003,
            allowance=0.003,
        ),
        Engine.MYSQL: CountedEngine(
            mark="SELECT CONNECTION_ID()",
            mark_function="Item_func_connection_id::fix_fields",
            flush="FLUSH ENGINE LOGS",
            log_files=_INNODB_LOGS,
            durability=frozenset(_INNODB_DURABILITY),
            durable=_INNODB_DURABLE,
            role="client connection",
            waits=("vio_read(Vio*, unsigned char*, unsigned long)",),
            rest={"innodb_stats_auto_recalc": "OFF"},
            settings={},
            agreement=0.005,
            allowance=0.004,
            options=("--separate-threads=yes",),
            beside_rounds=False,
        ),
        Engine.MARIADB: CountedEngine(
            mark="SELECT CONNECTION_ID()",
            mark_function="Item_func_connection_id::fix_fields",
            flush="FLUSH ENGINE LOGS",
            log_files=_INNODB_LOGS,
            durability=frozenset(_INNODB_DURABILITY),
            durable=_INNODB_DURABLE,
            role="client connection",
            waits=("vio_read(st_vio*, unsigned char*, unsigned long)",),
            rest={"innodb_stats_auto_recalc": "OFF"},
            settings={},
            agreement=0.005,
            allowance=0.007,
            options=("--separate-threads=yes",),
            beside_rounds=False,
        ),
    },
)
