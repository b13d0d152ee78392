"""Deleting from the build cache: what was used longest ago goes first, and what is needed stays."""

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.cache.pruning import CachedBuild, cached_builds, mark_used, old_logs, remove, superfluous
from build.home import Home
from build.progress import Silent
from build.provide import provide
from build.request import BuildRequest
from build.version import parse_version
from tests.build.cache.folders import a_build_of
from tests.build.stand import Pins, Stand

START = datetime(2026, 1, 1, tzinfo=UTC)

BUILDS = st.lists(
    st.builds(
        lambda number, size, day, damage, imported: CachedBuild(
            Path(f"b{number}"),
            "postgres@18.6",
            str(number),
            size,
            START + timedelta(days=day),
            damage,
            imported,
        ),
        st.integers(0, 9),
        st.integers(0, 100),
        st.integers(0, 365),
        st.sampled_from(["", "", "bin/postgres is missing"]),
        st.sampled_from([False, False, True]),
    ),
    unique_by=lambda build: build.key,
).map(lambda builds: sorted(builds, key=lambda build: build.used_at))


@given(BUILDS, st.sets(st.integers(0, 9).map(str)), st.integers(0, 500))
def test_what_stays_is_within_the_limit_or_all_needed(
    builds: list[CachedBuild], needed: set[str], most: int
) -> None:
    gone = superfluous(builds, needed, most_bytes=most)
    left = [build for build in builds if build not in gone]
    may_go = [build for build in left if build.key not in needed and not build.is_imported]
    assert not [build for build in left if build.damage]
    assert not [build for build in gone if not build.damage and (build.key in needed or build.is_imported)]
    assert sum(build.bytes for build in left) <= most or not may_go
    whole = [build for build in gone if not build.damage]
    if whole and may_go:
        assert max(build.used_at for build in whole) <= min(build.used_at for build in may_go)
    # Not one more than it takes: without the last one that went, they were too large.
    if whole:
        assert sum(build.bytes for build in [*left, whole[-1]]) > most


def test_what_was_not_used_for_long_goes_whatever_it_takes(home: Home) -> None:
    old = a_build_of(home, "postgres@17.10", START)
    a_build_of(home, "postgres@18.6", START + timedelta(days=2))
    needed = a_build_of(home, "postgres@17.11", START)
    gone = superfluous(cached_builds(home), {needed}, used_before=START + timedelta(days=1))
    assert [build.key for build in gone] == [old]


def test_a_use_counts_and_an_install_prefix_of_the_user_is_left_alone(
    home: Home, stand: Stand, versions: Pins, tmp_path: Path
) -> None:
    versions(r18_99=stand.tarball(home.sources / "postgresql-18.99.tar.bz2"))
    a_build_of(home, "postgres@18.6", START + timedelta(days=400))
    build = provide(BuildRequest(parse_version("postgres@18.99")), home, Silent())
    mark = home.builds / ".used" / build.prefix.name
    assert cached_builds(home)[-1].key != build.key or mark.exists()
    before = mark.stat().st_mtime_ns
    provide(BuildRequest(parse_version("postgres@18.99")), home, Silent())
    assert mark.stat().st_mtime_ns > before, "taken from the cache, it was used as well"
    elsewhere = type(build)(build.version, build.release, build.key, tmp_path / "pg", build.manifest)
    mark_used(home, elsewhere)
    assert not (home.builds / ".used" / "pg").exists()


def test_a_build_is_gone_at_once_and_what_a_killed_call_left_goes_with_the_next(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_build_of(home, "postgres@17.10", START)
    a_build_of(home, "postgres@18.6", START)
    first, second = cached_builds(home)

    def killed(path: Path) -> None:
        raise KeyboardInterrupt(path)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove(home, [first])
    assert [build.name for build in cached_builds(home)] == [second.name]
    remove(home, [])
    kept = {path.name for path in home.builds.iterdir()}
    assert kept == {second.name, ".used", ".locks"}
    assert [path.name for path in (home.builds / ".used").iterdir()] == [second.name]


def test_a_folder_that_is_no_build_is_listed_as_damaged(home: Home) -> None:
    a_build_of(home, "postgres@18.6", START)
    (home.builds / "postgres-18.6-000000000000").mkdir()
    (whole,) = [build for build in cached_builds(home) if not build.damage]
    (whole.folder / "build.json").write_text("{")
    assert sorted(build.damage for build in cached_builds(home)) == [
        "it has no build.json",
        "the manifest of a build cannot be read",
    ]
    remove(home, superfluous(cached_builds(home), ()))
    assert cached_builds(home) == []


def test_only_old_logs_are_named(home: Home) -> None:

    (home.logs / "servers").mkdir(parents=True)
    for name, day in (("old.log", 0), ("servers/old.log", 0), ("new.log", 20)):
        (home.logs / name).touch()
        moment = (START + timedelta(days=day)).timestamp()
        os.utime(home.logs / name, (moment, moment))
    found = old_logs(home, START + timedelta(days=10))
    assert [str(path.relative_to(home.logs)) for path in found] == ["old.log", "servers/old.log"]
