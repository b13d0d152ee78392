"""Strings of all lengths arrive as they were sent, whether statements are prepared or not. Real servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.checking.queries import connected
from suites.definition import load_suite
from suites.engines import make_server
from suites.generators.drivers import connection_options
from suites.generators.programs import run_all
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.server import Server
from suites.sizing import Hardware, sizes
from tests.new_servers.data_directories import create

pytestmark = pytest.mark.server

BUILDS = {"postgres": "postgres_18", "mysql": "mysql_9", "mariadb": "mariadb_11"}

SUITE = load_suite("shop")
ROOM = sizes(SUITE, SUITE.profile("smoke"), Hardware(1, 1), SUITE.steps)

LENGTHS = (999, 256, 255, 60, 5, 0, 999)
"""Longer and shorter ones in turns, beside what sysbench's driver for Postgres can pass: 255 bytes."""

SCRIPT = """
local statements = require("tidemark.statements")
function event()
   local connection = sysbench.sql.driver():connect()
   for name, most in pairs({long_texts = 999, short_texts = 60}) do
      connection:query("CREATE TABLE " .. name .. " (id INTEGER, text TEXT)")
      local text = "INSERT INTO " .. name .. " VALUES (?, ?)"
      local insert = statements.statement(connection, text, {"int", most})
      for id, length in ipairs({LENGTHS}) do
         if length <= most then insert:execute(id, statements.text(("x"):rep(length))) end
      end
      local question = statements.question(connection, "SELECT COUNT(*) FROM " .. name .. " WHERE text = ?")
      assert(question:row(("x"):rep(60)) == "1", "one row has the text")
   end
end
""".replace("LENGTHS", ", ".join(map(str, LENGTHS)))


@pytest.fixture(params=BUILDS)
def server(server_folder: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    build: Build = request.getfixturevalue(BUILDS[request.param])
    started = make_server(build, ROOM, Durability.RELAXED, server_folder / "s", {})
    try:
        create(started, ROOM)
        started.start()
        yield started
    finally:
        started.destroy()


def test_strings_arrive_as_they_were_sent(server: Server, tmp_path: Path) -> None:
    script = tmp_path / "strings.lua"
    script.write_text(SCRIPT)
    generator = Sysbench(SUITE, ROOM)
    for mode in ("auto", "disable"):
        options = [*connection_options(server.address), f"--db-ps-mode={mode}", "--events=1", "run"]
        run_all([[str(generator.program), str(script), *options]], 1, 60, generator.environment)
        with connected(server.address) as connection, connection.cursor() as cursor:
            for name, most in (("long_texts", 999), ("short_texts", 60)):
                cursor.execute(f"SELECT id, text FROM {name} ORDER BY id")
                sent = [(place, "x" * length) for place, length in enumerate(LENGTHS, 1) if length <= most]
                assert [
                    (place, text.decode() if isinstance(text, bytes) else text) for place, text in cursor
                ] == sent
                cursor.execute(f"DROP TABLE {name}")
