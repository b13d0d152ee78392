"""The main job on two real Postgres releases: run, store, compare; all but the length as in the demo."""

import json
import math
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from build.finished_build import Build
from build.home import ROOT, Home
from suites.definition import load_suite
from suites.metrics import METRICS
from suites.sizing import this_machine
from tests.tiny_extension import NEEDS_PRELOAD, ONLY_SINCE_18, TinyExtension

pytestmark = pytest.mark.server

OLD, NEW = "postgres@17.11", "postgres@18.6"
PAIR = ("--keep-disturbed", OLD, NEW)

PLANNING = "planning:setting.plan_cache_mode=force_custom_plan"
"""The variant plans each query anew, which takes CPU time and writes nothing."""

ALWAYS = {
    *("qps", "tps", "transactions", "seconds", "errors", "wal_bytes_per_op"),
    *("table_bytes", "index_bytes", "log_file_bytes"),
    *(f"latency_{name}_ms" for name in ("mean", "p50", "p95", "p99", "p999", "max")),
    *(name for name in METRICS if re.fullmatch(r"(server|client)_(cpu|cs|read|written)\w*_per_op", name)),
    *(f"reset_{name}" for name in ("seconds", "vacuum_seconds", "checkpoint_seconds", "wal_bytes")),
    *("reset_dead_tuples_before", "reset_dead_tuples_after", "reset_dead_items", "reset_dead_items_left"),
    "reset_not_visible_share",
    *("start_seconds", "first_answer_seconds", "connect_ms"),
}
"""Metrics that every finished step of Postgres has."""


