"""postgresql.conf: whole files for three releases, and what differs between versions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from build.finished_build import Build
from build.version import Engine, parse_version
from suites.capabilities import CapabilityError, require_engine
from suites.keys.durability import Durability
from suites.postgres.configuration import render
from suites.postgres.server import initdb_words
from suites.sizing import Sizes, equal_tables
from tests.manifests import a_manifest
from tests.suites.golden import require_golden

GIB = 1024**3
ROOM = Sizes(
    threads=40,
    data=equal_tables(8, 10_000_000, 0),
    buffer_bytes=32 * GIB,
    wal_limit_bytes=32 * GIB,
    disk_bytes=0,
    workers=24,
)
SOCKETS = Path("/srv/tidemark/data/1")


def build_of(release: str) -> Build:
    return Build(parse_version(f"postgres@{release}"), release, "key", Path("/nowhere"), a_manifest())


def rendered(
    release: str,
    overrides: Mapping[str, str] | None = None,
    durability: Durability = Durability.RELAXED,
    sockets: Path = SOCKETS,
) -> str:
    return render(build_of(release), ROOM, durability, sockets, overrides or {})


def settings(text: str) -> list[tuple[str, str]]:
    """Name and value of each line, in order: the last one of a name is the one that counts."""
    pairs = [line.split(" = ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, value) for name, value in pairs]


@pytest.mark.parametrize("release", ["13.23", "17.11", "18.6"])
def test_the_whole_file(release: str) -> None:
    require_golden(f"postgresql-{release}.conf", rendered(release))


def test_versions_differ_in_what_they_know_only() -> None:
    new, old = (dict(settings(rendered(release))) for release in ("18.6", "17.11"))
    assert new.keys() - old.keys() == {"io_method"}
    assert {name: new[name] for name in old} == old
    assert settings(rendered("13.23")) == settings(rendered("17.11"))


def test_a_branch_counts_as_its_major_version() -> None:
    build = Build(parse_version("postgres@master"), "19devel", "key", Path("/nowhere"), a_manifest())
    assert "io_method" in render(build, ROOM, Durability.RELAXED, SOCKETS, {})


@pytest.mark.parametrize(
    ("release", "strings", "has"),
    [
        ("18devel", "io_method", True),
        ("18devel", "pgaio_method", False),
        ("19devel", "", True),
        ("18beta1", "", True),
    ],
)
def test_a_branch_has_what_its_own_server_names(
    tmp_path: Path, release: str, strings: str, has: bool
) -> None:
    """What is new in 18 came in during a year of 18devel."""
    (tmp_path / "bin").mkdir()
    for program in ("postgres", "initdb"):
        (tmp_path / "bin" / program).write_bytes(b"\0".join(map(str.encode, ("ELF", strings, "port", ""))))
    build = replace(build_of(release), prefix=tmp_path)
    assert ("io_method" in dict(settings(render(build, ROOM, Durability.RELAXED, SOCKETS, {})))) is has
    assert ("--no-data-checksums" in initdb_words(build, {"checksums": "off"})) is (release != "18devel")


def test_overrides_come_last() -> None:
    found = settings(rendered("18.6", {"work_mem": "64MB", "autovacuum": "off"}))
    assert found[-2:] == [("work_mem", "'64MB'"), ("autovacuum", "'off'")]
    assert ("work_mem", "4MB") in found[:-2]


@pytest.mark.parametrize(
    ("value", "written"),
    [("it's", "'it''s'"), ("a\\b", "'a\\\\b'"), ("", "''"), ("%m [%p] #", "'%m [%p] #'")],
)
def test_values_are_quoted(value: str, written: str) -> None:
    assert settings(rendered("18.6", {"log_line_prefix": value}))[-1] == ("log_line_prefix", written)


def test_the_socket_folder_is_quoted() -> None:
    found = dict(settings(rendered("18.6", sockets=Path("/srv/it's here"))))
    assert found["unix_socket_directories"] == "'/srv/it''s here'"


@pytest.mark.parametrize("release", ["13.23", "17.11"])
def test_io_method_is_refused_before_18(release: str) -> None:
    with pytest.raises(CapabilityError) as caught:
        rendered(release, {"io_method": "worker"})
    assert caught.value.what == f"postgres@{release} has no setting io_method"
    assert caught.value.hint == "reads are always synchronous before 18"


def test_io_method_is_taken_from_18() -> None:
    assert settings(rendered("18.6", {"io_method": "worker"}))[-1] == ("io_method", "'worker'")
    assert dict(settings(rendered("18.6")))["io_method"] == "sync"


@pytest.mark.parametrize(("durability", "commit"), [(Durability.RELAXED, "off"), (Durability.FULL, "on")])
def test_durability_is_the_commit_only(durability: Durability, commit: str) -> None:
    found = dict(settings(rendered("18.6", durability=durability)))
    assert found["synchronous_commit"] == commit
    assert (found["fsync"], found["full_page_writes"]) == ("on", "on")


def test_a_version_that_is_too_old() -> None:
    with pytest.raises(CapabilityError) as caught:
        rendered("12.22")
    assert caught.value.what == "postgres@12.22 is too old to be measured"
    assert caught.value.hint == "the oldest version that can be measured is 13"


def test_a_suite_for_another_engine() -> None:
    require_engine(build_of("18.6"), (Engine.MYSQL, Engine.POSTGRES), "write-heavy")
    with pytest.raises(CapabilityError) as caught:
        require_engine(build_of("18.6"), (Engine.MYSQL,), "innodb")
    assert caught.value.what == "suite innodb does not run on postgres"
    assert caught.value.hint == "it runs on: mysql"
