"""A build that has lost files is compiled again instead of failing whoever measures with it."""

import json
from pathlib import Path

import pytest

from build.cache import store
from build.cache.store import MANIFEST, StoreError
from build.home import Home
from build.progress import Silent
from build.provide import find, provide
from build.request import BuildRequest
from build.version import parse_version
from tests.build.stand import Pins, Stand

RELEASE = parse_version("postgres@18.99")
BKI = "share/postgres.bki"
UNKNOWN = "lib/pg_stat_statements.so"


@pytest.fixture
def pinned(home: Home, stand: Stand, versions: Pins) -> Stand:
    versions(r18_99=stand.tarball(home.sources / "postgresql-18.99.tar.bz2"))
    return stand


def forget_the_count(prefix: Path) -> None:
    """Make the manifest one of a program that did not count."""
    path = prefix / MANIFEST
    manifest = json.loads(path.read_text())
    del manifest["installed"]
    path.write_text(json.dumps(manifest))


@pytest.mark.deep("damaged builds are compiled again, by real compilers")
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("slim", [None, ("pgbench",)])
def test_a_build_without_a_file_that_initdb_reads_is_compiled_again(
    counted: bool, slim: tuple[str, ...] | None, home: Home, progress: Silent, pinned: Stand
) -> None:
    build = provide(BuildRequest(RELEASE, slim=slim), home, progress)
    if not counted:
        forget_the_count(build.prefix)
    assert provide(BuildRequest(RELEASE, slim=slim), home, progress).prefix == build.prefix
    assert pinned.times_configured() == 1
    (build.prefix / BKI).unlink()
    assert find(BuildRequest(RELEASE), home) is None
    again = provide(BuildRequest(RELEASE, slim=slim), home, progress)
    assert again.prefix == build.prefix
    assert (build.prefix / BKI).exists()
    assert pinned.times_configured() == 2
    why = f"postgres@18.99: the build in the cache is damaged, and compiled again: {BKI} is missing"
    assert why in progress.notes


def test_a_file_that_no_list_names_is_missed_and_one_that_was_cut_as_well(
    home: Home, progress: Silent, pinned: Stand
) -> None:
    build = provide(BuildRequest(RELEASE), home, progress)
    counts = build.manifest.installed
    (build.prefix / "share" / "nobody-knows-it").touch()  # More than was installed is no loss.
    assert find(BuildRequest(RELEASE), home) == build
    (build.prefix / "share" / "nobody-knows-it").unlink()
    module = build.prefix / UNKNOWN
    size = module.stat().st_size
    module.write_bytes(module.read_bytes()[:-1])
    assert store.damaged(home, build.key) == f"it has {counts.bytes - 1} of {counts.bytes} bytes"
    module.unlink()
    assert store.damaged(home, build.key) == f"{UNKNOWN} is missing"
    module.write_bytes(b" " * size)
    assert store.damaged(home, build.key) == ""


@pytest.mark.deep("damaged builds are compiled again, by real compilers")
@pytest.mark.parametrize("count", [None, [], {}, {"files": 1}, {"files": "1", "bytes": 1}, {"files": -1}])
def test_a_count_that_is_none_is_named(count: object, home: Home, progress: Silent, pinned: Stand) -> None:
    build = provide(BuildRequest(RELEASE), home, progress)
    (build.prefix / MANIFEST).write_text(json.dumps({**build.manifest.to_json(), "installed": count}))
    with pytest.raises(StoreError, match="the manifest of a build cannot be read"):
        find(BuildRequest(RELEASE), home)
