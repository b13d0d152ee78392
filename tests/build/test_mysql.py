"""MySQL's recipes, and install trees of it that were made elsewhere."""

import os
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from build.cache import archives
from build.errors import TidemarkError
from build.home import Home
from build.progress import Silent
from build.provide import find, provide
from build.recipes import mariadb, mysql
from build.recipes.recipe import PLAIN, RecipeError
from build.request import BuildRequest
from build.version import parse_version


def configure(release: str) -> tuple[str, ...]:
    return mysql.recipe(release, lambda _: False).stages[0].command


@pytest.mark.parametrize("release", ["5.7.44", "8.0.45", "8.4.8", "9.7.2"])
def test_every_version_is_configured_alike_where_it_can_be(release: str) -> None:
    words = configure(release)
    for part in ("ROUTER", "MYSQLX", "UNIT_TESTS", "NDB", "GROUP_REPLICATION"):
        assert f"-DWITH_{part}=OFF" in words
    assert "-DWITH_SSL=system" in words
    flags = [word for word in words if "FLAGS_RELWITHDEBINFO" in word]
    assert len(flags) == 2
    assert all("-O2" in word and "-fno-omit-frame-pointer" in word for word in flags)
    compile_stage = mysql.recipe(release, lambda _: False).stages[1].command
    assert {"mysqld", "mysql", "mysqlclient"} <= set(compile_stage)
    assert "install" not in compile_stage


@pytest.mark.parametrize("module", [mysql, mariadb])
def test_choices_of_a_variant_are_cmakes(module: ModuleType) -> None:
    choices = PLAIN.plus("CC", "/opt/clang-16").plus("CFLAGS", "-O3").plus("LDFLAGS", "-Wl,-O1")
    assert module.configure_words(choices.plus("configure", "-DWITH_LTO=ON"), module.CFLAGS) == (
        "-DCMAKE_CXX_COMPILER=/opt/clang++-16",
        f"-DCMAKE_C_FLAGS_RELWITHDEBINFO={module.CFLAGS} -O3",
        f"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO={module.CFLAGS} -O3",
        "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-O1",
        "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-O1",
        "-DCMAKE_MODULE_LINKER_FLAGS=-Wl,-O1",
        "-DWITH_LTO=ON",
    )
    assert module.configure_words(PLAIN, module.CFLAGS) == ()


@pytest.mark.parametrize(
    ("release", "boost"),
    [("5.7.44", True), ("8.0.45", True), ("8.2.0", True), ("8.3.0", False), ("9.7.2", False)],
)
def test_boost_is_named_where_it_lies_beside_the_source(release: str, boost: bool) -> None:
    assert any("WITH_BOOST" in word for word in configure(release)) == boost


def test_a_version_before_the_table_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"there is no recipe for MySQL 5\.6\.51"):
        configure("5.6.51")


def test_the_release_is_read_from_the_source() -> None:
    text = "MYSQL_VERSION_MAJOR=9\nMYSQL_VERSION_MINOR=7\nMYSQL_VERSION_PATCH=2\nMYSQL_VERSION_EXTRA=\n"
    assert mysql.release_of(text) == "9.7.2"
    with pytest.raises(RecipeError):
        mysql.release_of("MYSQL_VERSION_MAJOR=9\n")


VERSION = parse_version("mysql@9.7.2")
SAYS = "mysqld  Ver 9.7.2 for Linux on x86_64 (Source distribution)"


def packed(folder: Path, says: str = SAYS, program: str = "mysqld", name: str = "mysql.tar.zst") -> Path:
    """Return an archive of an install tree whose server says what it is."""
    server = folder / "mysql-9.7.2/bin" / program
    server.parent.mkdir(parents=True, exist_ok=True)
    server.write_text(f"#!/bin/sh\necho '{says}'\n")
    server.chmod(0o755)
    words = ["tar", "--create", "--zstd", "--file", str(folder / name), "--directory", str(folder)]
    subprocess.run([*words, "mysql-9.7.2"], check=True)
    return folder / name


@pytest.fixture
def home(server_folder: Path) -> Home:
    return Home(server_folder / "home")


def test_an_install_tree_made_elsewhere_is_the_release_that_its_server_says(
    tmp_path: Path, home: Home
) -> None:
    progress, tree = Silent(), packed(tmp_path)
    build = archives.import_(tree, home, progress)
    assert SAYS in subprocess.check_output([build.program("mysqld"), "--version"], text=True)
    assert (build.release, build.version) == ("9.7.2", VERSION)
    assert build.manifest.source.location == tree.name
    assert build.manifest.recipe["says"] == SAYS
    assert archives.import_(tree, home, progress) == build
    assert progress.notes == ["mysql: already in the build cache"]
    same = archives.import_(packed(tmp_path, name="again.tar.zst"), home, progress)
    assert same.prefix == build.prefix
    found = find(BuildRequest(VERSION), home)
    assert found is not None, "although the pin of the release is known"
    assert found.key == build.key
    assert find(BuildRequest(parse_version("mysql@9.7.1")), home) is None


def test_an_install_tree_is_exported_as_any_build(tmp_path: Path, home: Home, server_folder: Path) -> None:
    build = archives.import_(packed(tmp_path), home, Silent())
    (exported,) = archives.export([build], tmp_path / "out")
    there = archives.import_(exported, Home(server_folder / "there"), Silent())
    assert (there.key, there.manifest) == (build.key, build.manifest)


def test_trees_of_one_number_are_told_apart(tmp_path: Path, home: Home) -> None:
    progress = Silent()
    first = archives.import_(packed(tmp_path), home, progress)
    os.utime(tmp_path / "mysql-9.7.2/bin/mysqld", (2e9, 2e9))
    another = packed(tmp_path, SAYS.replace("Source", "Another"), name="another.tar.zst")
    second = archives.import_(another, home, progress)
    assert second.key != first.key
    found = provide(BuildRequest(VERSION), home, progress)
    assert found.key == second.key
    others = f"there are others of this version: mysql@NAME={first.prefix}"
    assert progress.notes[-1].endswith(f"{second.prefix.name}, which was imported; {others}")


@pytest.mark.parametrize(
    ("says", "program", "reason"),
    [
        ("mysqld  Ver 10.11.18-MariaDB for Linux", "mysqld", "says that it is"),
        (SAYS, "mysql", r"has no server in bin/"),
        ("' >&2; exit 1; echo '", "mysqld", "cannot be started"),
    ],
)
def test_a_tree_without_a_server_that_says_its_release_is_refused(
    tmp_path: Path, home: Home, says: str, program: str, reason: str
) -> None:
    with pytest.raises(TidemarkError, match=reason) as refused:
        archives.import_(packed(tmp_path, says, program), home, Silent())
    assert refused.value.hint
    assert not list(home.builds.glob("[!.]*"))
