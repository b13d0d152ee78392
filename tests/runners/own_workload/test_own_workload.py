"""A suite from a user's own files: what the command line makes of them, refuses, and measures."""

import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from build.accounts import SERVER_USER
from build.home import ROOT, Home
from build.version import Engine, parse_version
from history.rendering.commands import run_again
from runners.cli import main, parser
from runners.commands.run import request_of
from runners.measuring.request import Request
from runners.own_workload.suite_folder import save, suite_of
from runners.trying.command import request_of as trial_of
from runners.trying.sides import Sides
from runners.trying.trial import counted_request
from suites.definition import load_suite, own_suites
from suites.sizing import Hardware, sizes
from tests.history.test_run_again import stored

OLD, NEW = "postgres@17.11", "postgres@18.6"

SETUP = """CREATE TABLE orders (id bigserial PRIMARY KEY, customer int NOT NULL);
INSERT INTO orders (customer)
SELECT n % 100 FROM generate_series(1, 2000) n;
"""
ORDERS = "\\set customer random(1, :most)\nINSERT INTO orders (customer) VALUES (:customer);\n"
REPORT = "SELECT count(*) FROM orders WHERE customer = 7;\n"

SQL = ("--setup", "setup.sql", "--generator", "queries")
TABLES = """local parts = require "lib.parts"
sysbench.cmdline.options = {rows = {"Rows", 10}, kind = {"What is done", ""}}
function prepare() parts.fill(sysbench.opt.rows) end
function event() end
"""
PARTS = """return {fill = function(rows) sysbench.sql.driver():connect():query("SELECT " .. rows) end}
"""

MINE = (
    "--setup",
    "setup.sql",
    "--script",
    "orders.pgbench@9",
    "--script",
    "report.pgbench",
    "--define",
    "most=9",
)


@pytest.fixture(autouse=True)
def _own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name, text in (("setup.sql", SETUP), ("orders.pgbench", ORDERS), ("report.pgbench", REPORT)):
        (tmp_path / name).write_text(text)
    (tmp_path / "lib").mkdir()
    for name, text in (("tables.lua", TABLES), ("lib/parts.lua", PARTS), ("beside.lua", "")):
        (tmp_path / name).write_text(text)


def requested(*words: str) -> Request:
    return request_of(parser().parse_args(["run", *words, OLD, NEW]))


def test_a_suite_is_made_of_files() -> None:
    request = requested(*MINE, "--clients", "16", "--protocol", "simple", "--connect", "--rate", "50")
    (step,) = request.steps
    assert (step.name, step.scripts) == ("own@16", ("orders.pgbench@9", "report.pgbench@1"))
    assert (step.rate, step.variables) == (50, {"most": "9"})
    assert step.options == {"protocol": "simple", "connect": True}
    assert (request.suite.setup, request.suite.scale) == ("setup.sql", None)
    assert {file.read_text() for file in request.suite.folder.iterdir()} >= {SETUP, ORDERS, REPORT}


def test_the_name_follows_from_the_content(tmp_path: Path) -> None:
    first = requested(*MINE).suite
    assert requested(*MINE).suite == first
    moved = tmp_path / "moved"
    moved.mkdir()
    (tmp_path / "setup.sql").rename(moved / "setup.sql")
    assert requested("--setup", "moved/setup.sql", *MINE[2:]).suite == first
    (moved / "setup.sql").write_text(SETUP + "ANALYZE;\n")
    assert requested("--setup", "moved/setup.sql", *MINE[2:]).suite.name != first.name
    assert {first.name} < set(own_suites())


def test_a_folder_that_somebody_changed_is_written_again() -> None:
    suite = requested(*MINE).suite
    (suite.folder / "orders.pgbench").write_text("SELECT 1;")
    assert requested(*MINE).suite.files == suite.files


