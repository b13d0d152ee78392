"""The key: what changes it, and what does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from build.home import Home
from build.host import Compiler
from build.progress import Silent
from build.recipes.postgres import recipe
from build.request import BuildRequest, BuildSpec, Patch, build_spec, release_of
from build.sources.patching import PatchError
from build.sources.source import Source, obtain
from build.version import parse_version
from tests.build.stand import Repository

GCC = Compiler("gcc", "gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)", "x86_64-linux-gnu")
SOURCE = Source(parse_version("postgres@18.6"), "cache", "sha256:" + "5" * 64, "postgresql-18.6.tar.bz2")
PATCH = Patch(Path("a.patch"), "a" * 64)
BASE = BuildSpec(SOURCE, recipe("18.6", lambda name: True), (), GCC)


def test_the_key_is_the_same_in_every_process() -> None:
    # Changed on purpose only: every build in every cache is then compiled again.
    assert BASE.key == "9509425fcde5066f048f81e75ceb772983cfcebe1e941851326d1f09d2fdf512"


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, source=replace(SOURCE, digest="sha256:" + "6" * 64)),
        replace(BASE, recipe=recipe("18.6", lambda name: False)),
        replace(BASE, recipe=recipe("18.7", lambda name: True)),
        replace(BASE, patches=(PATCH,)),
        replace(BASE, compiler=replace(GCC, version="gcc version 13.1.0")),
        replace(BASE, compiler=replace(GCC, target="aarch64-linux-gnu")),
    ],
    ids=["source", "flags", "release", "patches", "compiler", "target"],
)
def test_what_can_change_the_binaries_changes_the_key(other: BuildSpec) -> None:
    assert other.key != BASE.key


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, source=replace(SOURCE, kind="apt-pool", location="postgresql-18_18.6.orig.tar.bz2")),
        replace(BASE, source=replace(SOURCE, tarball=Path("/elsewhere/x.tar.bz2"))),
        replace(BASE, source=replace(SOURCE, version=parse_version("postgres@REL_18_6"))),
        replace(BASE, recipe=replace(BASE.recipe, commands=7, scratch_bytes=7)),
    ],
    ids=["served by", "file", "asked as", "estimates"],
)
def test_what_cannot_change_the_binaries_leaves_the_key(other: BuildSpec) -> None:
    assert other.key == BASE.key


def test_the_order_of_patches_matters() -> None:
    second = Patch(Path("b.patch"), "b" * 64)
    assert replace(BASE, patches=(PATCH, second)).key != replace(BASE, patches=(second, PATCH)).key


def test_a_patch_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PatchError, match=r"missing\.patch cannot be read"):
        build_spec(SOURCE, BuildRequest(SOURCE.version, (tmp_path / "missing.patch",)))


def test_a_commit_says_itself_which_release_it_is(home: Home, repository: Repository) -> None:
    repository.commit("one", release="19devel")
    source = obtain(parse_version("postgres@main"), home, Silent(), str(repository.path))
    assert release_of(source) == "19devel"
    assert build_spec(source, BuildRequest(source.version)).recipe.release == "19devel"
