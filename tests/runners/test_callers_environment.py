"""`./tidemark run` of a caller whose environment is hostile, and full of secrets."""

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
from tests.runners.onlooker import Onlooker

pytestmark = pytest.mark.server

PLAIN, VARIANT = "postgres@18.6", "postgres@18.6#v"

SECRETS = {
    "PGPASSWORD": "marlin7-a",
    "AWS_SECRET_ACCESS_KEY": "marlin7-b",
    "http_proxy": "http://me:marlin7-c@192.0.2.1:3128",
    "MYSQL_PWD": "marlin7-d",
    "DEPLOY_KEY": "marlin7-e",
    "SOMEBODYS_TOKEN": "marlin7-f",
}

HOSTILE = {
    "PGOPTIONS": "-c work_mem=64kB",
    "PGSERVICE": "nowhere",
    "PGSSLMODE": "verify-full",
    "PGHOSTADDR": "192.0.2.1",
    "PGTZ": "Asia/Kathmandu",
    "MALLOC_ARENA_MAX": "1",
    "LUA_PATH": "/nowhere/?.lua",
    "TMPDIR": "/nowhere",
}


@pytest.mark.timeout(120)
def test_settings_hold_and_secrets_stay(home: Home, postgres_18: Build) -> None:
    words = ("--step", "update-index", "--seconds", "1", "--repetitions", "1", "--no-exact")
    asked = (*words, "--keep-disturbed", "--with", "v:setting.work_mem=8MB", PLAIN, VARIANT)
    command = [sys.executable, "-P", "-m", "runners", "run", *asked]
    told = {**os.environ, **SECRETS, **HOSTILE, "TIDEMARK_HOME": str(home.path), "PYTHONPATH": str(ROOT)}
    began = time.monotonic()
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, env=told, stdout=pipe, stderr=pipe, text=True, cwd="/") as session,
        Onlooker(session.pid, 0.05) as onlooker,
    ):
        said, errors = session.communicate(timeout=100)
    assert session.returncode == 0, errors
    assert time.monotonic() - began < 100

    programs = {program for program, _ in onlooker.environments.values()}
    assert {"postgres", "sysbench", "initdb"} <= programs
    # Git keeps the caller's variables, which a fetch needs; the session asks it which Tidemark this is.
    texts = [environment for program, environment in onlooker.environments.values() if program != "git"]
    assert [text for text in (*texts, *onlooker.arguments, said, errors) if "marlin7" in text] == []
    assert [text for text in texts if any(name in text for name in HOSTILE.keys() - {"LUA_PATH"})] == []

    connection = sqlite3.connect(home.history)
    query = """SELECT version, settings ->> 'work_mem', status FROM runs
        JOIN configurations ON configurations.id = configuration_id ORDER BY version"""
    assert connection.execute(query).fetchall() == [
        (PLAIN, "4096 kB", "finished"),
        (VARIANT, "8192 kB", "finished"),
    ]
    ((options,),) = connection.execute("SELECT options FROM sessions").fetchall()
    connection.close()
    # A token is gone before the process that measures begins, which cannot name it.
    assert {*SECRETS, *HOSTILE} - {"SOMEBODYS_TOKEN"} <= {*json.loads(options)["left_out"]}
    assert "marlin7" not in options
    (note,) = [line for line in errors.splitlines() if "do not get these environment variables" in line]
    assert "PGOPTIONS" in note
    assert "DEPLOY_KEY" not in note
    assert not Path("/nowhere").exists()
