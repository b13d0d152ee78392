"""sysbench with a script that knows nothing of Tidemark: what is loaded, measured and said of mistakes."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from build.finished_build import Build
from build.version import Engine
from suites.definition import Suite, SuiteError, load_suite
from suites.engines import make_server
from suites.generators.load import LoadError, Share, WorkLimit
from suites.generators.registry import make_generator
from suites.generators.separate_runs.plain_sysbench import FAILING_SECONDS, PlainSysbench
from suites.generators.separate_runs.script_options import require_script
from suites.innodb.server import InnodbServer
from suites.keys.durability import Durability
from suites.server import Address, SetupError
from suites.setup.loading import load_files
from suites.sizing import own_tables
from suites.slices import Schedule
from tests.new_servers.data_directories import create
from tests.suites.generators.test_sysbench_slices import Noting
from tests.suites.innodb_servers import value
from tests.suites.servers import small

TOML = """
name = "own"
title = "Own"
generator = "plain-sysbench"
script = "read.lua"
engines = ["postgres", "mysql", "mariadb"]
seed = 1

[profiles.smoke]
title = "short"
seconds = 2
slice_seconds = 1
repetitions = 3
data_to_memory = 0.001
buffer_to_memory = 0.02
settle_seconds = 0
options = { rows = 300 }

[[steps]]
name = "read"
title = "Read"
options = { rows = 100, kind = "read" }

[[steps]]
name = "write"
title = "Write"
options = { rows = 100, kind = "write", check = true }
"""

COMMON = """function connected() return sysbench.sql.driver():connect() end
function fill(con, name, rows)
   con:query("CREATE TABLE " .. name .. " (id int PRIMARY KEY, v int)")
   for id = 1, rows do con:query("INSERT INTO " .. name .. " VALUES (" .. id .. ", 0)") end
end
"""

SCRIPT = """require("common")
sysbench.cmdline.options = {
   rows = {"Rows", 10}, kind = {"What is done", "read"}, check = {"Switch", false}, share = {"Share", 0.5},
}
function prepare()
   fill(connected(), "numbers", sysbench.opt.rows)
end
function thread_init() con = connected() end
function event()
   if sysbench.opt.kind == "read" then
      con:query("SELECT v FROM numbers WHERE id = " .. sysbench.rand.uniform(1, sysbench.opt.rows))
   elseif sysbench.opt.kind == "again" then
      con:query("INSERT INTO numbers VALUES (1, 0)")
   else
      con:query("UPDATE numbers SET w = v + 1 WHERE id = 1")
   end
