"""Servers with layers: who is let in, over what, and in which protocol."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from build.finished_build import Build
from build.home import locate
from build.provide import find
from build.recipes.postgres import TLS_OPTIONS
from build.recipes.recipe import PLAIN
from build.request import BuildRequest
from build.version import parse_version
from suites.accounting.costs import Meter
from suites.capabilities import SettingError
from suites.definition import load_suite
from suites.engines import require_settings
from suites.generators.load import LoadError, WorkLimit
from suites.generators.pgbench.client import Pgbench
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.layers.choice import layers_of
from suites.postgres.connecting import client_database, client_place
from suites.postgres.server import PostgresServer
from suites.turns.connects import CONNECTS, connect_values
from tests.suites import innodb_servers
from tests.suites.servers import ask, small, value

pytestmark = pytest.mark.server

ROOM = small(threads=2)


@contextlib.contextmanager
def layered(build: Build, folder: Path, layers: Mapping[str, str]) -> Iterator[PostgresServer]:
    chosen = {"fsync": "off", "log_connections": "on"}
    server = PostgresServer(build, ROOM, Durability.RELAXED, folder / "pg", chosen, layers_of(layers))
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.destroy()


def worked(server: PostgresServer, client: Build) -> None:
    """Load tables with both generators and work on them."""
    reading, banking = load_suite("write-heavy"), load_suite("pgbench")
    sysbench = Sysbench(reading, ROOM)
    sysbench.load(server.address)
    work = WorkLimit(10, 50)
    assert sysbench.run(server.address, reading.steps[0], work, Meter(server.pid)).transactions == 50
    pgbench = Pgbench(banking, ROOM, client)
    pgbench.load(server.address)
    assert pgbench.run(server.address, banking.steps[0], work, Meter(server.pid)).transactions == 50


def logged(server: PostgresServer, text: str) -> list[str]:
    return [line for line in server.log.read_text().splitlines() if text in line]


def test_a_password_is_asked_for_over_tcp_and_the_socket(postgres_17: Build, server_folder: Path) -> None:
    with layered(postgres_17, server_folder, {"transport": "tcp"}) as server:
        worked(server, postgres_17)
        stored = value(server, "SELECT rolpassword FROM pg_authid WHERE rolname = 'tidemark'")
        assert stored.startswith("SCRAM-SHA-256$")
        host, port = client_place(server.address)
        assert value(server, "SHOW listen_addresses") == host
        assert server.settings()["listen_addresses"] == "ADDRESS"
        came = len(logged(server, "host=127.0.0.1"))
        assert came, "clients came over TCP"
        connect_values([server])
        assert len(logged(server, "host=127.0.0.1")) == came + CONNECTS
        for place in (host, str(server.address.socket.parent)):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(host=place, port=port, user="tidemark", dbname="tidemark", password="wrong")
        server.keep()
        server.restore()
        server.start()
        assert value(server, "SELECT count(*) FROM pgbench_branches") == 1


def test_statements_are_sent_in_the_protocol_of_the_layer(postgres_17: Build, server_folder: Path) -> None:
    with layered(postgres_17, server_folder, {"protocol": "simple"}) as server:
        worked(server, postgres_17)
        ask(server, "ALTER SYSTEM SET log_statement = 'all'")
        ask(server, "SELECT pg_reload_conf()")
        worked_again = load_suite("pgbench")
        pgbench = Pgbench(worked_again, ROOM, postgres_17)
        pgbench.run(server.address, worked_again.steps[0], WorkLimit(10, 10), Meter(server.pid))
        assert logged(server, "statement: BEGIN;")
        assert not logged(server, "execute P0_")


def test_clients_of_mysql_use_tls_over_tcp(mysql_9: Build, server_folder: Path) -> None:
    server = innodb_servers.made(mysql_9, server_folder, layers=layers_of({"tls": "on"}))
    try:
        server.create()
        server.start()
        suite = innodb_servers.SUITE
        sysbench = Sysbench(suite, innodb_servers.ROOM)
        sysbench.load(server.address)
        step, meter = suite.steps[0], Meter(server.pid)
        assert sysbench.run(server.address, step, WorkLimit(10, 50), meter).transactions == 50
        handshakes = "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = "
        assert int(str(innodb_servers.value(server, f"{handshakes}'Ssl_finished_accepts'"))) >= 2
        plain = replace(server.address, tls=None)
        with pytest.raises(LoadError, match="insecure transport"):
            sysbench.run(plain, step, WorkLimit(10, 50), meter)
    finally:
        server.destroy()


def test_clients_of_postgres_use_tls_over_tcp(server_folder: Path) -> None:
    release = parse_version("postgres@17.11")
    build = find(BuildRequest(release, choices=PLAIN.with_options(TLS_OPTIONS)), locate())
    if build is None:
        pytest.skip(
            f"not in the build cache: ./tidemark build --with build.configure={TLS_OPTIONS[0]} {release}"
        )
    with layered(build, server_folder, {"tls": "on"}) as server:
        host, port = client_place(server.address)
        assert "sslmode=require" in client_database(server.address)
        login = f"user=tidemark dbname=tidemark password={server.address.password} sslmode=require"
        with psycopg.connect(login, host=host, port=port) as own:
            row = own.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()
            assert row == (True,)
        worked(server, build)
        assert len(logged(server, "SSL enabled")) >= 3, "both generators and this test"
        key = server.folder / "server.key"
        assert key.stat().st_mode & 0o777 == 0o600
        beside = PostgresServer(
            build, ROOM, Durability.RELAXED, server_folder / "pg2", {}, layers_of({"tls": "on"})
        )
        try:
            beside.create()
            assert (beside.folder / "server.crt").read_text() == (server.folder / "server.crt").read_text()
            assert beside.address.host != server.address.host
        finally:
            beside.destroy()


def test_a_server_without_openssl_is_refused_tls(postgres_17: Build) -> None:
    layers = layers_of({"tls": "on"})
    with pytest.raises(SettingError, match="SSL is not supported by this build") as refused:
        require_settings(postgres_17, ROOM, Durability.RELAXED, {}, layers)
    assert "compiled with OpenSSL" in refused.value.hint
    require_settings(postgres_17, ROOM, Durability.RELAXED, {}, layers_of({"transport": "tcp"}))
