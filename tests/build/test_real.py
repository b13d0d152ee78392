"""A real Postgres, from its release tarball to programs that run wherever they lie."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from build.finished_build import Build
from build.home import locate
from build.progress import Silent
from build.provide import provide
from build.recipes.postgres import CONTRIB
from build.request import BuildRequest
from build.version import parse_version

pytestmark = pytest.mark.compile

VERSION = parse_version("postgres@18.6")


@pytest.fixture(scope="module")
def postgres() -> Build:
    """Postgres 18.6 in the real cache; compiled if it is not there, which takes minutes."""
    return provide(BuildRequest(VERSION), locate(), Silent())


def says(program: Path, *arguments: str) -> str:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def test_the_programs_run(postgres: Build) -> None:
    assert says(postgres.program("postgres"), "--version") == "postgres (PostgreSQL) 18.6\n"
    assert says(postgres.program("pgbench"), "--version") == "pgbench (PostgreSQL) 18.6\n"


def test_the_contrib_modules_are_there(postgres: Build) -> None:
    for module in CONTRIB:
        assert (postgres.prefix / f"lib/{module}.so").exists()
        assert (postgres.prefix / f"share/extension/{module}.control").exists()


def test_the_manifest_tells_the_source(postgres: Build) -> None:
    digest = "sha256:555610c24d53e4316da5b7d3fc25c279d96856d5e0e23ee308c328c5fa881d9f"
    assert postgres.manifest.source.digest == digest
    assert postgres.manifest.compile_commands > 1000
    assert postgres.numbers == (18, 6)


def test_optimised_with_frame_pointers_and_symbols(postgres: Build) -> None:
    assert "-O2 -fno-omit-frame-pointer -g" in says(postgres.program("pg_config"), "--configure")
    assert ".debug_info" in says(
        Path("/usr/bin/readelf"), "--sections", "--wide", str(postgres.program("postgres"))
    )


def test_libraries_are_found_inside_the_prefix_wherever_it_lies(postgres: Build, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(postgres.prefix, moved, symlinks=True)
    for name in ("bin/psql", "bin/pgbench", "lib/libpqwalreceiver.so"):
        line = next(
            line for line in says(Path("/usr/bin/ldd"), str(moved / name)).splitlines() if "libpq.so" in line
        )
        assert Path(line.split()[2]).resolve().is_relative_to(moved)
    assert says(moved / "bin/psql", "--version") == "psql (PostgreSQL) 18.6\n"
    assert says(moved / "bin/pg_config", "--sharedir").strip() == str(moved / "share")


def test_the_second_time_answers_at_once(postgres: Build) -> None:
    took = []
    for _ in range(5):  # the quickest: other tests work beside it
        started = time.process_time()
        assert provide(BuildRequest(VERSION), locate(), Silent()).prefix == postgres.prefix
        took.append(time.process_time() - started)
    assert min(took) < 0.3
