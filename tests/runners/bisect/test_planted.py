"""A bisect on real builds and servers: one commit of a history of Postgres burns CPU in every update.

The commits are the same in every run, so that their builds come from the build cache from the second run on.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.real_builds.planted_history import BRANCH, PlantedHistory
from build.cache.store import all_builds
from build.home import ROOT, Home

pytestmark = [pytest.mark.server, pytest.mark.compile, pytest.mark.alone]

BAD = "5a74478aacb3ae10053659c9bb9f0f0583bcf833"
"""Were it another one, CI would compile all of it anew every time."""


def tidemark(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "runners", "bisect", *words]
    environment = {**os.environ, "TIDEMARK_HOME": str(home.path), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.timeout(3600)
def test_the_planted_commit_is_found(home: Home, planted: PlantedHistory, tmp_path: Path) -> None:
    assert planted.bad == BAD
    where = ("--git", str(planted.repository), "--step", "update-nonindex", "--seconds", "1")
    asked = (*where, "--good", planted.good, "--bad", BRANCH, "--keep-disturbed")

    found = tidemark(home, *asked)
    assert found.returncode == 0, found.stderr
    assert planted.culprit in found.stdout
    assert "Weigh a tuple's successor before an update" in found.stdout
    log = tmp_path / "log.json"
    log.write_text(tidemark(home, "report", "--format", "json").stdout, encoding="utf-8")
    kept = json.loads(log.read_text(encoding="utf-8"))
    assert kept["verdict"]["kind"] == "culprit"
    assert [commit["commit"] for commit in kept["blamed"]] == [planted.culprit]
    assert [commit["commit"] for commit in kept["span"]["points"]] == [planted.good, *planted.candidates]
    assert {commit["commit"] for commit in kept["span"]["collapsed"]} >= set(planted.collapsed)
    if shutil.which("valgrind"):
        assert kept["counted_observations"], "the burning is counted before it is located by rounds"
        assert "counted passes" in found.stdout
        functions = found.stdout.partition("Instructions per query, culprit against its parent")[2]
        assert "weigh_successor" in functions.partition("\n\n")[0]
    low, high = kept["verdict"]["interval"]
    assert low < high < 0.9

    versions = {commit["commit"] for commit in kept["span"]["points"]}
    built = [build for build in all_builds(home) if build.manifest.source.commit in versions]
    assert planted.broken not in {build.manifest.source.commit for build in built}
    broken = planted.candidates.index(planted.broken) + 1
    for event in kept["events"]:
        if event["kind"] == "excluded":
            assert event["detail"]["position"] == broken
            assert "does not compile" in event["detail"]["reason"]

    # The same again measures nothing; the log alone leads to the same verdict.
    again = tidemark(home, *asked)
    assert "it has a verdict" in again.stderr
    assert again.stdout == found.stdout
    replayed = tidemark(home, "replay", str(log))
    assert replayed.returncode == 0
    assert "verdict: culprit" in replayed.stdout


@pytest.mark.slow("what a bisect is for, by counts, which no other work disturbs")
@pytest.mark.timeout(1800)
def test_the_planted_commit_is_found_by_counts(home: Home, planted: PlantedHistory) -> None:
    if not shutil.which("valgrind"):
        pytest.skip("there is no valgrind: ./tidemark setup installs it")
    where = ("--git", str(planted.repository), "--good", planted.good, "--bad", BRANCH)
    found = tidemark(home, *where, "--step", "update-nonindex", "--metric", "instructions-per-op", "--no-all")
    assert found.returncode == 0, found.stderr
    assert planted.culprit in found.stdout
    assert "weigh_successor" in found.stdout


def test_what_the_environment_lacks_is_said(home: Home, planted: PlantedHistory) -> None:
    where = ("--git", str(planted.repository), "--good", planted.good, "--bad", BRANCH)
    swapped = tidemark(
        home, "--git", str(planted.repository), "--good", BRANCH, "--bad", planted.good, "--step", "insert"
    )
    assert swapped.returncode == 2
    assert f"--good {planted.good} --bad {BRANCH}" in swapped.stderr
    no_step = tidemark(home, *where, "--step", "update-everything")
    assert no_step.returncode == 2
    assert "update-everything" in no_step.stderr
