"""The profile io on two real Postgres releases, with less data and seconds than it has."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.finished_build import Build
from build.home import ROOT, Home
from suites.control_groups.group import MemoryLimit
from suites.definition import SUITES
from tests.suites.control_groups.disk_folders import folder_on_disk

pytestmark = pytest.mark.server

SHORTER = {
    "seconds": "6",
    "slice_seconds": "1",
    "block_seconds": "2",
    "warm_limit_seconds": "4",
    "repetitions": "3",
    "data_to_memory": "0.01",
    "rows": "[20_000, 20_000]",
    "settle_seconds": "0",
}


@pytest.fixture
def disk_home(shared_home: Home) -> Iterator[Home]:
    """A home on a disk, with the builds of the shared one, where servers can have a memory of their own."""
    with folder_on_disk([MemoryLimit(64 * 2**20)]) as folder:
        for real in (shared_home.builds, shared_home.tools):
            (folder / real.name).symlink_to(real)
        yield Home(folder)


def shorter_suite(folder: Path) -> Path:
    """A copy of write-heavy whose profile io is over in seconds."""
    copied = Path(shutil.copytree(SUITES / "write_heavy", folder / "write_heavy"))
    toml = copied / "suite.toml"
    before, io, rest = re.split(r"(?=\[profiles\.io\])|(?=\[profiles\.long\])", toml.read_text())
    for key, value in SHORTER.items():
        io, changed = re.subn(rf"^{key} = .*$", f"{key} = {value}", io, flags=re.MULTILINE)
        assert changed == 1, key
    toml.write_text(before + io + rest)
    return copied


def test_io_warms_up_and_measures_until_it_is_decided(
    disk_home: Home, tmp_path: Path, postgres_17: Build, postgres_18: Build
) -> None:
    pair = ("postgres@17.11", "postgres@18.6")
    suite = ("--suite", str(shorter_suite(tmp_path)), "--profile", "io", "--memory", "384M")

    def tidemark(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TIDEMARK_HOME": str(disk_home.path), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-P", "-m", "runners", *words]
        return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)

    ran = tidemark("run", *suite, "--step", "update-index", *pair)
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"session \w+: write-heavy, io with 384M of memory for each server", ran.stderr)
    assert re.search(r"update-index: warmed up for [1-4] s each: ", ran.stderr)
    shown = tidemark("compare", *pair, "--format", "json")
    (contender,) = json.loads(shown.stdout)["contenders"]
    (step,) = contender["steps"]
    assert step["step"] == "update-index"
    assert step["pairs"] == 3
