"""Whether a declared memory holds what it says, and how soon a server with larger tables is ready.

A server of 1 GB has pages of 2 GB, whose rows one client reads by their keys, each as likely as any other.
What it reads from the disk then follows from the pages that are neither in its buffers nor in the page cache
of its group. `$TIDEMARK_BENCH_PARTS` selects parts: memory, ready, and only when named equal, which records
hours of blocks once, planted, and throttled.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from benchmarks.io.cached_pages import PAGE, uncached_share
from benchmarks.io.planted import planted_figures
from benchmarks.io.recorded_blocks import equal_figures
from benchmarks.io.throttled import throttled_figures
from benchmarks.output.figures import Figure, report
from benchmarks.output.parts import chosen_parts
from build.home import Home, locate
from build.make import provide
from build.version import parse_version
from runners.console import Lines
from runners.fitness.kernel import Kernel
from runners.fitness.memory import reclaiming
from runners.measuring.cleanup import data_folder
from runners.measuring.machine_lock import measuring_alone
from suites.accounting.usage import TreeReadings
from suites.definition import load_suite
from suites.keys.durability import Durability
from suites.postgres.client_options import client_database, client_options
from suites.postgres.connecting import connect
from suites.postgres.server import PostgresServer
from suites.processes import as_server_user, run
from suites.sizing import Sizes, sizes, this_machine

VERSION = parse_version("postgres@17.11")
GIGABYTE = 1024**3
MEMORY, ENOUGH = GIGABYTE, 4 * GIGABYTE
"""The declared memory that is half of the table, and one that holds all of it."""

PAGES = 280_000
"""The pages of the table that are read, which are 2 GB."""

SPREAD = 2
"""Where they do not all fit, every other page of the table is read: the kernel reads ahead wherever the pages
before the one that it has to read are cached (page_cache_sync_ra, mm/readahead.c)."""

ROWS_PER_PAGE = 6
"""Of about 1.2 KB each."""

WARM_SECONDS, SECONDS = 90, 60

MAX_SCANS = 5
"""The most scans of table and index until all of them are cached."""

MAX_ERROR = 0.1
"""How far what is read may be from what the cached pages imply."""

MAX_READ_WARM = 0.001
"""The most pages that a lookup may read from the disk where all of the table fits.