def tidemark(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "runners", *words]
    environment = {**os.environ, "TIDEMARK_HOME": str(home.path), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.slow("one whole session of two real releases, from load to verdict")
@pytest.mark.timeout(300)
def test_three_steps_on_two_releases(home: Home, postgres_17: Build, postgres_18: Build) -> None:
    _session_of_two_releases(home, ["update-index", "delete", "insert"])


@pytest.mark.deep("every step of write-heavy on both releases")
@pytest.mark.timeout(300)
def test_ten_steps_on_two_releases(home: Home, postgres_17: Build, postgres_18: Build) -> None:
    _session_of_two_releases(home, [step.name for step in load_suite("write-heavy").steps])


def _session_of_two_releases(home: Home, steps: Sequence[str]) -> None:
    chosen = [word for step in steps for word in ("--step", step)]
    ran = tidemark(home, "run", "--seconds", "1", "--repetitions", "1", "--no-exact", *chosen, *PAIR)
    assert ran.returncode == 0, ran.stderr
    assert f"{ROOT}/compare.py postgres@17.11 postgres@18.6 --session " in ran.stdout

    compared = tidemark(home, "compare", OLD, NEW, "--format", "json")
    assert compared.returncode == 2, "one repetition must not look clean"
    (contender,) = json.loads(compared.stdout)["contenders"]
    assert [step["step"] for step in contender["steps"]] == steps

    connection = sqlite3.connect(home.history)
    for version in (OLD, NEW):
        for step in steps:
            _check_run(connection, version, step)
    ratios = "SELECT count(*) FROM relative_qps WHERE base_version = ? AND relative_qps > 0"
    assert connection.execute(ratios, [OLD]).fetchone() == (len(steps),)
    _check_settings(connection)
    connection.close()


@pytest.mark.timeout(120)
def test_two_variants_of_one_version(home: Home, postgres_18: Build) -> None:
    variant = f"{NEW}#mem"
    words = ("--step", "update-index", "--seconds", "1", "--repetitions", "1", "--no-exact")
    ran = tidemark(
        home, "run", *words, "--keep-disturbed", "--with", "mem:setting.work_mem=8MB", NEW, variant
    )
    assert ran.returncode == 0, ran.stderr
    assert f"next: TIDEMARK_HOME={home.path} {ROOT}/compare.py {NEW} '{variant}' --session " in ran.stdout
    assert f"\n{variant}: work_mem = 8MB\n" in tidemark(home, "compare", NEW, variant).stdout
    connection = sqlite3.connect(home.history)
    query = """SELECT version, settings ->> 'work_mem', runs.build_id FROM runs
        JOIN configurations ON configurations.id = configuration_id ORDER BY version"""
    (plain, memory, build), (named, more, same_build) = connection.execute(query).fetchall()
    assert (plain, memory, named, more, build == same_build) == (NEW, "4096 kB", variant, "8192 kB", True)
    assert connection.execute("SELECT branch FROM nights ORDER BY 1").fetchall() == [
        ("postgres@18",),
        (variant,),
    ]
    connection.close()


@pytest.mark.timeout(180)
def test_two_refs_of_an_extension(home: Home, postgres_17: Build, tmp_path: Path) -> None:
    """The setup calls its function, so that it is created before data are loaded."""
    tiny = TinyExtension(tmp_path / "tiny")
    commits = [tiny.tagged("v1"), tiny.tagged("v2", factor=2)]
    tiny.tagged("v3", init=NEEDS_PRELOAD)
    tiny.tagged("v4", before=ONLY_SINCE_18)
    (tmp_path / "setup.sql").write_text(
        "CREATE TABLE made AS SELECT tiny_work(g) FROM generate_series(1, 9) g;\n"
    )
    (tmp_path / "work.pgbench").write_text("SELECT tiny_work(100);\n")
    files = ("--setup", str(tmp_path / "setup.sql"), "--script", str(tmp_path / "work.pgbench"))
    words = (*files, "--seconds", "2", "--repetitions", "1", "--no-exact", "--keep-disturbed")
    base, new = f"{OLD}#a", f"{OLD}#b"

    def run(*refs: str) -> subprocess.CompletedProcess[str]:
        options = [
            word for pair in refs for word in ("--with", pair.replace("REPO", f"extension.tiny={tiny.path}"))
        ]
        versions = (base, new) if len(refs) > 1 else ("--alone", base)
        return tidemark(home, "run", *words, *options, *versions)

    ran = run("a:REPO@v1", "b:REPO@v2")
    assert ran.returncode == 0, ran.stderr
    compared = tidemark(home, "compare", base, new).stdout
    for version, ref, commit in zip((base, new), ("v1", "v2"), commits, strict=True):
        assert f"\n{version}: with tiny {ref} ({commit[:12]})\n" in compared
    refused = run("a:REPO@v1", "b:REPO@v4")
    assert refused.returncode == 2
    assert f"{new} is skipped: tiny v4 for {OLD} does not compile: tiny.c:2:2: error:" in refused.stderr
    assert f"an extension is missing in all versions but {base}" in refused.stderr
    unloaded = run("a:REPO@v3")
    assert unloaded.returncode == 2
    assert "tiny must be loaded via shared_preload_libraries" in unloaded.stdout
    assert "add --with setting.shared_preload_libraries=tiny" in unloaded.stdout


@pytest.mark.timeout(300)
def test_a_build_that_only_burns_cpu_logs_as_much_per_query(home: Home, postgres_18: Build) -> None:
    """After each start, updates log the whole page for the first change of it."""
    slow = f"{NEW}#planning"
    words = ("--step", "update-index", "--seconds", "2", "--repetitions", "3", "--no-exact")
    ran = tidemark(home, "run", *words, "--keep-disturbed", "--with", PLANNING, NEW, slow)
    assert ran.returncode == 0, ran.stderr
    compared = tidemark(home, "compare", NEW, slow, "--format", "json")
    (contender,) = json.loads(compared.stdout)["contenders"]
    (step,) = contender["steps"]
    qps, wal = step["metrics"]["qps"]["ratio"], step["metrics"]["wal_bytes_per_op"]
    assert qps < 0.9, "it is to be slower"
    assert wal["ratio"] == pytest.approx(1, abs=0.02)
    assert abs(math.log(wal["ratio"]) / math.log(qps)) < 0.1
    assert wal["base"] > 300, "most of it is whole pages"


@pytest.mark.timeout(300)
def test_two_install_prefixes(
    home: Home, postgres_17: Build, postgres_18: Build, server_folder: Path
) -> None:
    """One is a copy elsewhere, as `make install` into a folder of one's own makes it."""
    elsewhere, again = server_folder / "pg", server_folder / "again"
    for folder in (elsewhere, again):
        shutil.copytree(postgres_17.prefix, folder, symlinks=True)
    words = (
        "--suite",
        "pgbench",
        "--step",
        "select-only",
        "--seconds",
        "1",
        "--repetitions",
        "1",
        "--no-exact",
    )
    old, new = f"postgres@old={elsewhere}", f"postgres@new={postgres_18.prefix}"
    ran = tidemark(home, "run", *words, "--keep-disturbed", old, new)
    assert ran.returncode == 0, ran.stderr
    found = re.search(
        r"^next: .*/compare\.py (postgres@old=[0-9a-f]{12}) (postgres@new=[0-9a-f]{12}) ", ran.stdout, re.M
    )
    assert found is not None, ran.stdout
    for names in (found.groups(), ("postgres@old", "postgres@new"), (old, new)):
        compared = tidemark(home, "compare", *names, "--format", "json")
        (contender,) = json.loads(compared.stdout)["contenders"]
        assert [step["step"] for step in contender["steps"]] == ["select-only"]

    same = tidemark(home, "run", *words, found[1], f"postgres@same={again}")
    assert same.returncode == 2
    assert f"{found[1]} and postgres@same={found[1][-12:]} have the same programs" in same.stderr
    (again / "lib" / "plpgsql.so").chmod(0)
    unreadable = tidemark(home, "run", *words, "--alone", f"postgres@same={again}")
    assert (unreadable.returncode, str(again / "lib" / "plpgsql.so") in unreadable.stderr) == (2, True)
    with sqlite3.connect(home.history) as connection:
        query = """SELECT branch, release, source_kind, compiler LIKE '%cc%',
            manifest ->> '$.recipe.configure' FROM nights
            JOIN builds ON builds.id = build_id ORDER BY release"""
        rows = connection.execute(query).fetchall()
    assert [row[:4] for row in rows] == [
        ("postgres@old", "17.11", "install", 1), ("postgres@new", "18.6", "install", 1)
    ]  # fmt: skip
    assert all("--with-icu" in row[4] for row in rows)


def _check_run(connection: sqlite3.Connection, version: str, step: str) -> None:
    values = _values(connection, version, step)
    assert values.keys() >= ALWAYS, f"{version} {step} lacks {ALWAYS - values.keys()}"
    assert values["errors"] == 0
    assert values["reset_dead_tuples_after"] <= 10
    assert 0 < values["server_cpu_us_per_op"] < 1e5
    assert 0 < values["client_cpu_us_per_op"] < values["server_cpu_us_per_op"] * 5
    assert values["latency_p50_ms"] <= values["latency_p99_ms"] <= values["latency_max_ms"] * 1.03
    # Of two servers that take turns the machine's totals would belong to nobody.
    assert not [name for name in values if name.startswith("machine_") and name.endswith("_per_op")]
    assert 0 <= values["machine_steal_share"] <= 1
    assert values["others_cpu_share"] >= 0
    if step != "insert":
        assert values["reset_dead_tuples_before"] >= 0
    assert values["wal_bytes_per_op"] > 20


@pytest.mark.alone
@pytest.mark.skipif(this_machine().cores > 4, reason="several threads are not bound to one core")
def test_what_one_core_did_adds_up(home: Home, postgres_18: Build) -> None:
    """The processes' exact CPU time against the kernel's ticks, and both against the clock.

    Where client and server wake each other up across idle cores, ticks miss up to half of their time, as
    most of it lies between two ticks. On one busy core the two ways of counting have to agree. With the clock
    they agree roughly: the CPU time is that of the whole round, the rate that of its steady part, and on cold
    caches the first tenth costs more; from below, another program may have had part of the core.
    """
    steps = ("--step", "update-one", "--step", "insert")
    short = ("--seconds", "2", "--repetitions", "1", "--no-exact", "--keep-disturbed")
    ran = tidemark(home, "run", *short, *steps, "--alone", NEW)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"\nupdate-one: [0-9.,]+ queries/s, the mean of 1 round\ninsert: ", ran.stdout)
    connection = sqlite3.connect(home.history)
    for step in ("update-one", "insert"):
        values = _values(connection, NEW, step)
        both = values["server_cpu_us_per_op"] + values["client_cpu_us_per_op"]
        assert both <= 1.1 * values["machine_cpu_us_per_op"]
        assert 0.2e6 < both * values["qps"] < 1.3e6
    connection.close()


