"""A real night, killed in the middle: the next call goes on, nothing is lost, nothing is measured twice."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from build.finished_build import Build
from build.home import ROOT, Home
from tests.runners.small_plan import small_plan

pytestmark = pytest.mark.server

PATIENCE = 300

PLAN = small_plan(["update-index", "insert"], "most_new_issues = 1", rounds=2, exact=False)


def start(home: Home, plan: Path, *words: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "TIDEMARK_HOME": str(home.path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "runners", *words]
    if words[:1] == ("nightly",):
        command += ["--plan", str(plan)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/"
    )


def runs(home: Home) -> list[tuple[object, ...]]:
    try:
        with sqlite3.connect(f"file:{home.history}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT id, version, step, repetition FROM runs ORDER BY id").fetchall()
    except sqlite3.Error:
        return []


def test_a_night_that_was_killed_goes_on(
    home: Home, tmp_path: Path, postgres_17: Build, postgres_18: Build
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    with start(home, plan, "nightly") as night:
        deadline = time.monotonic() + PATIENCE
        while not runs(home):
            assert night.poll() is None, night.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        night.kill()
        night.communicate()
    before = runs(home)
    assert len(before) < 8
    status = start(home, plan, "status", "--format", "json")
    said, _ = status.communicate(timeout=PATIENCE)
    assert (status.returncode, json.loads(said)["state"]) == (1, "died")

    with start(home, plan, "nightly") as night:
        said, errors = night.communicate(timeout=PATIENCE)
    assert night.returncode in (0, 1), errors
    assert "resumed after" in errors
    assert "Box here: 1 of 1 version measured." in said
    after = runs(home)
    assert after[: len(before)] == before
    assert sorted(row[1:] for row in after) == sorted(
        (version, step, round_)
        for version in ("postgres@17.11", "postgres@18.6")
        for step in ("update-index", "insert")
        for round_ in (1, 2)
    )
    with start(home, plan, "nightly") as night:
        said, errors = night.communicate(timeout=PATIENCE)
    assert night.returncode == 0, errors
    assert "Box here: nothing is new." in said
    assert runs(home) == after
