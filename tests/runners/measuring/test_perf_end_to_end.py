"""`run --perf` and `profile diff` on two real Postgres releases, and what happens without perf."""

import json
import os
import sqlite3
from pathlib import Path

import pytest

from build.finished_build import Build
from build.home import Home
from suites.profiling.perf import PerfError, find_perf
from tests.runners.measuring.test_end_to_end import NEW, OLD, tidemark

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]
RUN = (
    "run",
    "--seconds",
    "1",
    "--repetitions",
    "1",
    "--no-exact",
    "--keep-disturbed",
    "--step",
    "update-index",
)


def test_profiles_of_two_releases(home: Home, postgres_17: Build, postgres_18: Build) -> None:
    try:
        perf = find_perf()
    except PerfError as error:
        pytest.skip(str(error))
    ran = tidemark(home, *RUN, "--perf", OLD, NEW)
    assert ran.returncode == 0, ran.stderr
    words = ("profile", "diff", OLD, NEW, "--step", "update-index", "--format", "json", "--limit", "5000")
    shown = tidemark(home, *words)
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    assert found["base_us_per_query"] > 1
    assert found["quality"]["contender"]["samples"] > 100
    assert found["quality"]["contender"]["unknown"] < 0.05
    assert {"heap_update", "XLogInsertRecord"} <= {function["function"] for function in found["functions"]}
    for file in found["flame_graphs"]:
        assert "heap_update" in Path(file).read_text()
    connection = sqlite3.connect(home.history)
    assert connection.execute("SELECT DISTINCT event FROM profiles").fetchall() == [(perf.description,)]
    query = "SELECT max(length(stacks)) FROM profiles"
    assert connection.execute(query).fetchone()[0] < 200_000
    connection.close()


def test_without_perf_a_run_goes_on(
    home: Home, postgres_18: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A perf that may not sample: what was asked for is measured, and the way out is said."""
    forbidden = tmp_path / "perf"
    forbidden.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exit\n"
        "printf 'Error:\\nAccess to monitoring is limited.\\n' >&2\nexit 255\n"
    )
    forbidden.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    ran = tidemark(home, *RUN, "--perf", "--alone", NEW)
    assert ran.returncode == 0, ran.stderr
    assert "no profiles: perf may not sample here" in ran.stderr
    assert "./tidemark check --fix" in ran.stderr
    shown = tidemark(home, "profile", "show", NEW, "--step", "update-index")
    assert shown.returncode == 2
    assert "has no profile" in shown.stderr