def test_tables_of_pgbench() -> None:
    plain = requested("--script", "report.pgbench").suite
    assert plain.setup is None
    assert plain.profile("short").scale == (1, 1)
    assert requested("--script", "report.pgbench", "--scale", "20").suite.profile("smoke").scale == (20, 20)


def test_the_command_that_measures_it_again_is_accepted() -> None:
    request = requested(*MINE, "--clients", "16")
    *_, line = run_again(stored(request))
    program, *words = shlex.split(line)
    assert program == "./tidemark"
    again = request_of(parser().parse_args(words))
    assert (again.suite, again.steps, again.profile) == (request.suite, request.steps, request.profile)


def test_what_was_tried_is_kept_by_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    tried = requested(*MINE).suite
    assert main(["suite", "save", tried.name, "orders"]) == 0
    kept = load_suite("orders")
    assert (kept.name, kept.steps, kept.setup) == ("orders", tried.steps, tried.setup)
    assert requested("--suite", "orders").suite == kept
    assert main(["suite", "list"]) == 0
    listed = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert listed["write-heavy"].split()[1] == str(len(load_suite("write-heavy").steps))
    assert "setup.sql, orders.pgbench@9" in listed[tried.name]
    assert main(["suite", "save", tried.name, "orders"]) == 2
    assert main(["suite", "save", "pgbench", "other"]) == 2
    assert "pgbench was not made by run --script" in capsys.readouterr().err


def test_a_script_of_sysbench_and_its_modules() -> None:
    words = ("--script", "tables.lua", "--define", "rows=30", "--define", "kind=a b", "--clients", "2,4")
    request = requested(*words, "--setup", "setup.sql", "--rate", "9")
    suite = request.suite
    assert (suite.generator, suite.script, suite.setup) == ("plain-sysbench", "tables.lua", "setup.sql")
    assert suite.engines == tuple(Engine)
    files = {str(path.relative_to(suite.folder)) for path in suite.folder.rglob("*.*")}
    assert files == {"suite.toml", "tables.lua", "lib/parts.lua", "setup.sql"}
    step, _ = request.steps
    assert (step.name, step.rate, step.options) == ("own@2", 9, {"rows": 30, "kind": "a b"})
    kept = save(suite.name, "mine")
    assert (kept / "lib/parts.lua").read_text() == PARTS


def test_files_of_sql_are_steps() -> None:
    words = ["--setup", "setup.sql", "--script", "report.pgbench", "--script", "1 Sum.sql"]
    Path("1 Sum.sql").write_text("SELECT 1; UPDATE orders SET customer = 1;\n")
    by_choice = requested("--generator", "queries", *words).suite
    request = request_of(parser().parse_args(["run", *words, "mysql@9.7.2", "mariadb@11.8.6"]))
    assert request.suite == by_choice
    assert (by_choice.generator, by_choice.plans, by_choice.engines) == ("queries", True, tuple(Engine))
    report, total = request.steps
    assert (report.name, report.options, report.reads_only) == ("report", {"file": "report.pgbench"}, True)
    assert (total.name, total.options, total.reads_only) == ("q1-sum", {"file": "1 Sum.sql"}, False)


