"""Power and throughput tests of tpch on real servers of every engine."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from build.build import Build
from suites.accounting.costs import Meter
from suites.definition import load_suite
from suites.engines import make_server
from suites.generators.load import LoadError, Share
from suites.generators.queries.conductor import QueryConductor
from suites.generators.queries.sessions import SESSIONS
from suites.keys.durability import Durability
from suites.server import Server
from suites.sizing import Hardware, sizes
from suites.slices import Schedule
from tests.new_servers.data_directories import create

pytestmark = pytest.mark.server

SUITE = load_suite("tpch")
ROOM = sizes(SUITE, SUITE.profile("smoke"), Hardware(1, 8 * 1024**3))
STEPS = {step.name: step for step in SUITE.steps}
ONCE = Schedule(0.001, (0, 0), warming=1)


@pytest.fixture(params=["postgres_18", "mysql_9", "mariadb_11"])
def server(server_folder: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """With the tables of scale factor 0.01."""
    build: Build = request.getfixturevalue(request.param)
    settings = dict(SUITE.server[build.version.engine])
    started = make_server(build, ROOM, Durability.RELAXED, server_folder / "s", settings)
    try:
        create(started, ROOM)
        started.start()
        QueryConductor(SUITE, ROOM).load(started.address)
        yield started
    finally:
        started.destroy()


def test_streams_run_every_query_and_leave_as_many_orders(server: Server) -> None:
    generator = QueryConductor(SUITE, ROOM)
    share = Share(ONCE, 1, limit_seconds=60)
    queries = Counter(name for name, step in STEPS.items() if step.reads_only)
    (load,) = generator.alternate([server.address], STEPS["throughput"], share, [Meter(server.pid)])
    done = {name: kind.transactions for name, kind in load.kinds.items()}
    assert done == {**dict.fromkeys(queries, 3), "rf1": 3, "rf2": 3}
    assert load.seconds < sum(3 * load.kinds[name].latency_ms["mean"] / 1000 for name in done)
    with closing(SESSIONS[server.address.engine](server.address)) as session:
        ((orders, new),) = session.execute(
            "SELECT COUNT(*), SUM(CASE WHEN o_orderkey % 32 BETWEEN 8 AND 15 THEN 1 ELSE 0 END) FROM orders"
        )
    assert (orders, new) == ("15000", "45")
    short = Share(ONCE, 1, limit_seconds=0.001)
    with pytest.raises(LoadError, match=r"took longer than its limit of 0.001 s in power"):
        generator.alternate([server.address], STEPS["power"], short, [Meter(server.pid)])
