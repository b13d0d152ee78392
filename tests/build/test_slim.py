"""Slim builds, on the stand-in: what they have, and that nobody takes one for a whole build."""

import shutil
import subprocess
from pathlib import Path

import pytest

from build import host
from build.cache import store
from build.cache.store import StoreError, require_clean
from build.home import Home
from build.manifest import manifest_of
from build.progress import Silent
from build.provide import find, provide
from build.recipes import mysql, postgres
from build.recipes.recipe import PLAIN
from build.request import RECIPES, BuildRequest
from build.version import Engine, parse_version
from tests.build.stand import Pins, Stand

RELEASE = parse_version("postgres@18.99")
TARBALL = "postgresql-18.99.tar.bz2"


@pytest.fixture
def pinned(home: Home, stand: Stand, versions: Pins) -> Stand:
    versions(r18_99=stand.tarball(home.sources / TARBALL))
    return stand


def test_a_slim_build_has_a_server_and_little_else(home: Home, progress: Silent, pinned: Stand) -> None:
    build = provide(BuildRequest(RELEASE, slim=("pgbench",)), home, progress)
    assert build.is_slim
    assert sorted(path.name for path in (build.prefix / "bin").iterdir()) == ["initdb", "pgbench", "postgres"]
    assert sorted(path.name for path in (build.prefix / "lib").iterdir()) == [
        "dict_snowball.so",
        "plpgsql.so",
    ]
    assert build.manifest.slim_programs == ["initdb", "postgres", "pgbench"]
    assert provide(BuildRequest(RELEASE, slim=("pgbench",)), home, progress) == build
    assert pinned.times_configured() == 1
    require_clean(build)
    build.program("initdb").unlink()
    with pytest.raises(StoreError, match="bin/initdb is missing"):
        require_clean(build)


def test_a_slim_build_is_never_taken_for_a_whole_one(home: Home, progress: Silent, pinned: Stand) -> None:
    slim = provide(BuildRequest(RELEASE, slim=()), home, progress)
    assert find(BuildRequest(RELEASE), home) is None
    whole = provide(BuildRequest(RELEASE), home, progress)
    assert not whole.is_slim
    assert whole.key != slim.key
    assert whole.program("psql").exists()
    assert find(BuildRequest(RELEASE), home) == whole
    assert provide(BuildRequest(RELEASE, slim=()), home, progress) == whole, "a whole build does for a bisect"
    assert provide(BuildRequest(RELEASE, slim=("pgbench",)), home, progress) == whole


def test_builds_with_other_programs_are_others(home: Home, progress: Silent, pinned: Stand) -> None:
    without, with_ = (
        provide(BuildRequest(RELEASE, slim=programs), home, progress) for programs in ((), ("pgbench",))
    )
    assert without.key != with_.key
    assert not without.program("pgbench").exists()


@pytest.mark.deep("hundreds of texts that hypothesis draws")
def test_a_slim_build_of_a_variant_is_compiled_as_the_variant_says(
    home: Home, progress: Silent, pinned: Stand, tmp_path: Path
) -> None:
    choices = PLAIN.plus("CFLAGS", "-O3").plus("configure", "--with-llvm")
    patch = tmp_path / "a.patch"
    patch.write_text("--- a/src/part.c\n+++ b/src/part.c\n@@ -1 +1,2 @@\n int part;\n+int patched;\n")
    plain = provide(BuildRequest(RELEASE, slim=()), home, progress)
    chosen = provide(BuildRequest(RELEASE, choices=choices, slim=()), home, progress)
    patched = provide(BuildRequest(RELEASE, patches=(patch,), choices=choices, slim=()), home, progress)
    whole = provide(BuildRequest(RELEASE, choices=choices), home, progress)
    assert len({plain.key, chosen.key, patched.key, whole.key}) == 4
    assert (chosen.is_slim, patched.is_slim, whole.is_slim) == (True, True, False)
    configure = chosen.manifest.recipe["stages"][0]["command"]
    assert list(configure[-2:]) == [f"CFLAGS={postgres.CFLAGS} -O3", "--with-llvm"]
    assert f"CFLAGS={postgres.CFLAGS} -O3" in whole.manifest.recipe["stages"][0]["command"]
    assert provide(BuildRequest(RELEASE, choices=choices, slim=()), home, progress) == whole, (
        "a whole one of the variant"
    )
    assert provide(BuildRequest(RELEASE, slim=()), home, progress) == plain, "not one of the variant"