def test_any_file_name_is_quoted(tmp_path: Path) -> None:
    name = 'o"r\\d é\n.sql'
    (tmp_path / name).write_text("SELECT 1;")
    suite = requested("--script", name).suite
    assert suite.steps[0].scripts == (f"{name}@1",)
    saved = save(suite.name, "odd")
    assert tomllib.loads((saved / "suite.toml").read_text())["steps"][0]["scripts"] == [f"{name}@1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--script", "orders.pgbench"], "orders.pgbench, line 1: the variable :most is never set"),
        (["--script", "none.pgbench"], "none.pgbench cannot be read: No such file or directory"),
        (["--script", "report.pgbench@x"], "'report.pgbench@x' must be FILE@WEIGHT with a weight from 1"),
        (["--script", "report.pgbench", "--script", "./report.pgbench"], "two files are called report.pg"),
        (["--script", "report.pgbench", "--setup", "no.sql"], "no.sql cannot be read: No such file or di"),
        (["--script", "report.pgbench", "--define", "a"], "'a' must be NAME=VALUE"),
        (["--script", "report.pgbench", "--suite", "read"], "--script makes a suite of its own"),
        (["--setup", "setup.sql"], "--setup needs a workload"),
        (["--load", "setup.sql"], "--load needs a workload"),
        (["--script", "report.pgbench", "--load", "no.dump"], "no.dump cannot be read: No such file or di"),
        (["--script", "report.pgbench", "--load", "home"], "the folder home is no dump of pg_dump: it has"),
        (["--script", "report.pgbench", "--load", "a.gz"], "a.gz is compressed with gzip: unpack it first"),
        (["--script", "report.pgbench", "--load", "fill"], "fill is a program that may not be executed"),
        (
            ["--script", "report.pgbench", "--setup", "setup.sql", "--partitions", "8"],
            "the tables that are partitioned are pgbench's own",
        ),
        (["--script", "tables.lua", "--define", "row=3"], "tables.lua: it has no option row; did you mean"),
        (["--script", "tables.lua", "--define", "threads=3"], "threads: not an option of the script; the n"),
        (["--script", "tables.lua", "--scale", "3"], "--scale is not for tables.lua"),
        (
            ["--script", "tables.lua", "--script", "report.pgbench"],
            "sysbench runs one script, and knows no w",
        ),
        (["--script", "tables.lua@2"], "sysbench runs one script, and knows no weights"),
        (["--script", "lib/parts.lua"], "parts.lua does not define event"),
        (
            [*SQL, "--script", "orders.pgbench"],
            "orders.pgbench, line 1: \\set is no SQL, but a command of psql,",
        ),
        ([*SQL, "--script", "report.pgbench@2"], "report.pgbench has a weight, but each file of SQL is a st"),
        ([*SQL, "--script", "report.pgbench", "--rate", "3"], "--rate is not for report.pgbench"),
        ([*SQL[2:], "--script", "report.pgbench"], "report.pgbench needs tables"),
        ([*SQL, "--script", "tables.lua"], "tables.lua is of sysbench"),
    ],
)
def test_mistakes_are_said_before_anything_is_done(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x08")
    (tmp_path / "fill").write_text("#!/bin/sh\n")
    assert main(["run", *words, OLD, NEW]) == 2
    assert f"tidemark: {said}" in capsys.readouterr().err
    assert not own_suites()


@pytest.mark.server
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("postgres_17", "postgres_18")
def test_two_files_and_a_command_are_a_comparison(home: Home, tmp_path: Path) -> None:
    def tidemark(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TIDEMARK_HOME": str(home.path), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-P", "-m", "runners", *words]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    quick = ("--clients", "4", "--seconds", "1", "--repetitions", "1", "--keep-disturbed", "--no-exact")
    ran = tidemark("run", *MINE, *quick, OLD, NEW)
    assert ran.returncode == 0, ran.stderr
    name = next(line.split()[1].rstrip(";") for line in ran.stdout.splitlines() if line.startswith("suite: "))
    assert f"suite: {name}; to keep it: ./tidemark suite save {name} NAME" in ran.stdout
    compared = tidemark("compare", OLD, NEW, "--suite", name)
    assert "\nown@4 " in compared.stdout
    again = tidemark("run", "--suite", name, *quick, "--alone", NEW)
    assert again.returncode == 0, again.stderr

    (tmp_path / "setup.sql").write_text(SETUP + "INSERT INTO order VALUES (1);\n")
    failed = tidemark("run", *MINE, *quick, OLD, NEW)
    assert failed.returncode == 2
    assert 'setup.sql, line 4: syntax error at or near "order"' in failed.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--script", "orders.pgbench"], "orders.pgbench, line 1: the variable :most is never set"),
        (["--script", "report.pgbench", "--box", "one"], "a script of your own is not run on a box"),
    ],
)
def test_a_try_says_mistakes_before_anything_is_fetched(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["try", "topic", "--git", "/nowhere", *words]) == 2
    assert f"tidemark: {said}" in capsys.readouterr().err