end
function cleanup() connected():query("DROP TABLE numbers") end
"""

DUMP = """-- MySQL dump 10.13
/*!50503 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `b`;
CREATE TABLE `b` (`id` int NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB;
LOCK TABLES `b` WRITE;
INSERT INTO `b` VALUES (1),(2);
UNLOCK TABLES;
DELIMITER ;;
CREATE FUNCTION twice(n int) RETURNS int DETERMINISTIC BEGIN RETURN 2 * n; END ;;
DELIMITER ;"""

LEGACY = """function event() db_query("SELECT " .. oltp_tables) end
"""

FILES = {"suite.toml": TOML, "common.lua": COMMON, "read.lua": SCRIPT}
ROOM = small()


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., Suite]:
    def made(toml: tuple[str, str] = ("", ""), **changed: str) -> Suite:
        changes = {f"{name}.lua": text for name, text in changed.items() if name != "setup"}
        for name, text in {**FILES, **changes, "setup.sql": changed.get("setup", "")}.items():
            (tmp_path / name).write_text(text)
        (tmp_path / "suite.toml").write_text(TOML.replace(*toml))
        tmp_path.chmod(0o755)
        return load_suite(f"{tmp_path}/")

    return made


def test_a_script_is_prepared_with_the_options_of_all_steps(suite: Callable[..., Suite]) -> None:
    own = suite()
    data = own_tables(own, own.profile("smoke"), 1e6)
    assert data.options == {"rows": 300}
    assert data.facts == {"setup": "read.lua"}
    sizes = replace(ROOM, data=data, most_clients=8)
    (step,) = own.select(("read",), "smoke", (4,))
    words = PlainSysbench(own, sizes, [], prepares=False).arguments(address(), step, WorkLimit(3.2, None), 7)
    assert words[1:3] == [str(own.folder / "read.lua"), "--db-driver=mysql"]
    assert words[-3:] == ["--rows=300", "--kind=read", "run"]
    assert {"--threads=4", "--time=3", "--rand-seed=8", "--db-ps-mode=disable"} < set(words)


def address() -> Address:
    return Address(Engine.MYSQL, Path("/nowhere/mysqld.sock"), "someone", "it")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "write"', "kinds = 3", "read.lua: it has no option kinds; did you mean kind?"),
        (
            "check = true",
            "db_ps_modes = 1",
            "read.lua: it has no option db_ps_modes; did you mean db-ps-mode?",
        ),
        ("rows = 100", 'rows = "10k"', "read.lua: the option rows is a number, not 10k"),
        ("check = true", "check = 1", "read.lua: the option check is on or off, not 1"),
        ('kind = "write"', "rand-type = 3", ""),
        ('kind = "write"', "db_ps_mode = 'disable'", ""),
    ],
)
def test_options_are_those_that_the_script_declares(
    suite: Callable[..., Suite], old: str, new: str, said: str
) -> None:
    own = suite((old, new))
    if not said:
        require_script(own)
        return
    with pytest.raises(SuiteError) as caught:
        require_script(own)
    assert caught.value.what == said
    assert caught.value.hint == "its options are listed by: sysbench read.lua help"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("function event(\n", "read.lua, line 2: <name> or '...' expected near '<eof>'"),
        ("\nrequire('nowhere')\n", "read.lua, line 2: module 'nowhere' not found:"),
        (COMMON, "read.lua does not define event"),
        ("function init() error('no!') end function event() end", "read.lua, line 1: no!"),
        ("function event() end", "read.lua does not define prepare, and the suite has no load or setup"),
    ],
)
def test_what_sysbench_says_of_a_script_before_anything_is_built(
    suite: Callable[..., Suite], text: str, said: str
) -> None:
    own = suite(("options = {", "# {"), read=text)
    plain = own.model_copy(update={"steps": own.steps[:1]})
    with pytest.raises(SuiteError) as caught:
        require_script(plain)
    assert caught.value.what == said


def test_a_script_that_declares_no_options_takes_any(suite: Callable[..., Suite]) -> None:
    old = suite(("seed = 1", 'seed = 1\nsetup = "setup.sql"'), read=LEGACY)
    require_script(old)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "write"', "threads = 3", "threads: not an option of the script; the number of clients is"),
        ('kind = "write"', "mysql_socket = 'x'", "mysql_socket: not an option of the script; each server is"),
        ('title = "Write"', 'title = "Write"\nmost_work_to_rows = 1', "most_work_to_rows: how many rows the"),
        ("seed = 1", "seed = 1\nplans = true", "plans: a script without Tidemark's module cannot print its"),
        ("seed = 1", "seed = 1\nbytes_per_row = 3", "neither with plain-sysbench, whose script decides"),
        ('script = "read.lua"', "", "script: plain-sysbench needs the Lua script that people run"),
    ],
)
def test_keys_that_such_a_script_cannot_serve(
    suite: Callable[..., Suite], old: str, new: str, said: str
) -> None:
    with pytest.raises(SuiteError, match=said):
        suite((old, new))


@pytest.mark.server
@pytest.mark.parametrize("fixture", ["postgres_17", "mysql_9"])
def test_a_script_is_loaded_and_run_in_slices(
    suite: Callable[..., Suite], server_folder: Path, fixture: str, request: pytest.FixtureRequest
) -> None:
    build: Build = request.getfixturevalue(fixture)
    own = suite(("seed = 1", 'seed = 1\nsetup = "setup.sql"'), setup="CREATE TABLE other (id int);\n")
    sizes = replace(ROOM, data=own_tables(own, own.profile("smoke"), 1e6))
    server = make_server(build, sizes, Durability.RELAXED, server_folder / "s", {})
    try:
        create(server, sizes)
        server.start()
        generator = PlainSysbench(own, sizes, [build])
        with pytest.raises(LoadError, match=r"^read.lua, line 15: .*(column \"w\"|column 'w')"):
            generator.load(server.address)
        (step,) = own.select(("read",), "smoke", (2,))
        noting = Noting()
        # sysbench may end without the report of its last second.
        share = Share(Schedule(3, (0, 0, 0), warming=1), 1)
        (load,) = generator.alternate([server.address], step, share, [noting])
        assert load.transactions == load.queries > 100
        assert 5.9 < load.seconds < 8.5, "the warming is not counted"
        assert len(load.progress) == 4
        assert 0 < load.watched_queries <= 1.05 * load.queries
        assert {"mean", "p99", "max"} < load.latency_ms.keys()
        assert [what for what, _ in noting.told].count("begin") == 2
        _fails(generator, server.address, own, build)
    finally:
        server.destroy()


def _fails(generator: PlainSysbench, address: Address, own: Suite, build: Build) -> None:
    """Failing statements end a step with the line of the script and the server's sentence."""
    with pytest.raises(LoadError) as caught:
        generator.run(address, own.steps[1], WorkLimit(5, None), Noting())
    assert caught.value.what.startswith("read.lua, line 15: ")
    assert re.search(r"column \"w\" of relation|Unknown column 'w'", caught.value.what)
    again = own.steps[0].model_copy(update={"options": {"kind": "again"}})
    with pytest.raises(LoadError) as caught:
        generator.run(address, again, WorkLimit(5, None), Noting())
    said = {
        Engine.POSTGRES: f"no transaction has ended for {FAILING_SECONDS} s",
        Engine.MYSQL: "Duplicate entry",
    }
    assert said[build.version.engine] in caught.value.what


PROGRAM = """#!/bin/sh
set -e
echo 'CREATE TABLE numbers (id int PRIMARY KEY, v int)' | mysql --user="$MYSQL_USER" "$MYSQL_DATABASE"
echo 'INSERT INTO numbers VALUES (1, 0), (2, 0)' | mysql --user="$MYSQL_USER" "$MYSQL_DATABASE"
"""


@pytest.mark.server
def test_data_of_mysql_come_from_a_program_or_a_dump(
    suite: Callable[..., Suite], tmp_path: Path, server_folder: Path, mysql_9: Build
) -> None:
    keys = 'seed = 1\nload = "fill"\nsetup = "setup.sql"'
    (tmp_path / "fill").write_text(PROGRAM)
    (tmp_path / "fill").chmod(0o700)
    own = suite(("seed = 1", keys), read=LEGACY, setup="INSERT INTO numbers VALUES (3, 0);\n")
    server = make_server(mysql_9, ROOM, Durability.RELAXED, server_folder / "s", {})
    try:
        create(server, ROOM)
        server.start()
        assert isinstance(server, InnodbServer)
        load_files([mysql_9], server.address, own)
        assert value(server, "SELECT count(*) FROM tidemark.numbers") == 3
        with pytest.raises(SetupError, match="Table 'numbers' already exists"):
            load_files([mysql_9], server.address, own)
        (tmp_path / "fill").write_text(
            f"{DUMP}\nDROP TABLE numbers;\nCREATE TABLE numbers (id int, v int);\n"
        )
        load_files([mysql_9], server.address, own)
        assert value(server, "SELECT count(*) FROM tidemark.b") == 2
        assert value(server, "SELECT count(*) FROM tidemark.numbers") == 1
    finally:
        server.destroy()


@pytest.mark.server
def test_a_setup_of_mysql_fails_with_its_line(
    suite: Callable[..., Suite], server_folder: Path, mysql_9: Build
) -> None:
    setup = "CREATE TABLE a (id int);\n\nINSERT INTO a\nVALUES (1), (x);\n"
    own = suite(("seed = 1", 'seed = 1\nsetup = "setup.sql"'), setup=setup)
    server = make_server(mysql_9, ROOM, Durability.RELAXED, server_folder / "s", {})
    try:
        create(server, ROOM)
        server.start()
        assert isinstance(server, InnodbServer)
        with pytest.raises(SetupError) as caught:
            make_generator(own, ROOM, [mysql_9]).load(server.address)
        assert caught.value.what == "setup.sql, line 3: Unknown column 'x' in 'field list'"
        (own.folder / "setup.sql").write_text(f"{DUMP}\nSELECT 1 FROM;\n")
        with pytest.raises(
            SetupError, match=r"^setup.sql, line 11: You have an error in your SQL syntax.*near ''"
        ):
            make_generator(own, ROOM, [mysql_9]).load(server.address)
        assert value(server, "SELECT tidemark.twice(21)") == 42
    finally:
        server.destroy()