def test_a_slim_build_that_was_imported_is_not_found_as_a_whole_one(
    home: Home, progress: Silent, pinned: Stand
) -> None:
    slim = provide(BuildRequest(RELEASE, slim=()), home, progress)
    (slim.prefix / store.IMPORTED).write_text("{}")
    assert store.imported(home, RELEASE, slim.manifest.source.digest, [], {}) is None


@pytest.mark.deep("hundreds of texts that hypothesis draws")
def test_configure_takes_over_the_answers_of_the_same_script(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    versions(
        r18_99=stand.tarball(home.sources / TARBALL),
        r18_98=stand.tarball(home.sources / "postgresql-18.98.tar.bz2", "18.98"),
    )
    provide(BuildRequest(RELEASE, slim=()), home, progress)
    assert stand.answers_taken_over() == []
    provide(BuildRequest(parse_version("postgres@18.98"), slim=()), home, progress)
    assert stand.answers_taken_over() == [], "another script asks anew"
    provide(BuildRequest(RELEASE, slim=("pgbench",)), home, progress)
    assert stand.answers_taken_over() == ["of 18.99"]
    provide(BuildRequest(RELEASE), home, progress)
    assert stand.answers_taken_over() == ["of 18.99"], "a whole build asks the machine"


def test_configure_is_given_the_same_words_in_every_compile(
    home: Home, progress: Silent, pinned: Stand
) -> None:
    # Postgres' configure writes them into pg_config.h, which every file includes.
    provide(BuildRequest(RELEASE, slim=()), home, progress)
    provide(BuildRequest(RELEASE, slim=("pgbench",)), home, progress)
    provide(BuildRequest(RELEASE), home, progress)
    assert len(pinned.configured_with()) == 3
    assert len(set(pinned.configured_with())) == 1


@pytest.mark.parametrize("first_slim", [None, ()], ids=["whole first", "slim first"])
def test_slim_and_whole_builds_share_objects(
    home: Home,
    progress: Silent,
    pinned: Stand,
    monkeypatch: pytest.MonkeyPatch,
    first_slim: tuple[str, ...] | None,
) -> None:
    if host.ccache_program() is None:
        pytest.skip("ccache is not installed")
    monkeypatch.setenv("CCACHE_DIR", str(home.ccache))
    counts: list[dict[str, str]] = []
    for slim in (first_slim, () if first_slim is None else None):
        build = provide(BuildRequest(RELEASE, slim=slim), home, progress)
        shutil.rmtree(build.prefix)  # A whole build would be taken for a slim one.
        told = subprocess.run(["ccache", "--print-stats"], capture_output=True, text=True, check=True).stdout
        counts.append(dict(line.split("\t") for line in told.splitlines()))
    before, after = counts
    assert int(before["cache_miss"]) > 0
    assert after["cache_miss"] == before["cache_miss"], "every file of the second one was compiled before"


def test_the_key_of_a_whole_build_does_not_know_of_slim_ones() -> None:
    whole = postgres.recipe("18.6", lambda name: False)
    assert not whole.is_slim
    assert "slim" not in whole.identity()
    slim = postgres.slim_recipe("18.6", lambda name: False, ())
    assert slim.identity()["slim"] is True
    assert not any("psql" in word or "ecpg" in word for stage in slim.stages for word in stage.command)


def test_an_engine_without_a_slim_recipe_is_compiled_whole() -> None:
    assert RECIPES[Engine.MYSQL].slim_recipe is mysql.slim_recipe is None


@pytest.mark.parametrize("wrong", ["initdb", [1], {"a": 1}])
def test_a_manifest_whose_programs_are_none_is_refused(
    home: Home, progress: Silent, pinned: Stand, wrong: object
) -> None:
    build = provide(BuildRequest(RELEASE, slim=()), home, progress)
    with pytest.raises(ValueError, match="slim_programs"):
        manifest_of({**build.manifest.to_json(), "slim_programs": wrong})
