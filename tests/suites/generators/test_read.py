"""The read steps and the sweep on real servers: each runs, and reads or changes what it says."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.checking.queries import explain
from suites.definition import Suite, load_suite
from suites.engines import make_server
from suites.generators.load import Load, WorkLimit
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.server import Server
from tests.new_servers.data_directories import create
from tests.suites.servers import small

pytestmark = pytest.mark.server

ROOM = small(rows=3000, tables=2)
READ, SWEEP = load_suite("read"), load_suite("oltp-sweep")
QUERIES = {
    **dict.fromkeys([f"read-only-{n}" for n in (10, 100, 10000)], 16),
    **dict.fromkeys([f"read-only-{kind}" for kind in ("simple", "sum", "order", "distinct")], 13),
}
"""Statements of a transaction where it has more than one, BEGIN and COMMIT included."""

Servers = Mapping[str, Server]


@pytest.fixture(scope="module")
def servers(
    server_folders: Callable[[], AbstractContextManager[Path]], postgres_18: Build, mysql_9: Build
) -> Iterator[Servers]:
    """Both engines with the loaded tables, which the read steps and the sweep share."""
    with ExitStack() as stack:
        folder = stack.enter_context(server_folders())
        started = {}
        for build in (postgres_18, mysql_9):
            engine = str(build.version.engine)
            server = make_server(build, ROOM, Durability.RELAXED, folder / engine[:2], {})
            stack.callback(server.destroy)
            create(server, ROOM)
            server.start()
            Sysbench(READ, ROOM).load(server.address)
            started[engine] = server
        yield started


def run(server: Server, suite: Suite, step: Step, transactions: int) -> Load:
    return Sysbench(suite, ROOM).run(server.address, step, WorkLimit(5, transactions), Meter(server.pid))


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_every_read_step_runs_its_statements(servers: Servers, engine: str) -> None:
    for step in READ.steps:
        load = run(servers[engine], READ, step, 4)
        assert (step.name, load.transactions, load.errors) == (step.name, 4, 0)
        assert (step.name, load.queries) == (step.name, 4 * QUERIES.get(step.name, 1))


EXPECTED = {
    ("point-query", "postgres"): r"Index Scan using sbtest1_pkey on sbtest1 \(rows=1\)\n  Index Cond: ",
    ("point-query", "mysql"): r"-> Rows fetched before execution",
    ("random-points-1000", "postgres"): r"(Index|Bitmap Heap) Scan [^…]*id = ANY \('\{…\}'::[a-z]+\[\]\)\)",
    ("points-covered-si", "postgres"): r"Index Only Scan using k_1 on sbtest1 \(rows=\d+\)\n",
    ("points-covered-si", "mysql"): r"-> Filter: \(sbtest1.k in \(…\)\) \(rows=\d+\)\n    -> Covering index",
    ("scan", "postgres"): r"Seq Scan on sbtest1 \(rows=\d+\)\n  Filter: \(length\(",
    ("read-only-sum", "postgres"): r"Aggregate \(rows=1\)\n  ->  .*\n\nIndex Scan using sbtest1_pkey",
}
"""Beginnings of plans."""


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_every_statement_has_a_plan_without_costs(servers: Servers, engine: str) -> None:
    address, generator = servers[engine].address, Sysbench(READ, ROOM)
    for step in READ.steps:
        statements = generator.statements(address, step)
        plan = explain(address, statements)
        assert len(statements) == len(plan.split("\n\n")), step.name
        assert "cost=" not in plan
        assert "?" not in "".join(statements)
        if (step.name, engine) in EXPECTED:
            assert re.match(EXPECTED[step.name, engine], plan, re.DOTALL), (step.name, plan)


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
@pytest.mark.parametrize("distribution", ["uniform", "special"])
def test_a_level_of_the_sweep_runs_twenty_queries(servers: Servers, engine: str, distribution: str) -> None:
    step = SWEEP.steps[0].at(4)
    step = step.model_copy(update={"options": {**step.options, "distribution": distribution}})
    load = run(servers[engine], SWEEP, step, 40)
    assert load.transactions == 40
    assert load.queries >= 40 * 20
    assert {"p50", "p95", "p99", "p999"} <= load.latency_ms.keys()
