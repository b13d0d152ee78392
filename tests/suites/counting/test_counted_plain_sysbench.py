"""Counted passes of sysbench scripts that know nothing of Tidemark, on a real Postgres."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.finished_build import Build
from suites.counting.counted_pass import CountedPass, count
from suites.counting.fixed_work import WorkTerms, work_and_crash
from suites.counting.tool import Callgrind, find_callgrind
from suites.definition import Suite, load_suite
from suites.engines import make_server
from suites.generators.load import CountedWork, LoadError, PassLength
from suites.generators.separate_runs.plain_sysbench import PlainSysbench
from suites.keys.durability import Durability
from suites.metrics import COUNTED_TRANSACTIONS, INSTRUCTIONS
from suites.server import Server
from suites.sizing import Sizes, own_tables
from tests.new_servers.data_directories import create
from tests.suites.separate_runs.test_plain_sysbench import TOML
from tests.suites.servers import small

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

SCRIPT = """
sysbench.cmdline.options = {rows = {"Rows", 10}, kind = {"What", "read"}, check = {"Switch", false}}
math.randomseed(os.time())
function connected() return sysbench.sql.driver():connect() end
function prepare()
   local con = connected()
   con:query("CREATE TABLE numbers (id bigint PRIMARY KEY, v int, w text)")
   con:query("INSERT INTO numbers SELECT g, 0, '' FROM generate_series(1, 300) g")
end
function thread_init()
   con = connected()
   statement = con:prepare("UPDATE numbers SET v = ? WHERE id = ?")
   value = statement:bind_create(sysbench.sql.type.INT)
   id = statement:bind_create(sysbench.sql.type.INT)
   statement:bind_param(value, id)
end
function event()
   value:set(math.random(1000000))
   id:set(sysbench.rand.pareto(1, 300))
   con:query("BEGIN")
   statement:execute()
   con:query("INSERT INTO numbers VALUES (" .. 1000 + sysbench.rand.unique() .. ", "
      .. sysbench.rand.gaussian(1, 99) .. ", '" .. sysbench.rand.string("@@@###") .. "')")
   con:query("COMMIT")
end
"""

OLD = """
function prepare() db_query("CREATE TABLE numbers AS SELECT g AS id, 0 AS v FROM generate_series(1, 9) g") end
function event() db_query("UPDATE numbers SET v = v + 1 WHERE id = " .. sb_rand(1, 9)) end
"""


@pytest.fixture
def callgrind() -> Callgrind:
    try:
        return find_callgrind()
    except TidemarkError as error:
        pytest.skip(str(error))


def own(folder: Path, script: str = SCRIPT) -> tuple[Suite, Sizes]:
    """A suite of one script, and the sizes of its smoke profile."""
    toml = TOML if script is SCRIPT else TOML.replace("options = {", "# {")
    (folder / "suite.toml").write_text(toml)
    (folder / "read.lua").write_text(script)
    suite = load_suite(f"{folder}/")
    return suite, replace(small(), data=own_tables(suite, suite.profile("smoke"), 1e6))


@contextlib.contextmanager
def loaded(build: Build, suite: Suite, sizes: Sizes, folder: Path) -> Iterator[Server]:
    server = make_server(build, sizes, Durability.RELAXED, folder / "pg", {})
    try:
        create(server, sizes)
        server.start()
        PlainSysbench(suite, sizes, [build]).load(server.address)
        server.keep()
        yield server
    finally:
        server.destroy()


def test_passes_are_of_equal_work(
    server_folder: Path, postgres_18: Build, callgrind: Callgrind, tmp_path: Path
) -> None:
    suite, sizes = own(tmp_path)
    step = suite.steps[0].model_copy(update={"counted": 20, "clients": (16,)})
    with loaded(postgres_18, suite, sizes, server_folder) as server:
        generator = PlainSysbench(suite, sizes, [postgres_18])
        passes = [count(server, generator, step, sizes, callgrind, stacks=True) for _ in range(2)]
    counts = [each.values[INSTRUCTIONS] for each in passes]
    assert max(counts) < min(counts) * 1.001
    assert min(counts) > 10_000
    assert [_calls(each, "CommitTransaction") for each in passes] == [20, 20]
    assert passes[0].values[COUNTED_TRANSACTIONS] == 20


def _calls(counted: CountedPass, function: str) -> int:
    assert counted.profile is not None
    return counted.profile.calls[function]


@pytest.mark.parametrize(("script", "rows"), [(SCRIPT, 300 + 6 + 50), (OLD, 9)], ids=["1.0", "0.5"])
def test_the_same_work_leaves_the_same_rows(
    server_folder: Path, postgres_18: Build, tmp_path: Path, script: str, rows: int
) -> None:
    suite, sizes = own(tmp_path, script)
    with loaded(postgres_18, suite, sizes, server_folder) as server:
        generator = PlainSysbench(suite, sizes, [postgres_18])
        terms = WorkTerms(Durability.RELAXED, lambda part, affordable: affordable, most=50)
        first, second = (work_and_crash(server, generator, suite.steps[0], terms) for _ in range(2))
        assert first.digests is not None
        assert second.digests is not None
        assert first.digests.rows == rows
        assert first.digests.differs_from(second.digests) == ()


TROUBLES = {
    "function event() con = connected() end": "a thread of the script connects more than once",
    "function thread_run(id) event(id) end": "the script has a thread_run of its own",
    "function event() return true end": "the script ends by itself, before a counted pass does",
    "function event() con:query('SELECT none') end": 'read.lua, line 26: column "none" does not exist',
}


def test_what_cannot_be_counted_is_said(server_folder: Path, postgres_18: Build, tmp_path: Path) -> None:
    suite, sizes = own(tmp_path)
    with loaded(postgres_18, suite, sizes, server_folder) as server:
        generator = PlainSysbench(suite, sizes, [postgres_18])
        server.restore(is_timed=False)
        server.start()
        work = CountedWork("SELECT pg_backend_pid()", 30.0, lambda seconds: PassLength(6, 4))
        for added, said in TROUBLES.items():
            (tmp_path / "read.lua").write_text(f"{SCRIPT}{added}\n")
            with pytest.raises(LoadError) as caught:
                generator.count(server.address, suite.steps[0], work)
            assert caught.value.what.startswith(said)
