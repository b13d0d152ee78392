"""MySQL's recipes, and an install tree of it that was made elsewhere."""

import json
import subprocess
import tarfile
from pathlib import Path
from types import ModuleType

import pytest

from build.build_spec import BuildRequest
from build.cache import archives
from build.cache.manifest import ArchiveError
from build.home import Home
from build.make import find, provide
from build.progress import Silent
from build.recipes import mariadb, mysql
from build.recipes.choices import PLAIN
from build.recipes.recipe import RecipeError
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


ABOUT = {
    "engine": "mysql",
    "version": "9.7.2",
    "source": {"kind": "apt-pool", "file": "mysql-9.7_9.7.2.orig.tar.gz", "sha256": "e5" * 32},
    "configure": ["-G", "Ninja"],
    "targets": ["mysqld"],
    "compiler": "gcc 12.2.0",
    "prefix": "mysql-9.7.2",
    "without": ["X plugin"],
}

PINNED_SOURCE = {
    "kind": "apt-pool",
    "file": "mysql-9.7_9.7.2.orig.tar.gz",
    "sha256": "e5a676c7cb73738dc6ea33db2093806ebd512b629a139b897fcab68fcd81aaa4",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An archive of an install tree with its description."""
    program = tmp_path / "mysql-9.7.2/bin/mysqld"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho it runs\n")
    program.chmod(0o755)
    plain = tmp_path / "tree.tar"
    with tarfile.open(plain, "w") as tar:
        tar.add(program.parents[1], "mysql-9.7.2")
    archive = tmp_path / "mysql-9.7.2-linux-x86_64-glibc2.17.tar.zst"
    subprocess.run(["zstd", "-q", str(plain), "-o", str(archive)], check=True)
    archive.with_name("mysql-9.7.2-linux-x86_64-glibc2.17.json").write_text(json.dumps(ABOUT))
    return archive


def test_an_install_tree_made_elsewhere_is_taken_in(tree: Path, server_folder: Path) -> None:
    home, progress = Home(server_folder / "home"), Silent()
    build = archives.import_(tree, home, progress)
    assert subprocess.check_output([build.program("mysqld")], text=True) == "it runs\n"
    assert (build.release, str(build.version)) == ("9.7.2", "mysql@9.7.2")
    assert build.manifest.source.digest == "sha256:" + "e5" * 32
    assert build.manifest.without == ["X plugin"]
    assert archives.import_(tree, home, progress).key == build.key
    assert "already in the build cache" in progress.notes[-1]


def test_trees_of_one_number_are_told_apart(tree: Path, tmp_path: Path, server_folder: Path) -> None:
    home, progress = Home(server_folder / "home"), Silent()
    sidecar = tree.with_name(tree.name.replace(".tar.zst", ".json"))
    pinned = {**ABOUT, "source": PINNED_SOURCE}
    sidecar.write_text(json.dumps(pinned))
    first = archives.import_(tree, home, progress)
    plain = tmp_path / "tree.tar"
    with tarfile.open(plain, "w") as tar:
        (tmp_path / "mysql-9.7.2/bin/mysqld").write_text("#!/bin/sh\necho another\n")
        tar.add(tmp_path / "mysql-9.7.2", "mysql-9.7.2")
    subprocess.run(["zstd", "-q", "-f", str(plain), "-o", str(tree)], check=True)
    with pytest.raises(ArchiveError, match=f"same description was imported as {first.prefix.name}"):
        archives.import_(tree, home, progress)
    sidecar.write_text(json.dumps({**pinned, "compiler": "clang 14", "built": "2026-01-01"}))
    second = archives.import_(tree, home, progress)
    assert second.key != first.key
    found = provide(BuildRequest(parse_version("mysql@9.7.2")), home, progress)
    assert found.key == second.key
    others = f"there are others of this version: mysql@NAME={first.prefix}"
    assert progress.notes[-1].endswith(f"{second.prefix.name}, which was imported; {others}")


def test_a_release_with_a_pin_takes_only_the_tree_of_that_source(tree: Path, server_folder: Path) -> None:
    home = Home(server_folder / "home")
    archives.import_(tree, home, Silent())
    assert find(BuildRequest(parse_version("mysql@9.7.2")), home) is None
    sidecar = tree.with_name(tree.name.replace(".tar.zst", ".json"))
    sidecar.write_text(json.dumps({**ABOUT, "source": PINNED_SOURCE}))
    build = archives.import_(tree, home, Silent())
    found = find(BuildRequest(parse_version("mysql@9.7.2")), home)
    assert found is not None
    assert found.key == build.key


def test_a_tree_whose_name_says_no_platform_is_refused(tree: Path, tmp_path: Path) -> None:
    renamed = tree.rename(tree.with_name("mysql.tar.zst"))
    tree.with_name("mysql-9.7.2-linux-x86_64-glibc2.17.json").rename(renamed.with_name("mysql.json"))
    with pytest.raises(ArchiveError, match="does not give architecture and C library"):
        archives.import_(renamed, Home(tmp_path / "home"), Silent())


def test_a_tree_for_a_newer_c_library_is_refused(tree: Path, tmp_path: Path) -> None:
    new = "mysql-9.7.2-linux-x86_64-glibc99.9"
    tree.with_name("mysql-9.7.2-linux-x86_64-glibc2.17.json").rename(tree.with_name(f"{new}.json"))
    with pytest.raises(ArchiveError, match=r"needs glibc 99\.9"):
        archives.import_(tree.rename(tree.with_name(f"{new}.tar.zst")), Home(tmp_path / "home"), Silent())