def _values(connection: sqlite3.Connection, version: str, step: str) -> dict[str, float]:
    query = """SELECT metric, value FROM runs JOIN measurements ON run_id = runs.id
               WHERE version = ? AND step = ? AND status = 'finished'"""
    return dict(connection.execute(query, [version, step]))


def _check_settings(connection: sqlite3.Connection) -> None:
    query = """SELECT DISTINCT version, settings
               FROM runs JOIN configurations ON configurations.id = configuration_id"""
    settings = {version: json.loads(text) for version, text in connection.execute(query)}
    assert settings[NEW]["io_method"] == "sync"
    assert "io_method" not in settings[OLD]
    for setting in settings.values():
        assert setting["synchronous_commit"] == "off"
        assert setting["data_checksums"] == "on"
        assert setting["listen_addresses"] == ""


@pytest.mark.timeout(120)
def test_a_session_that_is_not_resumed_is_named(home: Home, postgres_18: Build) -> None:
    words = ("run", "--step", "insert", "--seconds", "1", "--repetitions", "1", "--no-exact", "--alone", NEW)
    first = tidemark(home, *words, "--resume")
    assert first.returncode == 0, first.stderr
    assert "nothing is resumed: no session was interrupted here; a new one begins" in first.stderr
    connection = sqlite3.connect(home.history)
    began = "started_at = '2026-01-02T03:04:05.000000Z'"
    connection.execute(f"UPDATE sessions SET status = 'interrupted', {began}")
    connection.commit()
    (uid,) = connection.execute("SELECT uid FROM sessions").fetchone()
    connection.close()
    second = tidemark(home, *words, "--seconds", "2", "--resume")
    assert second.returncode == 0, second.stderr
    said = " ".join(second.stderr.split())
    assert f"session {uid} of 2026-01-02 03:04 UTC is not resumed: it began before " in said
    assert "the machine may have drifted; seconds: 1.0 then, 2.0 now; a new one begins" in said


