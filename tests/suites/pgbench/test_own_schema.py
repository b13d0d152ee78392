"""A suite with a schema and scripts of its own on a real server: what it loads, and how it fails."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from build.errors import TidemarkError
from build.finished_build import Build
from suites.accounting.costs import Meter
from suites.definition import Suite, SuiteError, load_suite
from suites.generators.load import CountedWork, LoadError, PassLength, WorkLimit
from suites.generators.pgbench.client import Pgbench
from suites.postgres.server import PostgresServer
from tests.suites.servers import ask, running, small, value

pytestmark = pytest.mark.server

TOML = """
name = "own"
title = "Own"
generator = "pgbench"
engines = ["postgres"]
seed = 1
setup = "setup.sql"

[profiles.smoke]
title = "short"
seconds = 2
slice_seconds = 1
repetitions = 3
data_to_memory = 0.001
buffer_to_memory = 0.02
settle_seconds = 0

[[steps]]
name = "own"
title = "Own"
scripts = ["orders.sql@9", "report.sql@1"]
variables = { most = 100 }
"""

SETUP = """CREATE TABLE orders (id bigserial PRIMARY KEY, customer int, total int);
\\ir rows.sql
"""

FILES = {
    "suite.toml": TOML,
    "setup.sql": SETUP,
    "rows.sql": "INSERT INTO orders (customer, total)\nSELECT n % 50, n FROM generate_series(1, 1000) n;\n",
    "orders.sql": "\\set c random(1, :most)\nINSERT INTO orders (customer, total) VALUES (:c, 1);\n",
    "report.sql": "-- sums\nSELECT\n  sum(total)\nFROM orders;\n",
}
ROOM = small()


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., Suite]:
    def made(**changed: str) -> Suite:
        changes = {"suite.toml" if name == "toml" else f"{name}.sql": text for name, text in changed.items()}
        for name, text in {**FILES, **changes}.items():
            (tmp_path / name).write_text(text)
        tmp_path.chmod(0o755)  # the folders around it are closed to the user of the clients
        return load_suite(f"{tmp_path}")

    return made


def loaded(suite: Suite, server: PostgresServer, client: Build) -> Pgbench:
    generator = Pgbench(suite, ROOM, client)
    generator.load(server.address)
    return generator


def test_own_tables_and_weighted_scripts(
    suite: Callable[..., Suite], server_folder: Path, postgres_17: Build, postgres_18: Build
) -> None:
    own = suite()
    with running(postgres_17, server_folder, ROOM) as server:
        generator = loaded(own, server, postgres_18)
        assert value(server, "SELECT count(*) FROM orders") == 1000  # the trial has left nothing
        assert value(server, "SELECT count(*) FROM pg_database WHERE datname = 'tidemark_trial'") == 0
        assert ask(server, "SELECT 1 FROM pg_class WHERE relname = 'pgbench_accounts'") == []
        load = generator.run(server.address, own.steps[0], WorkLimit(30, 400), Meter(server.pid))
        inserted = value(server, "SELECT count(*) FROM orders") - 1000
        assert load.transactions == 400
        assert 300 < inserted < 400
        connecting = own.steps[0].model_copy(
            update={"options": {"protocol": "simple", "connect": True}, "rate": 40.0}
        )
        load = generator.run(server.address, connecting, WorkLimit(2, None), Meter(server.pid))
        assert 40 < load.transactions < 130
        assert load.due is not None
        assert load.transactions >= load.due > 40


SETTINGS = """
CREATE SCHEMA "Orders, of 2026";
ALTER TABLE orders SET SCHEMA "Orders, of 2026";
SELECT format('ALTER DATABASE %I SET app.tenant = %L', current_database(), 'the 7th, of "9"') \\gexec
SELECT format('ALTER DATABASE %I SET search_path = "Orders, of 2026", public', current_database()) \\gexec
SELECT format('ALTER ROLE %I IN DATABASE %I SET app.role = 8', current_user, current_database()) \\gexec
"""


def test_scripts_are_tried_with_the_settings_of_the_database(
    suite: Callable[..., Suite], server_folder: Path, postgres_18: Build
) -> None:
    """An application may have its tenant or its search path there, which a copy of the database lacks."""
    told = "SELECT 1 / (current_setting('app.tenant') = 'the 7th, of \"9\"' AND app = '8')::int FROM orders,"
    own = suite(
        setup=SETUP + SETTINGS,
        orders=f"{told} (SELECT current_setting('app.role') AS app) of_role LIMIT 1;\n",
        toml=TOML.replace("variables = { most = 100 }", ""),
    )
    with running(postgres_18, server_folder, ROOM) as server:
        generator = loaded(own, server, postgres_18)
        load = generator.run(server.address, own.steps[0], WorkLimit(30, 100), Meter(server.pid))
        assert load.transactions == 100
        assert value(server, "SELECT count(*) FROM pg_db_role_setting WHERE setdatabase <> 0") == 2


def test_what_fails_in_the_trial_is_said_to_be_tried_in_a_copy(
    suite: Callable[..., Suite], server_folder: Path, postgres_18: Build
) -> None:
    named = "SELECT 1 / (current_database() <> 'tidemark_trial')::int FROM orders;\n"
    own = suite(orders=named, toml=TOML.replace("variables = { most = 100 }", ""))
    with running(postgres_18, server_folder, ROOM) as server:
        with pytest.raises(LoadError, match=r"orders.sql, line 1: division by zero") as caught:
            loaded(own, server, postgres_18)
        assert "in tidemark_trial, a copy of the database" in caught.value.hint


REFUSING = """
CREATE SEQUENCE tried;
CREATE FUNCTION refuse_some() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('tried') % 5 = 0 THEN RAISE EXCEPTION 'no' USING ERRCODE = 'serialization_failure'; END IF;
END $$;
"""


def test_fixed_work_is_done_also_by_a_server_that_refuses_some_transactions(
    suite: Callable[..., Suite], server_folder: Path, postgres_18: Build
) -> None:
    one = TOML.replace('"orders.sql@9", "report.sql@1"', '"orders.sql"')
    own = suite(
        toml=one, setup=SETUP + REFUSING, orders=f"BEGIN;\n{FILES['orders.sql']}SELECT refuse_some();\nEND;\n"
    )
    with running(postgres_18, server_folder, ROOM) as server:
        generator = loaded(own, server, postgres_18)
        before = value(server, "SELECT count(*) FROM orders")
        work = CountedWork("SELECT pg_backend_pid()", 60.0, lambda seconds: PassLength(10, 100))
        load = generator.count(server.address, own.steps[0], work)
        assert load.transactions == 100
        sampled = value(server, "SELECT count(*) FROM orders") - before - 110
        assert 0 < sampled < 10, "those that decided how many are counted"


def test_scripts_see_the_scale_that_was_loaded(
    suite: Callable[..., Suite], server_folder: Path, postgres_18: Build
) -> None:
    scaled = suite(
        toml=TOML.replace('setup = "setup.sql"\n', "bytes_per_row = 100\n").replace(
            "buffer_", "rows = [1, 1]\nbuffer_"
        ),
        orders="INSERT INTO pgbench_history (tid, aid) VALUES (:scale, :most);\n",
        report="SELECT 1;\n",
    )
    room = small(rows=300_000)
    with running(postgres_18, server_folder, room) as server:
        generator = Pgbench(scaled, room, postgres_18)
        generator.load(server.address)
        generator.run(server.address, scaled.steps[0], WorkLimit(30, 50), Meter(server.pid))
        assert ask(server, "SELECT DISTINCT tid, aid FROM pgbench_history") == [(3, 100)]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"setup": "CREATE TABLE orders (id int);\n\nINSERT INTO order VALUES (1);\n"},
            'setup.sql, line 3: syntax error at or near "order"',
        ),
        ({"setup": "CREATE EXTENSION nosuch;\n"}, 'setup.sql, line 1: extension "nosuch" is not available'),
        ({"setup": f"{SETUP}\\i none.sql\n"}, "setup.sql, line 3: none.sql: No such file or directory"),
        (
            {"orders": "SELECT 1;\n\nSELECT\n  nothing FROM orders;\n"},
            'orders.sql, line 3: column "nothing" does not exist',
        ),
        ({"orders": "\\set x 1 / 0\nSELECT :x;\n"}, "orders.sql, line 1: division by zero"),
        (
            {"orders": "SELECT 1;\n\\set c rand(1, 2)\nSELECT :c;\n"},
            'orders.sql:2: unexpected function name (rand) in command "set"',
        ),
    ],
)
def test_a_mistake_is_named_with_file_and_line(
    suite: Callable[..., Suite], server_folder: Path, postgres_18: Build, changed: dict[str, str], said: str
) -> None:
    own = suite(**changed)
    with running(postgres_18, server_folder, ROOM) as server, pytest.raises(TidemarkError) as caught:
        loaded(own, server, postgres_18)
    assert caught.value.what.startswith(said)


def test_a_statement_that_fails_later_ends_the_step(
    suite: Callable[..., Suite], server_folder: Path, postgres_18: Build
) -> None:
    own = suite(orders="SELECT 1;\nINSERT INTO orders (id, total)\nVALUES (5000, 1);\n")
    with running(postgres_18, server_folder, ROOM) as server:
        generator = loaded(own, server, postgres_18)
        with pytest.raises(LoadError) as caught:
            generator.run(server.address, own.steps[0], WorkLimit(30, 400), Meter(server.pid))
    assert caught.value.what == (
        'orders.sql, line 2: duplicate key value violates unique constraint "orders_pkey"'
    )


@pytest.mark.parametrize("statement", ["SELECT 1 / 0;", "\\set c 1 / 0"])
def test_one_failing_client_ends_the_step_at_once(
    suite: Callable[..., Suite], server_folder: Path, postgres_17: Build, statement: str
) -> None:
    """The trial has client 0, and the other clients would go on for 25 seconds."""
    orders = f"\\if :client_id = 3\n\\sleep 1 s\n{statement}\n\\endif\nSELECT 1;\n"
    own = suite(orders=orders, report="SELECT 2;\n")
    step = own.steps[0].model_copy(update={"clients": (8,)})
    with running(postgres_17, server_folder, ROOM) as server:
        generator = loaded(own, server, postgres_17)
        began = time.monotonic()
        with pytest.raises(LoadError) as caught:
            generator.run(server.address, step, WorkLimit(25, None), Meter(server.pid))
    assert caught.value.what == "orders.sql, line 3: division by zero"
    assert time.monotonic() - began < 23


def test_what_is_wrong_without_a_server(suite: Callable[..., Suite], tmp_path: Path) -> None:
    suite()
    with pytest.raises(
        SuiteError, match=r"steps\.own\.scripts: orders\.sql, line 2: the variable :id is nev"
    ):
        suite(orders="SELECT 1;\nSELECT :id;\n")
    suite()
    (tmp_path / "setup.sql").unlink()
    with pytest.raises(SuiteError, match=r"setup: there is no file setup\.sql beside suite\.toml"):
        load_suite(f"{tmp_path}")