def test_a_try_counts_the_first_level_of_own_files() -> None:
    words = ["try", "topic", *MINE, "--clients", "4,16"]
    arguments = parser().parse_args(words)
    sides = Sides(parse_version(OLD), parse_version(NEW), "")
    asked = trial_of(arguments, sides, load_suite(suite_of(arguments, {Engine.POSTGRES})))
    assert [step.name for step in asked.steps] == ["own@4", "own@16"]
    assert [step.name for step in counted_request(asked).steps] == ["own@4"]


def test_data_by_a_dump_are_part_of_the_suite(tmp_path: Path) -> None:
    dump = tmp_path / "shop"
    (dump / "parts").mkdir(parents=True)
    (dump / "toc.dat").write_bytes(b"PGDMP and what follows")
    (dump / "parts/3001.dat").write_text("1\n")
    words = ("--load", "shop", "--setup", "setup.sql", "--script", "report.pgbench")
    suite = requested(*words).suite
    assert (suite.load, suite.setup, suite.scale) == ("shop", "setup.sql", None)
    assert requested(*words).suite == suite
    (dump / "parts/3001.dat").write_text("2\n")
    assert requested(*words).suite.name != suite.name
    assert (save(suite.name, "bazaar") / "shop/parts/3001.dat").read_text() == "1\n"
    assert sizes(suite, suite.profile("smoke"), Hardware(2, 2**30)).data_loaded == "shop, setup.sql"


def test_sysbench_and_sql_take_data_of_any_kind_that_their_engines_have(tmp_path: Path) -> None:
    (tmp_path / "shop.sql").write_text("CREATE TABLE orders (customer int);\n")
    (tmp_path / "shop.dump").write_bytes(b"PGDMP and what follows")
    by_sql = requested("--load", "shop.sql", "--script", "tables.lua").suite
    assert (by_sql.load, by_sql.setup, by_sql.engines) == ("shop.sql", None, tuple(Engine))
    restored = requested("--load", "shop.dump", "--script", "tables.lua").suite
    assert (restored.load, restored.engines) == ("shop.dump", (Engine.POSTGRES,))
    plain = requested("--load", "shop.sql", *SQL[2:], "--script", "report.pgbench").suite
    assert (plain.generator, plain.load, plain.engines) == ("queries", "shop.sql", tuple(Engine))


def test_a_program_stays_executable(tmp_path: Path) -> None:
    (tmp_path / "fill").write_text("#!/bin/sh\n")
    (tmp_path / "fill").chmod(0o755)
    suite = requested("--load", "fill", "--script", "report.pgbench").suite
    assert os.access(suite.folder / "fill", os.X_OK)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's clients run as another user")
def test_the_copies_of_private_files_are_read_by_the_user_of_the_clients_alone(tmp_path: Path) -> None:
    dump = tmp_path / "shop"
    dump.mkdir(mode=0o700)  # as pg_dump makes it
    (dump / "toc.dat").write_bytes(b"PGDMP and what follows")
    for file in (dump / "toc.dat", tmp_path / "report.pgbench"):
        file.chmod(0o600)
    folder = requested("--load", "shop", "--script", "report.pgbench").suite.folder
    copies = [folder / "shop", folder / "shop/toc.dat", folder / "report.pgbench"]
    assert [f"{copy.stat().st_mode & 0o777:o}" for copy in copies] == ["750", "640", "640"]
    assert {copy.group() for copy in copies} == {SERVER_USER}


def test_partitions_of_pgbenchs_own_tables() -> None:
    words = ("--script", "report.pgbench", "--partitions", "8", "--partition-method", "hash")
    suite = requested(*words).suite
    assert suite.initialize is not None
    assert suite.initialize.words == ("--partitions=8", "--partition-method=hash")
