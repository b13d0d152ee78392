"""Transactions that a server rolls back are begun again, and others arrive at a rate. Real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.definition import Suite, load_suite
from suites.engines import make_server
from suites.generators.load import Load, LoadError, Share
from suites.generators.registry import make_generator
from suites.keys.durability import Durability
from suites.server import Server
from suites.sizing import Hardware, sizes
from suites.slices import Schedule
from suites.turns.turn import overload
from tests.new_servers.data_directories import create

pytestmark = pytest.mark.server

BUILDS = {"postgres": "postgres_18", "mysql": "mysql_9", "mariadb": "mariadb_11"}

TOML = """
name = "rivals"
title = "transactions that are in each other's way"
generator = "sysbench"
script = "rivals.lua"
engines = ["postgres", "mysql", "mariadb"]
seed = 7
finish = true

[scale]
unit = "pair"

[scale.tables]
pairs = { rows = 2, bytes_per_row = 100 }

[profiles.smoke]
title = "short"
seconds = 1
slice_seconds = 1
repetitions = 1
data_to_memory = 0.001
scale = [1, 1]
buffer_to_memory = 0.02
settle_seconds = 0
""" + "".join(
    f'[[steps]]\nname = "{name}"\ntitle = "{name}"\noptions = {{ work = "{name}" }}\n{more}\n'
    for name, more in (
        ("deadlock", ""),
        ("duplicate-key", ""),
        ("serialisation", ""),
        ("mistake", ""),
        ("refused", ""),
        ("slow", "rate = 20"),
        ("hurried", "rate = 400"),
    )
)

LUA = """
local tidemark = require("tidemark")
local connection, tries, next_id, sleep, snapshot = nil, 0, 100, nil, nil

local function prepare(connection)
   if sysbench.opt.unit > 0 then return end
   connection:query("CREATE TABLE pairs (id INTEGER NOT NULL, n INTEGER NOT NULL)")
   connection:query("INSERT INTO pairs VALUES (1, 0), (2, 0)")
end

local function finish(connection) connection:query("ALTER TABLE pairs ADD PRIMARY KEY (id)") end

local function start(own, engine)
   connection = own
   sleep = engine == "pgsql" and "SELECT pg_sleep(%s)" or "DO SLEEP(%s)"
   snapshot = engine == "pgsql"
   if snapshot and sysbench.opt.work == "serialisation" then
      own:query("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
   end
end

local function add(id) connection:query("UPDATE pairs SET n = n + 1 WHERE id = " .. id) end

local WORK = {
   deadlock = function()
      connection:query("BEGIN")
      add(1 + sysbench.tid % 2)
      connection:query(sleep:format(0.02))
      add(2 - sysbench.tid % 2)
      connection:query("COMMIT")
   end,
   -- Each other try takes an id that is there.
   ["duplicate-key"] = function()
      tries, next_id = tries + 1, next_id + 1
      local id = tries % 2 == 1 and 1 or sysbench.tid * 100000 + next_id
      connection:query(string.format("INSERT INTO pairs VALUES (%d, 0)", id))
   end,
   serialisation = function()
      connection:query("BEGIN")
      connection:query("SELECT n FROM pairs")
      connection:query(sleep:format(0.01))
      add(1)
      connection:query("COMMIT")
   end,
   mistake = function() connection:query("SELECT nothing FROM pairs") end,
   refused = function() return tidemark.REFUSED end,
   slow = function() connection:query(sleep:format(0.01)) end,
   hurried = function() connection:query(sleep:format(0.01)) end,
}

tidemark.script {
   options = {work = {"Work", "slow"}},
   kinds = {"work", "other"},
   prepare = prepare,
   finish = finish,
   start = start,
   event = function()
      if sysbench.opt.work == "refused" then tidemark.transaction("other", function() add(1) end) end
      tidemark.transaction("work", WORK[sysbench.opt.work])
   end,
}
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    folder = tmp_path_factory.mktemp("rivals")
    (folder / "suite.toml").write_text(TOML)
    (folder / "rivals.lua").write_text(LUA)
    return load_suite(f"{folder}/.")


@pytest.fixture(params=BUILDS)
def server(server_folder: Path, suite: Suite, request: pytest.FixtureRequest) -> Iterator[Server]:
    build: Build = request.getfixturevalue(BUILDS[request.param])
    room = sizes(suite, suite.profile("smoke"), Hardware(1, 1), suite.steps)
    settings = {"deadlock_timeout": "20ms"} if request.param == "postgres" else {}
    started = make_server(build, room, Durability.RELAXED, server_folder / "s", settings)
    try:
        create(started, room)
        started.start()
        make_generator(suite, room, [build]).load(started.address)
        yield started
    finally:
        started.destroy()


def work(server: Server, suite: Suite, name: str, clients: int = 2, slices: int = 4) -> Load:
    step = suite.select((name,))[0].at(clients)
    room = sizes(suite, suite.profile("smoke"), Hardware(1, 1), [step])
    share = Share(Schedule(0.2, (0,) * slices, 1), 1)
    generator = make_generator(suite, room, [server.build])
    (load,) = generator.alternate([server.address], step, share, [Meter(server.pid, shared=True)])
    return load


def test_transactions_are_begun_again_and_counted_by_cause(server: Server, suite: Suite) -> None:
    causes = ["deadlock", "duplicate-key"]
    if server.build.version.engine == "postgres":  # the others let the later writer wait
        causes.append("serialisation")
    for cause in causes:
        load = work(server, suite, cause, slices=8 if cause == "deadlock" else 4)
        retried = dict(load.kinds["work"].retried)
        assert retried.pop(cause) > 0, cause
        assert not any(retried.values())
        assert load.kinds["work"].transactions > 0
        assert load.kinds["work"].committed >= load.kinds["work"].transactions

    refusing = work(server, suite, "refused", clients=1).kinds
    assert refusing["work"].transactions == 0
    assert refusing["work"].refused == refusing["other"].transactions > 0

    with pytest.raises(LoadError, match="failed with exit status"):
        work(server, suite, "mistake")


def test_transactions_arrive_at_a_rate_whatever_the_server_does(server: Server, suite: Suite) -> None:
    """Each takes 10 ms: 20 a second leave a client idle most of the time, 400 are twice what two can do."""
    first, again = (work(server, suite, "slow", slices=11) for _ in range(2))
    assert first.due == again.due  # the same list from the same seed
    assert first.due is not None
    assert 15 <= first.due <= 65
    assert first.latency_ms["p50"] >= 10
    hurried = work(server, suite, "hurried", slices=11)
    assert overload(hurried)
    assert hurried.due is not None
    assert hurried.due > 2 * first.due
