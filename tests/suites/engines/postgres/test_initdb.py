"""What initdb is told: by version, with what an engine and a profile allow, and on a real server."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from build.finished_build import Build
from build.version import Engine, parse_version
from suites.capabilities import CapabilityError
from suites.engines import make_server
from suites.keys.durability import Durability
from suites.postgres.initdb_options import InitdbError, require_initdb
from suites.postgres.server import PostgresServer, initdb_words
from tests.manifests import a_manifest
from tests.suites.servers import small, value

MEGABYTE = 1024**2


def build_of(release: str) -> Build:
    """Without any file."""
    return Build(parse_version(f"postgres@{release}"), release, "key", Path("/nonexistent"), a_manifest())


@pytest.mark.parametrize(
    ("release", "chosen", "words"),
    [
        ("13.23", {}, ["--data-checksums", "--locale=C"]),
        ("17.11", {"checksums": "off"}, ["--locale=C"]),
        ("18.6", {"checksums": "off"}, ["--no-data-checksums", "--locale=C"]),
        ("18.6", {"wal-segsize": "64"}, ["--data-checksums", "--locale=C", "--wal-segsize=64"]),
        (
            "17.11",
            {"locale-provider": "builtin", "builtin-locale": "C.UTF-8"},
            ["--data-checksums", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"],
        ),
    ],
)
def test_each_version_is_told_in_its_own_words(
    release: str, chosen: Mapping[str, str], words: list[str]
) -> None:
    assert initdb_words(build_of(release), chosen) == words


@pytest.mark.parametrize(
    ("release", "chosen"),
    [
        ("14.20", {"locale-provider": "libc"}),
        ("15.15", {"locale-provider": "icu"}),
        ("16.11", {"locale-provider": "builtin"}),
    ],
)
def test_what_a_version_does_not_have_excludes_it(release: str, chosen: Mapping[str, str]) -> None:
    with pytest.raises(CapabilityError, match="has no locale-provider"):
        initdb_words(build_of(release), chosen)


def test_other_engines_and_large_segments_are_refused_beforehand() -> None:
    require_initdb({}, Engine.MYSQL, 0)
    require_initdb({"wal-segsize": "64"}, Engine.POSTGRES, 128 * MEGABYTE)
    with pytest.raises(InitdbError, match="MySQL has no initdb"):
        require_initdb({"checksums": "off"}, Engine.MYSQL, 128 * MEGABYTE)
    with pytest.raises(InitdbError, match="127 MB, which holds no 2 segments of 64 MB"):
        require_initdb({"wal-segsize": "64"}, Engine.POSTGRES, 127 * MEGABYTE)


@pytest.mark.server
def test_a_data_directory_is_as_it_was_asked_for(postgres_18: Build, server_folder: Path) -> None:
    room = replace(small(), wal_limit_bytes=256 * MEGABYTE)
    chosen = {"wal-segsize": "64", "checksums": "off", "locale-provider": "builtin"}
    server = make_server(postgres_18, room, Durability.RELAXED, server_folder / "s", {}, initdb=chosen)
    assert isinstance(server, PostgresServer)
    server.create()
    try:
        server.start()
        assert value(server, "SHOW wal_segment_size") == "64MB"
        assert value(server, "SHOW data_checksums") == "off"
        provider = "SELECT datlocprovider FROM pg_database WHERE datname = 'template1'"
        assert value(server, provider) == "b"
    finally:
        server.destroy()
