"""What real servers hold after a crash: the rows that were committed, and digests that tell others apart."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from build.finished_build import Build
from suites.checking.queries import digests
from suites.counting.fixed_work import WorkTerms, crashed, work_and_crash
from suites.definition import load_suite
from suites.engine import TableDigest
from suites.generators.load import CountedLoad, CountedWork, LoadError, LongPassError, PassLength
from suites.generators.sysbench import Sysbench
from suites.keys.durability import Durability
from suites.keys.step import Step
from suites.server import Address, Server
from tests.suites import innodb_servers
from tests.suites.servers import ask, running, small

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

TERMS = WorkTerms(Durability.RELAXED, lambda part, affordable: affordable)

ODD = """CREATE TABLE "odd ""name" (id int, "a b" text, at timestamptz DEFAULT clock_timestamp());
    INSERT INTO "odd ""name" VALUES (1, NULL), (2, ''), (3, E'it''s \\\\ odd');
    CREATE TABLE parts (id int) PARTITION BY RANGE (id);
    CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10); INSERT INTO parts VALUES (1), (2);
    CREATE UNLOGGED TABLE lost AS SELECT 1; CREATE TABLE empty ()"""


def test_versions_that_hold_the_same_rows_have_equal_digests(
    server_folder: Path, postgres_17: Build, postgres_18: Build
) -> None:
    with running(postgres_17, server_folder / "1") as old, running(postgres_18, server_folder / "2") as new:
        for server in (old, new):
            for statement in ODD.split(";"):
                ask(server, statement)
        ask(new, """UPDATE "odd ""name" SET id = id""")  # another order of rows, and times of its own
        first, second = digests(old.address), digests(new.address)
        assert second.differs_from(first) == ()
        assert {name: table.rows for name, table in first.tables.items()} == {
            '"odd ""name"': 3,
            "part": 2,
            "empty": 0,
        }
        ask(new, """UPDATE "odd ""name" SET "a b" = '' WHERE id = 1""")
        ask(new, "DELETE FROM parts WHERE id = 2")
        assert digests(new.address).differs_from(first) == (
            '"odd ""name" has 3 rows with other content',
            "part has 1 rows instead of 2",
        )


def test_entries_that_an_index_lacks_are_told(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder) as server:
        ask(
            server,
            "CREATE TABLE t AS SELECT k, NULLIF(k % 3, 0) AS thirds FROM generate_series(1, 999) k",
        )
        for columns in ("k", "thirds, k", "(k + 1)", "k) WHERE (k > 5"):
            ask(server, f"CREATE INDEX ON t ({columns})")
        ask(server, "INSERT INTO t VALUES (0, 0)")
        whole = digests(server.address)
        assert whole.indexes == {"t_k_idx of t": 1000, "t_thirds_k_idx of t": 1000}
        ask(server, "DELETE FROM t WHERE k = 0")
        ask(server, "UPDATE pg_index SET indisready = false WHERE indexrelid = 't_thirds_k_idx'::regclass")
        ask(server, "INSERT INTO t VALUES (0, 0)")  # which this index does not learn of
        ask(server, "UPDATE pg_index SET indisready = true")
        lacking = digests(server.address)
        assert lacking.tables == whole.tables
        assert lacking.differs_from(whole) == ("index t_thirds_k_idx of t leads to 999 rows instead of 1000",)


def test_commits_of_relaxed_durability_are_there_after_the_crash(
    server_folder: Path, postgres_18: Build
) -> None:
    with running(postgres_18, server_folder, overrides={"wal_writer_delay": "10s"}) as server:
        ask(server, "CREATE TABLE kept (id int)")
        for number in range(50):
            ask(server, f"INSERT INTO kept VALUES ({number})")
        before = digests(server.address)
        after = crashed(server)
        assert (after.problem, after.digests and after.digests.differs_from(before)) == ("", ())
        assert after.seconds is not None
        assert "interrupted" in server.log.read_text()  # it was a crash, and no shutdown


def test_a_server_that_does_not_come_back_is_told(server_folder: Path, postgres_18: Build) -> None:
    with running(postgres_18, server_folder) as server:
        (server.data / "postgresql.auto.conf").write_text("imagined_setting = 1\n")
        found = crashed(server)
        assert (found.seconds, found.digests) == (None, None)
        assert found.problem.startswith("it does not come back after a crash: ")


def test_rows_of_mysql_have_digests_and_outlive_the_crash(server_folder: Path, mysql_9: Build) -> None:
    with innodb_servers.running(mysql_9, server_folder) as server:
        with server.connect() as connection, connection.cursor() as cursor:
            columns = "id int PRIMARY KEY, `a ``b` text, b blob, at datetime, j json, f double"
            rows = "(1, NULL, 0xff00, NOW(), '[1]', 0.5), (2, '', 'x', NOW(), NULL, 1)"
            cursor.execute(f"CREATE TABLE tidemark.odd ({columns})")
            cursor.execute(f"INSERT INTO tidemark.odd VALUES {rows}")
            cursor.execute("CREATE INDEX `of ``f` ON tidemark.odd (f, id)")
            connection.commit()
        before = digests(server.address)
        assert before.tables["odd"].rows == 2
        assert before.indexes == {"PRIMARY of odd": 2, "of `f of odd": 2}
        after = crashed(server)
        assert (after.problem, after.digests and after.digests.differs_from(before)) == ("", ())
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("UPDATE tidemark.odd SET `a ``b` = '' WHERE id = 1")
            connection.commit()
        assert digests(server.address).differs_from(before) == ("odd has 2 rows with other content",)


class Aborting:
    """A load during which the server aborts, or which fails by itself."""

    def __init__(self, server: Server, error: LoadError, *, aborts: bool) -> None:
        self.server, self.error, self.aborts = server, error, aborts

    def count(self, address: Address, step: Step, work: CountedWork) -> CountedLoad:
        if self.aborts:
            os.kill(self.server.pid, signal.SIGABRT)
        raise self.error


def test_a_server_that_aborts_in_the_work_has_failed_and_a_slow_one_has_not(
    server_folder: Path, postgres_18: Build
) -> None:
    step = load_suite("write-heavy").select(("delete",))[0]
    lost, slow = LoadError("connection lost"), LongPassError("the work was ended after 60 s")
    with running(postgres_18, server_folder) as server:
        server.keep()

        def problem(error: LoadError, *, aborts: bool = False) -> str:
            generator: Any = Aborting(server, error, aborts=aborts)
            found = work_and_crash(server, generator, step, TERMS)
            assert (found.seconds, found.digests) == (None, None)
            return found.problem

        assert problem(lost, aborts=True).startswith(
            f"{postgres_18.version} died during the fixed work of delete: killed by SIGABRT"
        )
        assert problem(lost).startswith("the fixed work of delete fails: connection lost")
        with pytest.raises(LongPassError):
            problem(slow)
        with (server.loaded / "global" / "pg_control").open("r+b") as control:
            control.truncate(100)
        assert "pg_control" in problem(lost)


RETRIED = """CREATE SEQUENCE updates;
    CREATE FUNCTION fail_sometimes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
      IF nextval('updates') % 7 = 0 THEN RAISE 'planted' USING ERRCODE = 'serialization_failure'; END IF;
      RETURN COALESCE(NEW, OLD); END $$;
    CREATE TRIGGER fails BEFORE UPDATE OR DELETE ON sbtest1 FOR EACH ROW EXECUTE FUNCTION fail_sometimes()"""


def test_a_transaction_that_is_rolled_back_is_the_same_when_it_is_begun_again(
    server_folder: Path, postgres_18: Build
) -> None:
    """Else a version that rolls transactions back would seem to lose rows."""
    suite, sizes = load_suite("write-heavy"), small(rows=2000)
    generator = Sysbench(suite, sizes)
    for step in suite.select(("delete", "write-only")):
        held: list[TableDigest] = []
        for setup in ("SELECT 1", RETRIED):
            with running(postgres_18, server_folder / f"{step.name}{len(held)}") as server:
                generator.load(server.address)
                ask(server, setup)
                work = CountedWork("SELECT 1", 60.0, lambda seconds: PassLength(10, 100))
                generator.count(server.address, step, work)
                held.append(digests(server.address).tables["sbtest1"])
        assert held[0] == held[1]
