"""Companions beside real servers: they serve, are counted apart, leave nothing; and those that fail."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from build.finished_build import Build
from build.version import Engine
from suites.additions import consumers
from suites.additions.companion import CompanionError
from suites.additions.companions import Companions
from suites.additions.companions import accompanied as with_companions
from suites.additions.registry import require_companions, settings_for
from suites.additions.variant import CompanionName
from suites.engines import make_server
from suites.generators.placement import Placement
from suites.keys.durability import Durability
from suites.postgres.server import PostgresServer
from suites.server import Address, postgres_port
from tests.suites import innodb_servers
from tests.suites.servers import ask, running, small, value, wait_for

ANYWHERE = Placement(None, None)
CONSUMERS = (CompanionName.LOGICAL_CONSUMER, CompanionName.PHYSICAL_CONSUMER)
BINLOG_CONSUMER = [CompanionName.BINLOG_CONSUMER]
MIB = 1024**2


@contextmanager
def accompanied(
    build: Build, folder: Path, *names: CompanionName, settings: Mapping[str, str] | None = None
) -> Iterator[tuple[PostgresServer, Companions]]:
    """A Postgres server with companions, and these."""
    chosen = {**settings_for(names), **(settings or {})}
    with (
        running(build, folder, small(), chosen) as server,
        with_companions(server, names, ANYWHERE, (0, 1)) as companions,
    ):
        yield server, companions


def processes(name: str, folder: Path) -> list[psutil.Process]:
    """The companions that are called `name`; not what starts them."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() == name and Path(process.cwd()).is_relative_to(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


def write(server: PostgresServer, rows: int) -> None:
    """Write 100 bytes and more of WAL for each row."""
    ask(server, "CREATE TABLE IF NOT EXISTS written (id bigint, x text)")
    ask(server, f"INSERT INTO written SELECT g, repeat('x', 100) FROM generate_series(1, {rows}) g")


def through(address: Address, question: str) -> object:
    with psycopg.connect(
        host=str(address.socket.parent),
        port=postgres_port(address.socket),
        user=address.user,
        dbname=address.database,
        prepare_threshold=None,
    ) as connection:
        row = connection.execute(question.encode()).fetchone()
        return row[0] if row else None


@pytest.mark.server
def test_a_pooler_and_consumers_of_postgres(server_folder: Path, postgres_18: Build) -> None:
    with accompanied(postgres_18, server_folder, CompanionName.PGBOUNCER, *CONSUMERS) as (server, companions):
        assert value(server, "SELECT count(*) FROM pg_replication_slots WHERE active") == 2
        assert through(server.address, "SELECT 1") == 1
        assert server.address.socket != server.own_address.socket
        began = server.counters()
        write(server, 20_000)
        wait_for(lambda: server.counters() and companions.lag_bytes == 0)
        # The clock of CPU time ticks in hundredths of a second.
        assert server.counters()["companion_cpu_us_per_op"] >= began["companion_cpu_us_per_op"]
        assert server.death() is None
        metrics = server.reset()
        assert metrics["companion_lag_bytes"] == 0
        assert metrics["reset_seconds"] > 0
        assert value(server, "SELECT count(*) FROM pg_replication_slots") == 0
        assert value(server, "SELECT count(*) FROM pg_publication") == 0
        assert server.address == server.own_address
    assert not server.address.socket.with_name(".s.PGSQL.6432").exists()


@pytest.mark.server
def test_a_consumer_that_dies(server_folder: Path, postgres_18: Build) -> None:
    with accompanied(postgres_18, server_folder, CompanionName.LOGICAL_CONSUMER) as (server, _):
        (victim,) = processes("pg_recvlogical", server_folder)
        victim.kill()
        wait_for(server.death)
        with pytest.raises(CompanionError, match=r"companion logical-consumer failed: killed by SIGKILL"):
            server.counters()
        assert server.own_death() is None
    assert not processes("pg_recvlogical", server_folder)


SMALL_WAL = {"max_slot_wal_keep_size": "4MB", "max_wal_size": "32MB", "min_wal_size": "32MB"}


def wal_bytes(server: PostgresServer) -> int:
    return int(value(server, "SELECT sum(size) FROM pg_ls_waldir()"))


