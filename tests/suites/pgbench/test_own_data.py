"""Data by a dump, a program or SQL on a real server: what is loaded in which order, and how it fails."""

import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from build.finished_build import Build
from suites.definition import Suite, load_suite
from suites.generators.load import LoadError
from suites.generators.pgbench.client import Pgbench
from suites.postgres.server import PostgresServer
from suites.processes import run
from suites.server import SetupError, postgres_port
from tests.suites.pgbench.test_own_schema import FILES, ROOM, TOML
from tests.suites.servers import ask, running, value

pytestmark = pytest.mark.server

PROGRAM = """#!/bin/sh
echo "filling $PGDATABASE"
psql -qc "CREATE TABLE orders (id bigserial PRIMARY KEY, customer int, total int)"
psql -qc "INSERT INTO orders (customer, total) SELECT 1, n FROM generate_series(1, 70) n"
"""


@pytest.fixture(scope="module")
def server(
    server_folders: Callable[[], AbstractContextManager[Path]], postgres_17: Build
) -> Iterator[PostgresServer]:
    with server_folders() as folder, running(postgres_17, folder, ROOM) as started:
        yield started


@pytest.fixture(autouse=True)
def _empty(server: PostgresServer) -> None:
    ask(server, "DROP SCHEMA public CASCADE")
    ask(server, "DROP EXTENSION IF EXISTS pg_prewarm")
    ask(server, "CREATE SCHEMA public AUTHORIZATION tidemark")


def own(folder: Path, load: str, setup: str = "", toml: str = TOML) -> Suite:
    """A suite that fills its database from the file `load` in `folder`, and then by SQL."""
    files = {**FILES, "setup.sql": setup}
    files["suite.toml"] = toml.replace("setup =", f'load = "{load}"\nsetup =')
    for name, text in files.items():
        (folder / name).write_text(text)
    folder.chmod(0o755)
    return load_suite(f"{folder}")


def loaded(suite: Suite, server: PostgresServer) -> None:
    Pgbench(suite, ROOM, server.build).load(server.address)


def dumped(server: PostgresServer, to: Path, form: str) -> Path:
    """A dump of a table with 300 rows, one of which looks like a setting, and of an extension."""
    ask(server, "CREATE EXTENSION pg_prewarm")
    columns = "id serial, customer int, total int, note text"
    ask(server, f"SET ROLE {server.address.user}; CREATE TABLE orders ({columns})")
    ask(server, "INSERT INTO orders (customer, total) SELECT n % 50, n FROM generate_series(1, 299) n")
    ask(server, "INSERT INTO orders (note) VALUES ('SET transaction_timeout = 0;')")
    at = [f"--host={server.address.socket.parent}", f"--port={postgres_port(server.address.socket)}"]
    words = [f"--username={server.address.user}", f"--format={form}", f"--file={to}", server.address.database]
    run([server.build.program("pg_dump"), *at, *words], what="pg_dump")
    if to.is_dir():
        to.chmod(0o755)  # pg_dump makes it 0700
    ask(server, "DROP TABLE orders")
    ask(server, "DROP EXTENSION pg_prewarm")
    return to


@pytest.mark.parametrize("form", ["custom", "directory", "tar", "plain"])
def test_a_dump_is_restored_before_the_setup(server: PostgresServer, tmp_path: Path, form: str) -> None:
    dumped(server, tmp_path / "shop.dump", form)
    loaded(own(tmp_path, "shop.dump", "CREATE INDEX late ON orders (customer);"), server)
    assert value(server, "SELECT count(*) FROM orders") == 300
    assert value(server, "SELECT count(*) FROM orders WHERE note = 'SET transaction_timeout = 0;'") == 1
    assert value(server, "SELECT count(*) FROM pg_indexes WHERE indexname = 'late'") == 1


def test_a_dump_is_restored_into_an_older_server(
    server: PostgresServer, tmp_path: Path, server_folder: Path, postgres_13: Build
) -> None:
    dumped(server, tmp_path / "shop.dump", "custom")
    suite = own(tmp_path, "shop.dump")
    with running(postgres_13, server_folder, ROOM) as old:
        Pgbench(suite, ROOM, server.build).load(old.address)
        assert value(old, "SELECT count(*) FROM orders") == 300