@pytest.mark.timeout(300)
def test_pgbench_on_two_releases(home: Home, postgres_17: Build, postgres_18: Build) -> None:
    words = (
        "run",
        "--suite",
        "pgbench",
        "--seconds",
        "3",
        "--repetitions",
        "1",
        "--keep-disturbed",
        "--no-exact",  # test_counted_pgbench counts
        OLD,
        NEW,
    )
    ran = tidemark(home, *words)
    assert ran.returncode == 0, ran.stderr
    connection = sqlite3.connect(home.history)
    (tools,) = connection.execute("SELECT tools FROM sessions").fetchone()
    assert "pgbench (PostgreSQL) 18.6" in json.loads(tools)["generator"]
    query = "SELECT step, version, value FROM runs JOIN measurements ON run_id = runs.id WHERE metric = 'tps'"
    rows = connection.execute(query).fetchall()
    connection.close()
    assert {row[:2] for row in rows} == {
        (step, version) for step in ("tpcb-like", "simple-update", "select-only") for version in (OLD, NEW)
    }
    assert all(row[2] > 100 for row in rows)


@pytest.mark.slow("one whole session of InnoDB, with its reset")
@pytest.mark.timeout(300)
def test_both_engines_in_one_session(home: Home, postgres_18: Build, mysql_9: Build) -> None:
    short = ("--step", "update-index", "--seconds", "1", "--repetitions", "1")
    ran = tidemark(home, "run", *short, "--no-exact", "--keep-disturbed", NEW, "mysql@9.7.2")
    assert ran.returncode == 0, ran.stderr
    compared = tidemark(home, "compare", NEW, "mysql@9.7.2")
    assert "configuration and durability (relaxed) are part of the comparison" in " ".join(
        compared.stdout.split()
    )
    connection = sqlite3.connect(home.history)
    query = """SELECT metric, value FROM runs JOIN measurements ON run_id = runs.id
               WHERE version = 'mysql@9.7.2' AND step = 'update-index'"""
    values = dict(connection.execute(query))
    connection.close()
    reset = {"purge_seconds", "flush_seconds", "history_before", "history_after", "dirty_pages_after"}
    wanted = {f"reset_{name}" for name in reset} | {
        "wal_bytes_per_op",
        "pages_flushed_per_op",
        "server_cs_per_op",
    }
    assert wanted <= values.keys()
    assert values["reset_history_after"] <= 100
    assert values["wal_bytes_per_op"] > 100


def test_the_build_command_prints_the_prefix_only(home: Home, postgres_18: Build) -> None:
    built = tidemark(home, "build", NEW)
    assert built.returncode == 0
    assert Path(built.stdout.strip()).resolve() == postgres_18.prefix.resolve()