@pytest.mark.server
def test_a_slot_whose_reader_is_gone_is_given_up(server_folder: Path, postgres_18: Build) -> None:
    with accompanied(postgres_18, server_folder, CompanionName.PHYSICAL_CONSUMER, settings=SMALL_WAL) as (
        server,
        _,
    ):
        (victim,) = processes("pg_receivewal", server_folder)
        victim.kill()
        write(server, 200_000)
        ask(server, "CHECKPOINT")
        assert value(server, "SELECT wal_status FROM pg_replication_slots") == "lost"
        assert wal_bytes(server) < 64 * MIB
        with pytest.raises(CompanionError, match="physical-consumer failed: killed by SIGKILL"):
            server.counters()
    assert not processes("pg_receivewal", server_folder)


@pytest.mark.server
def test_a_reader_that_hangs_is_killed(
    server_folder: Path, postgres_18: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while its slot may keep all WAL: with less, the server may give up the slot before."""
    settings = {"max_slot_wal_keep_size": "1GB", "max_wal_size": "32MB", "min_wal_size": "32MB"}
    monkeypatch.setattr(consumers, "SPARE_WAL", (48 - 1024 - 32) * MIB)
    with accompanied(postgres_18, server_folder, CompanionName.LOGICAL_CONSUMER, settings=settings) as (
        server,
        _,
    ):
        (stopped,) = processes("pg_recvlogical", server_folder)
        os.kill(stopped.pid, signal.SIGSTOP)
        for _ in range(3):
            write(server, 200_000)
        wait_for(server.death)
        with pytest.raises(CompanionError, match="it did not read for too long, and the WAL grew to"):
            server.counters()


@pytest.mark.server
def test_a_server_without_senders_refuses_a_consumer(server_folder: Path, postgres_18: Build) -> None:
    refused = pytest.raises(CompanionError, match=r"physical-consumer is not ready: .*\n.*max_wal_senders")
    with (
        refused,
        accompanied(
            postgres_18, server_folder, CompanionName.PHYSICAL_CONSUMER, settings={"max_wal_senders": "0"}
        ),
    ):
        pass


def test_what_cannot_accompany_is_refused() -> None:
    for names, engine, said in (
        ([CompanionName.PGBOUNCER], Engine.MYSQL, "pgbouncer does not run beside mysql"),
        ([CompanionName.LOGICAL_CONSUMER] * 2, Engine.POSTGRES, "named twice"),
    ):
        with pytest.raises(CompanionError, match=said):
            require_companions(names, engine)


def read_binlog(build: Build, folder: Path) -> None:
    """A consumer of a server of the MySQL family gets everything that is written."""
    with (
        innodb_servers.running(build, folder) as server,
        with_companions(server, BINLOG_CONSUMER, ANYWHERE, (0, 1)) as companions,
    ):
        before = server.counters()["binlog_bytes_per_op"]
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE tidemark.written (id bigint PRIMARY KEY, x text)")
            for number in range(100):
                cursor.execute(f"INSERT INTO tidemark.written VALUES ({number}, repeat('x', 1000))")
            cursor.execute("FLUSH BINARY LOGS")
            cursor.execute("DELETE FROM tidemark.written")
        wait_for(lambda: server.counters() and companions.lag_bytes == 0)
        assert server.counters()["binlog_bytes_per_op"] - before > 200_000
        # MariaDB sends the event of 40 bytes that a log has become superfluous with the next one only.
        assert server.reset()["companion_lag_bytes"] in (0, 40)


@pytest.mark.server
def test_a_server_without_binary_log_refuses_a_consumer(server_folder: Path, mariadb_11: Build) -> None:
    settings = {"skip_log_bin": "ON"}
    server = make_server(mariadb_11, small(), Durability.RELAXED, server_folder / "off", settings)
    try:
        server.create()
        server.start()
        assert server.counters()["binlog_bytes_per_op"] == 0
        with pytest.raises(CompanionError, match="binlog-consumer is not ready"):
            with_companions(server, BINLOG_CONSUMER, ANYWHERE, (0, 1)).__enter__()
    finally:
        server.destroy()


@pytest.mark.server
def test_a_consumer_of_mysql(server_folder: Path, mysql_9: Build) -> None:
    read_binlog(mysql_9, server_folder)


@pytest.mark.server
def test_a_consumer_of_mariadb(server_folder: Path, mariadb_11: Build) -> None:
    read_binlog(mariadb_11, server_folder)
