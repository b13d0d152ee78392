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

    role: str
    """The role of the thread or process that works for the client, as CPU profiles call it."""

    waits: tuple[str, ...]
    """Functions that are not counted, with all that they call, because what they do depends on the clock."""

    settings: Mapping[str, str]
    """Server settings of a counted pass: background work, which depends on the clock, rests."""

    agreement: float
    """How much two passes of a step may differ, as a fraction; beyond that, one of them is not trusted."""

    allowance: float
    """How much two builds of the same source may differ, as a fraction, each with its own loaded data."""

    options: tuple[str, ...] = ()
    """Further options of callgrind."""

    beside_rounds: bool = True
    """Whether rounds have passes without being asked for; those of a server that starts slowly have none."""


COUNTED = EngineRegistry(
    "rule for counting instructions",
    __name__,
    {
        Engine.POSTGRES: CountedEngine(
            mark="SELECT pg_backend_pid()",
            mark_function="pg_backend_pid",
            flush="SELECT pg_switch_wal()",
            role="client backend",
            # Reading from the client: whether its next message is there already decides if the backend waits.
            # Statistics are sent at most once a second. The WAL writer prepares pages of WAL in advance when
            # it wakes up, which a backend then need not do.
            waits=("secure_read", "pgstat_report_stat", "AdvanceXLInsertBuffer"),
            settings={
                "autovacuum": "off",
                "bgwriter_lru_maxpages": "0",
                "checkpoint_timeout": "86400",
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
            role="client connection",
            waits=("vio_read(Vio*, unsigned char*, unsigned long)",),
            settings={"innodb_stats_auto_recalc": "OFF"},
            agreement=0.005,
            allowance=0.004,
            options=("--separate-threads=yes",),
            beside_rounds=False,
        ),
        Engine.MARIADB: CountedEngine(
            mark="SELECT CONNECTION_ID()",
            mark_function="Item_func_connection_id::fix_fields",
            flush="FLUSH ENGINE LOGS",
            role="client connection",
            waits=("vio_read(st_vio*, unsigned char*, unsigned long)",),
            settings={"innodb_stats_auto_recalc": "OFF"},
            agreement=0.005,
            allowance=0.007,
            options=("--separate-threads=yes",),
            beside_rounds=False,
        ),
    },
)