They are more where the kernel drops what was not used for a while, which is told beside the figure."""

MAX_READY = 1.2
"""The most that a server may need until it is ready, over the seconds of a copy of its files."""

TABLE = "rows"


@dataclass(frozen=True)
class Lookups:
    """What one client read by keys in some seconds."""

    transactions: int
    read_pages: float
    """From the disk, for a lookup."""
    implied_pages: float
    """That were neither in the buffers nor in the page cache, for a lookup."""


def main() -> int:
    """Print the figures with their targets; return 0 if all are met, else 1."""
    words = chosen_parts("io", tuple(PARTS), tuple(ON_REQUEST))
    home = locate()
    home.path.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    with measuring_alone(home):
        for word in words:
            figures += {**PARTS, **ON_REQUEST}[word](home)
    return report(figures)


def _memory_figures(home: Home) -> Iterator[Figure]:
    reclaimed = "".join(f"; proactive reclaim: {what}" for what in reclaiming(Kernel()).values())
    with _loaded_server(home, MEMORY, SPREAD) as server:
        found = _lookups(server, SPREAD)
        ratio = found.read_pages / found.implied_pages
        note = f"{found.read_pages:.3f} pages a lookup, {found.implied_pages:.3f} implied, "
        note += f"{found.transactions} lookups{reclaimed}"
        name = "memory of half the table: read over implied"
        yield Figure(name, ratio, "", at_least=1 - MAX_ERROR, at_most=1 + MAX_ERROR, note=note)
    with _loaded_server(home, ENOUGH) as server:
        scans = _scan_until_cached(server)
        found = _lookups(server)
        note = f"{found.implied_pages:.4f} implied, {found.transactions} lookups after {scans} scans"
        name = "memory of twice the table: pages read a lookup"
        yield Figure(name, found.read_pages, "pages", at_most=MAX_READ_WARM, note=note + reclaimed)


def _ready_figures(home: Home) -> Iterator[Figure]:
    with _loaded_server(home, MEMORY) as server:
        server.stop()
        server.keep()
        ratios = []
        for turn in range(3):
            seconds: dict[str, float] = {}
            copies: dict[str, Callable[[], None]] = {
                "copy": lambda: _copied(server),
                "ready": lambda: _made_ready(server),
            }
            for name in sorted(copies, reverse=bool(turn % 2)):
                began = time.monotonic()
                copies[name]()
                seconds[name] = time.monotonic() - began
                server.abandon()
            ratios.append(seconds["ready"] / seconds["copy"])
        note = (
            f"{len(ratios)} pairs: {', '.join(f'{ratio:.2f}' for ratio in ratios)}; profile io copies nothing"
        )
        yield Figure("ready for a round over a copy", sorted(ratios)[1], "", at_most=MAX_READY, note=note)


PARTS: dict[str, Callable[[Home], Iterator[Figure]]] = {"memory": _memory_figures, "ready": _ready_figures}
ON_REQUEST: dict[str, Callable[[Home], Iterator[Figure]]] = {
    "equal": equal_figures,
    "planted": planted_figures,
    "throttled": throttled_figures,
}
"""The parts that only run when named: they take hours, or need a core of their own for another load."""


@contextmanager
def _loaded_server(home: Home, memory: int, spread: int = 1) -> Iterator[PostgresServer]:
    """Yield a server with a declared memory, and the table with one of `spread` pages to be read.

    Nothing has been read of it.
    """
    rows = spread * ROWS_PER_PAGE * PAGES
    build = provide(VERSION, home, Lines())
    with data_folder(home, f"b{os.getpid()}") as folder:
        server = PostgresServer(build, _room(memory), Durability.RELAXED, folder / "1", {"fsync": "off"})
        try:
            server.create()
            server.start()
            with connect(server.address) as connection:
                connection.execute(
                    f"CREATE TABLE {TABLE} WITH (autovacuum_enabled = off) AS SELECT id, "
                    f"repeat(md5(id::text), 36) AS filler FROM generate_series(1, {rows}) AS id"
                )
                connection.execute(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (id)")
            with server.connect() as connection:
                connection.autocommit = True
                connection.execute(f"VACUUM ANALYZE {TABLE}")
                _require_layout(connection, spread)
                connection.execute("CHECKPOINT")
            server.stop()
            server.end_loading()
            server.start()
            yield server
        finally:
            server.destroy()


def _require_layout(connection: psycopg.Connection, spread: int) -> None:
    """Fail unless the rows lie in the pages in which lookups expect them."""
    row = connection.execute(f"SELECT ctid::text FROM {TABLE} ORDER BY id DESC LIMIT 1").fetchone()
    assert row == (f"({spread * PAGES - 1},{ROWS_PER_PAGE})",), row


def _room(memory: int) -> Sizes:
    suite = load_suite("write-heavy")
    profile = suite.profile("io").model_copy(update={"memory": MEMORY})
    return replace(sizes(suite, profile, this_machine()), memory_bytes=memory)


def _scan_until_cached(server: PostgresServer) -> int:
    """Read table and index until a scan hardly reads from the disk; return the scans that it took.

    A page that was read once is the first to go when the group needs memory for something else.
    """
    readings = TreeReadings(server.pid)
    with server.connect() as connection:
        connection.execute("SET enable_seqscan = off")  # of two plans for the second query; the first has one
        for scan in range(1, MAX_SCANS + 1):
            began = readings.read()[0].read_bytes
            connection.execute(f"SELECT sum(length(filler)) FROM {TABLE}")
            connection.execute(f"SELECT count(id) FROM {TABLE} WHERE id > 0")
            if readings.read()[0].read_bytes - began < MAX_READ_WARM * PAGES * PAGE:
                return scan
    return MAX_SCANS


def _lookups(server: PostgresServer, spread: int = 1) -> Lookups:
    _run_lookups(server, WARM_SECONDS, spread)
    before = uncached_share(server, TABLE, spread)
    readings = TreeReadings(server.pid)
    began = readings.read()[0].read_bytes
    transactions = _run_lookups(server, SECONDS, spread)
    read = readings.read()[0].read_bytes - began
    after = uncached_share(server, TABLE, spread)
    return Lookups(transactions, read / PAGE / transactions, (before + after) / 2)


def _run_lookups(server: PostgresServer, seconds: int, spread: int) -> int:
    """Look up rows of one of `spread` pages by random keys for some seconds, and return how many."""
    script = server.address.socket.parent / "lookup.sql"
    key = f"{spread * ROWS_PER_PAGE} * random(0, {PAGES - 1}) + random(1, {ROWS_PER_PAGE})"
    script.write_text(f"\\set id {key}\nSELECT filler FROM {TABLE} WHERE id = :id;\n")
    script.chmod(0o644)
    command: list[str | Path] = [server.build.program("pgbench"), *client_options(server.address)]
    command += [client_database(server.address), "--no-vacuum", f"--time={seconds}", "--protocol=prepared"]
    said = run(as_server_user([*command, f"--file={script}"]), what="pgbench", seconds=seconds + 60.0)
    (line,) = [line for line in said.splitlines() if "transactions actually processed" in line]
    return int(line.rpartition(": ")[2])


def _copied(server: PostgresServer) -> None:
    target = server.loaded.with_name("copied")
    command: list[str | Path] = ["cp", "--archive", "--reflink=auto", server.loaded, target]
    run(as_server_user(command), what="copying the data", seconds=600.0)
    run(as_server_user(["rm", "-r", target]), what="deleting the copy", seconds=600.0)


def _made_ready(server: PostgresServer) -> None:
    server.restore()
    server.start()