def test_a_dump_of_a_newer_version_is_named(server: PostgresServer, tmp_path: Path) -> None:
    """The bytes after the five letters of the format are its version."""
    dump = dumped(server, tmp_path / "shop.dump", "custom")
    content = bytearray(dump.read_bytes())
    content[6] = 99
    dump.write_bytes(content)
    with pytest.raises(SetupError) as caught:
        loaded(own(tmp_path, "shop.dump"), server)
    release = server.build.release
    assert caught.value.what == (
        f"shop.dump cannot be read by pg_restore {release}: unsupported version (1.99) in file header"
    )
    assert caught.value.hint.startswith(f"it was made by a newer pg_dump than {release}: add a version")


def test_an_extension_that_is_missing_is_named(server: PostgresServer, tmp_path: Path) -> None:
    """The table of contents of a dump is not compressed."""
    dump = dumped(server, tmp_path / "shop.dump", "custom")
    dump.write_bytes(dump.read_bytes().replace(b"pg_prewarm", b"pg_no_such"))
    with pytest.raises(SetupError) as caught:
        loaded(own(tmp_path, "shop.dump"), server)
    assert caught.value.what.startswith('shop.dump: extension "pg_no_such" is not available')
    assert "(in: CREATE EXTENSION IF NOT EXISTS pg_no_such WITH SCHEMA public;)" in caught.value.what
    assert caught.value.hint.startswith("the server's build has no extension pg_no_such: add --with exten")
    (tmp_path / "more.sql").write_text("CREATE EXTENSION vector;")
    with pytest.raises(SetupError) as caught:
        loaded(own(tmp_path, "more.sql"), server)
    assert "no extension vector" in caught.value.hint


def test_a_program_fills_the_database(server: PostgresServer, tmp_path: Path) -> None:
    program = tmp_path / "fill"
    program.write_text(PROGRAM)
    program.chmod(stat.S_IRWXU)
    suite = own(tmp_path, "fill", "INSERT INTO orders (total) VALUES (0);")
    loaded(suite, server)
    assert value(server, "SELECT count(*) FROM orders") == 71
    program.write_text("#!/bin/sh\necho reading rows.csv\necho no such file >&2\nexit 3\n")
    with pytest.raises(SetupError) as caught:
        loaded(suite, server)
    assert caught.value.what == ("fill failed with exit status 3; it said:\nreading rows.csv\nno such file")
    assert caught.value.where == str(program)
    program.write_text("#!/bin/sh\npsql -c 'CREATE EXTENSION vector' -v ON_ERROR_STOP=1\n")
    with pytest.raises(SetupError) as caught:
        loaded(suite, server)
    assert caught.value.hint.startswith(
        "the server's build has no extension vector: add --with extension.vector=REPO@REF"
    )
    program.write_text("#!/no/such/interpreter\n")
    with pytest.raises(SetupError, match="fill cannot be started: No such file or directory"):
        loaded(suite, server)


def test_tables_of_pgbench_are_partitioned(server: PostgresServer, tmp_path: Path) -> None:
    """They come before the file of data."""
    sized = TOML.replace("buffer_", "rows = [1, 1]\nbuffer_").replace(
        "setup =", 'bytes_per_row = 100\ninitialize = { partitions = 3, partition_method = "hash" }\nsetup ='
    )
    (tmp_path / "more.sql").write_text("CREATE VIEW parts AS SELECT * FROM pgbench_accounts_3;\n")
    loaded(own(tmp_path, "more.sql", FILES["setup.sql"], sized), server)
    assert value(server, "SELECT count(*) FROM pg_partition_tree('pgbench_accounts') WHERE isleaf") == 3
    assert value(server, "SELECT partstrat FROM pg_partitioned_table") == "h"
    assert value(server, "SELECT count(*) > 20000 FROM parts")


WITHOUT_SETUP = TOML.replace('setup = "setup.sql"', 'load = "shop.dump"')


def test_a_mistake_in_a_script_is_named_after_the_dump(server: PostgresServer, tmp_path: Path) -> None:
    dumped(server, tmp_path / "shop.dump", "directory")
    suite = own(tmp_path, "shop.dump", toml=WITHOUT_SETUP)
    (tmp_path / "report.sql").write_text("SELECT total,\n  price FROM orders;\n")
    with pytest.raises(LoadError, match=r"^report.sql, line 1: column \"price\" does not exist"):
        loaded(suite, server)
    assert value(server, "SELECT count(*) FROM orders") == 300
