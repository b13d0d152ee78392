"""Files of SQL that people have on real servers: clients, statements as kinds, and failures."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.checking.queries import explain
from suites.definition import Suite, load_suite
from suites.engines import make_server
from suites.generators.load import LoadError, Share
from suites.generators.registry import make_generator
from suites.keys.durability import Durability
from suites.server import Server
from suites.slices import Schedule
from tests.new_servers.data_directories import create
from tests.suites.servers import small

pytestmark = pytest.mark.server

TOML = """
name = "own"
title = "Own"
generator = "queries"
engines = ["postgres", "mysql", "mariadb"]
seed = 1
setup = "setup.sql"
plans = true

[profiles.smoke]
title = "short"
seconds = 2
slice_seconds = 1
repetitions = 3
data_to_memory = 0.001
buffer_to_memory = 0.02
settle_seconds = 0
"""

FILES = {
    "setup.sql": "CREATE TABLE numbers (id int PRIMARY KEY, v int);\nINSERT INTO numbers VALUES (1, 0);\n",
    "mixed.sql": "UPDATE numbers SET v = v + 1 WHERE id = 1;\n-- sum\nSELECT sum(v) FROM numbers;\n",
    "one.sql": "SELECT count(*) FROM numbers",
    "wrong.sql": "SELECT 1;\nSELECT nothing\nFROM numbers;\n",
    "slow.sql": "SELECT 1;\nSELECT {sleep}(5);\n",
}
ROOM = small()


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    steps = []
    for name, text in FILES.items():
        (tmp_path / name).write_text(text.replace("{sleep}", "pg_sleep"))
        if name != "setup.sql":
            steps.append(f'[[steps]]\nname = "{name[:-4]}"\ntitle = "x"\noptions = {{ file = "{name}" }}\n')
    (tmp_path / "suite.toml").write_text(TOML + "".join(steps))
    tmp_path.chmod(0o755)  # the user of clients reads it
    return load_suite(f"{tmp_path}/")


@pytest.fixture(params=["postgres_18", "mysql_9"])
def build(request: pytest.FixtureRequest) -> Build:
    provided: Build = request.getfixturevalue(request.param)
    return provided


@pytest.fixture
def server(build: Build, server_folder: Path) -> Iterator[Server]:
    made = make_server(build, ROOM, Durability.RELAXED, server_folder / "s", {})
    try:
        create(made, ROOM)
        made.start()
        yield made
    finally:
        made.destroy()


def test_each_statement_is_a_query_and_a_kind(suite: Suite, server: Server, build: Build) -> None:
    generator = make_generator(suite, ROOM, [build])
    assert "tpchgen" not in generator.version()
    generator.load(server.address)
    share = Share(Schedule(0.2, (0, 0), warming=1), 1, limit_seconds=20)
    mixed, one, wrong, _ = suite.select(())
    assert explain(server.address, generator.statements(server.address, mixed)).count("\n\n") == 1
    for step in (mixed, mixed.at(4)):
        (load,) = generator.alternate([server.address], step, share, [Meter(server.pid)])
        assert [*load.kinds] == [
            "line-1 UPDATE numbers SET v = v + 1 WHERE id = 1",
            "line-3 SELECT sum(v) FROM numbers",
        ]
        first, second = (kind.transactions for kind in load.kinds.values())
        assert load.transactions == load.queries == first + second
        assert first == second > 5
        assert 0.2 <= load.seconds < 20
        assert load.watched_queries > load.queries
    (load,) = generator.alternate([server.address], one, share, [Meter(server.pid)])
    assert load.kinds == {}
    with pytest.raises(LoadError, match=r"^wrong.sql, line 2: .*nothing"):
        generator.alternate([server.address], wrong, share, [Meter(server.pid)])


def test_a_statement_over_its_limit_has_no_figure(
    suite: Suite, server_folder: Path, postgres_18: Build
) -> None:
    made = make_server(postgres_18, ROOM, Durability.RELAXED, server_folder / "s", {})
    try:
        create(made, ROOM)
        made.start()
        generator = make_generator(suite, ROOM, [postgres_18])
        generator.load(made.address)
        share = Share(Schedule(0.2, (0, 0), warming=1), 1, limit_seconds=0.3)
        with pytest.raises(LoadError, match=r"slow.sql, line 2: took longer than its limit of 0.3 s"):
            generator.alternate([made.address], suite.steps[3], share, [Meter(made.pid)])
    finally:
        made.destroy()
