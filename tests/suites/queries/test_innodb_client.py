"""The client of MySQL and MariaDB: values as the server sends them, and errors. Real servers."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest

from build.build import Build
from suites.engines import make_server
from suites.generators.queries.innodb_client import InnodbClient, library_version
from suites.keys.durability import Durability
from suites.server import Server
from tests.new_servers.data_directories import create
from tests.suites.servers import small

pytestmark = pytest.mark.server


@pytest.fixture(params=["mysql_9", "mariadb_11"])
def server(server_folder: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    build: Build = request.getfixturevalue(request.param)
    started = make_server(build, small(), Durability.RELAXED, server_folder / "s", {})
    try:
        create(started, small())
        started.start()
        yield started
    finally:
        started.destroy()


def test_what_a_client_reads_and_refuses(server: Server) -> None:
    assert library_version()
    with closing(InnodbClient(server.address)) as client:
        assert client.execute("SELECT 1, NULL, '', 'ü', 1.50, DATE '1998-09-02'") == [
            ["1", None, "", "ü", "1.50", "1998-09-02"]
        ]
        assert client.execute("SELECT 1 FROM DUAL WHERE 1 = 0") == []
        assert client.execute("CREATE TABLE t (a INTEGER)") == []
        client.discard("INSERT INTO t VALUES (1), (2)")
        client.discard("SELECT * FROM t")
        for act in (client.execute, client.discard):
            with pytest.raises(pymysql.err.OperationalError, match="nothing"):
                act("SELECT nothing FROM t")
        assert client.execute("SELECT COUNT(*) FROM t") == [["2"]], "it goes on after an error"
        assert client.execute("SELECT CONNECTION_ID()") == [[str(client.number)]]


def test_a_connection_that_is_refused_says_why(server: Server) -> None:
    wrong = replace(server.address, password="wrong")
    with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
        InnodbClient(wrong)
    nowhere = replace(server.address, socket=server.address.socket.parent / "nowhere.sock")
    with pytest.raises(pymysql.err.OperationalError, match=r"nowhere\.sock"):
        InnodbClient(nowhere)
