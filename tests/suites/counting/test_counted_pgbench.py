"""Counted passes of pgbench on a real Postgres under callgrind: its built-in scripts, and weighted ones."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.finished_build import Build
from suites.counting.counted_pass import CountedPass, PassTerms, count
from suites.counting.engines import COUNTED
from suites.counting.tool import Callgrind, find_callgrind
from suites.definition import Suite, load_suite
from suites.engines import make_server
from suites.generators.load import LoadError, LongPassError
from suites.generators.pgbench.client import Pgbench
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.metrics import COUNTED_TRANSACTIONS, INSTRUCTIONS
from suites.server import Server
from tests.new_servers.data_directories import create
from tests.suites.pgbench.test_own_schema import FILES
from tests.suites.servers import small

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

ROOM = small(rows=1000)


@pytest.fixture(scope="module")
def callgrind() -> Callgrind:
    try:
        return find_callgrind()
    except TidemarkError as error:
        pytest.skip(str(error))


@contextlib.contextmanager
def loaded(build: Build, suite: Suite, folder: Path) -> Iterator[Server]:
    """A server with loaded data."""
    server = make_server(build, ROOM, Durability.RELAXED, folder / "pg", {})
    try:
        create(server, ROOM)
        server.start()
        Pgbench(suite, ROOM, build).load(server.address)
        server.keep()
        yield server
    finally:
        server.destroy()


def own(folder: Path, **changed: str) -> Suite:
    """A suite of the files of the test of an own schema, some of them changed."""
    changes = {f"{name}.sql": text for name, text in changed.items()}
    for name, text in {**FILES, **changes}.items():
        (folder / name).write_text(text)
    folder.chmod(0o755)
    return load_suite(f"{folder}")


def passed(server: Server, suite: Suite, step: Step, callgrind: Callgrind, counted: int) -> CountedPass:
    fixed = step.model_copy(update={"counted": counted, "clients": (16,)})
    return count(server, Pgbench(suite, ROOM, server.build), fixed, ROOM, callgrind, stacks=True)


def test_passes_of_weighted_scripts_are_of_equal_work(
    server_folder: Path, postgres_17: Build, callgrind: Callgrind, tmp_path: Path
) -> None:
    """The last statement of a script may have no end."""
    suite = own(tmp_path, report="SELECT sum(total)\nFROM orders")
    with loaded(postgres_17, suite, server_folder) as server:
        first, second = (passed(server, suite, suite.steps[0], callgrind, 60) for _ in range(2))
    counts = [measured.values[INSTRUCTIONS] for measured in (first, second)]
    assert max(counts) < min(counts) * (1 + COUNTED[server.build.version.engine].agreement)
    assert first.values[COUNTED_TRANSACTIONS] == 60
    profile = first.profile
    assert profile is not None
    assert second.profile is not None
    inserted = profile.calls["heap_insert"]
    assert 45 < inserted < 60, "9 of 10 transactions insert a row"
    assert profile.calls["ExecAgg"] >= 60 - inserted
    assert second.profile.calls["heap_insert"] == inserted
    assert profile.calls["CommitTransaction"] == 60, "those of the counted transactions alone"


def test_built_in_scripts_are_counted(server_folder: Path, postgres_17: Build, callgrind: Callgrind) -> None:
    suite = load_suite("pgbench")
    with loaded(postgres_17, suite, server_folder) as server:
        counted = passed(server, suite, suite.steps[0], callgrind, 20)
    assert counted.profile is not None
    assert counted.profile.calls["heap_update"] == 3 * 20
    assert counted.values[INSTRUCTIONS] > 10_000


def test_what_fails_in_a_pass_is_named_with_file_and_line(
    server_folder: Path, postgres_17: Build, callgrind: Callgrind, tmp_path: Path
) -> None:
    """A transaction of a fixed key succeeds once, and so in the trial."""
    suite = own(tmp_path, orders="SELECT 1;\nINSERT INTO orders (id, total)\nVALUES (5000, 1);\n")
    with loaded(postgres_17, suite, server_folder) as server:
        with pytest.raises(LoadError) as caught:
            passed(server, suite, suite.steps[0], callgrind, 60)
        assert caught.value.what == (
            'orders.sql, line 2: duplicate key value violates unique constraint "orders_pkey"'
        )
        assert caught.value.where == f"{tmp_path}/orders.sql:2"
        long = own(tmp_path, orders="SELECT pg_sleep(1);\n", report="SELECT 1;\n")
        terms = PassTerms(limit_seconds=4.0, budget_seconds=3600)
        with pytest.raises(LongPassError, match=r"was ended after 4 s, at "):
            count(
                server, Pgbench(long, ROOM, server.build), long.steps[0], ROOM, callgrind, terms, stacks=False
            )
