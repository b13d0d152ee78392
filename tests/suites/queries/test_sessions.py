"""Sessions of long queries on real servers: values as the server sends them, and errors."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.engines import engine_of, make_server
from suites.generators.queries.client import ERRORS
from suites.keys.durability import Durability
from suites.server import Server
from tests.new_servers.data_directories import create
from tests.suites.servers import small

pytestmark = pytest.mark.server


@pytest.fixture(params=["postgres_18", "mysql_9", "mariadb_11"])
def server(server_folder: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    build: Build = request.getfixturevalue(request.param)
    started = make_server(build, small(), Durability.RELAXED, server_folder / "s", {})
    try:
        create(started, small())
        started.start()
        yield started
    finally:
        started.destroy()


def test_what_a_session_reads_and_refuses(server: Server) -> None:
    with closing(engine_of(server.address.engine).session(server.address)) as session:
        (row,) = session.execute("SELECT 1, NULL, '', 'ü', 1.50, DATE '1998-09-02', '100 %s'")
        assert [*row] == ["1", None, "", "ü", "1.50", "1998-09-02", "100 %s"]
        assert not session.execute("SELECT 1 WHERE 1 = 0")
        assert not session.execute("CREATE TABLE t (a INTEGER)")
        session.discard("INSERT INTO t VALUES (1), (2)")
        session.discard("SELECT * FROM t")
        for act in (session.execute, session.discard):
            with pytest.raises(ERRORS, match="nothing"):
                act("SELECT nothing FROM t")
        ((count,),) = session.execute("SELECT COUNT(*) FROM t")
        assert count == "2", "it goes on after an error"


def test_a_connection_that_is_refused_says_why(server: Server) -> None:
    connect = engine_of(server.address.engine).session
    with pytest.raises(ERRORS, match=r"Access denied|does not exist"):
        connect(replace(server.address, user="nobody_known"))
    nowhere = server.address.socket.parent / "nowhere" / server.address.socket.name
    with pytest.raises(ERRORS, match="No such file or directory"):
        connect(replace(server.address, socket=nowhere))
