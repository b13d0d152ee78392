"""Load generators: every one that a suite.toml may name has its entries, and what each needs is checked."""

from pathlib import Path

import pytest

from build.finished_build import Build
from build.version import Engine, parse_version
from suites.definition import MODELS, GeneratorName, load_suite
from suites.generators.connections import Connections
from suites.generators.load import LoadError
from suites.generators.pgbench.client import Pgbench
from suites.generators.registry import GENERATORS, build_programs_of, make_generator
from suites.generators.sysbench import Sysbench
from tests.manifests import a_manifest
from tests.suites.servers import small


def build_of(version: str) -> Build:
    parsed = parse_version(version)
    return Build(parsed, parsed.ref, "key", Path(f"/{parsed.ref}"), a_manifest())


def test_every_generator_that_a_suite_can_name_has_its_entries_and_no_other_has() -> None:
    assert GENERATORS.keys() == set(GeneratorName)
    assert MODELS.keys() == set(GeneratorName)


def test_each_shipped_suite_gets_its_generator() -> None:
    builds = [build_of("postgres@17.11"), build_of("postgres@18.6"), build_of("mysql@9.7.2")]
    assert isinstance(make_generator(load_suite("write-heavy"), small(), builds), Sysbench)
    assert isinstance(make_generator(load_suite("connections"), small(), builds), Connections)
    pgbench = make_generator(load_suite("pgbench"), small(), builds)
    assert isinstance(pgbench, Pgbench)
    assert pgbench.program == Path("/18.6/bin/pgbench"), "the newest serves all"


def test_pgbench_needs_a_build_of_postgres() -> None:
    build = build_of("mysql@9.7.2")
    assert build.version.engine is not Engine.POSTGRES
    with pytest.raises(LoadError) as caught:
        make_generator(load_suite("pgbench"), small(), [build])
    assert caught.value.what == "pgbench is part of Postgres, but the session has no version of Postgres"


def test_files_that_scripts_share_are_there() -> None:
    shared = [file for model in MODELS.values() for file in model.shared_files(None)]
    modules = [
        "tidemark", "arrivals", "background", "clock", "numbers", "slices", "statements", "transactions",
    ]  # fmt: skip
    assert [file.stem for file in shared] == modules * 2
    assert all(file.is_file() for file in shared)


def test_a_setup_needs_psql_in_the_builds_of_a_bisect() -> None:
    pgbench = load_suite("pgbench")
    assert build_programs_of(pgbench) == ("pgbench",)
    assert build_programs_of(pgbench.model_copy(update={"setup": "setup.sql"})) == ("pgbench", "psql")
    assert build_programs_of(load_suite("read")) == ()
