"""Builds with an extension, compiled by the real PGXS against a real server."""

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from build import provide as provided
from build.accounts import COMPILE_USER
from build.cache.store import find, require_clean
from build.errors import TidemarkError
from build.extending import BASELINES, ExtensionCompileError, extended
from build.extension import parse_extension
from build.finished_build import Build
from build.home import Home
from build.host import architecture
from build.progress import Silent
from build.request import BuildRequest
from tests.tiny_extension import ONLY_SINCE_18, TinyExtension

pytestmark = [pytest.mark.server, pytest.mark.compile]


def made(build: Build, home: Home, *words: str) -> Build:
    return extended(build, [parse_extension(word) for word in words], home, Silent())


def test_each_commit_is_a_build_of_its_own_and_leaves_the_server_as_it_is(
    tmp_path: Path, server_folder: Path, postgres_17: Build
) -> None:
    tiny, home = TinyExtension(tmp_path / "tiny"), Home(server_folder)
    commit = tiny.tagged("v1")
    tiny.tagged("v2", factor=2)
    before = {path.name for path in (postgres_17.prefix / "lib").iterdir()}
    first, second = (made(postgres_17, home, f"label={tiny.path}@{ref}") for ref in ("v1", "v2"))
    assert len({postgres_17.key, first.key, second.key}) == 3
    assert first.extensions == ("tiny",), "the only control file, whatever it is called on the command line"
    assert first.manifest.extensions[0].commit == commit
    assert (first.prefix / "lib/tiny.so").is_file()
    assert (first.prefix / "share/extension/tiny.control").is_file()
    assert (first.prefix / "lib/tiny.so").read_bytes() != (second.prefix / "lib/tiny.so").read_bytes()
    assert {path.name for path in (postgres_17.prefix / "lib").iterdir()} == before
    require_clean(first)
    assert made(postgres_17, home, f"label={tiny.path}@v1").prefix == first.prefix, "from the cache"
    (first.prefix / "lib/tiny.so").unlink()
    assert find(home, first.key) is None, "it is damaged"
    assert (made(postgres_17, home, f"label={tiny.path}@v1").prefix / "lib/tiny.so").is_file()


def test_a_request_names_the_extensions_of_its_build(
    tmp_path: Path, server_folder: Path, postgres_17: Build
) -> None:
    tiny, home, progress = TinyExtension(tmp_path / "tiny"), Home(server_folder), Silent()
    commit = tiny.tagged("v1")
    home.builds.mkdir()
    (home.builds / postgres_17.prefix.name).symlink_to(postgres_17.prefix)
    request = BuildRequest(
        postgres_17.version.plain, extensions=(parse_extension(f"tiny={tiny.path}@v1"),), slim=()
    )
    assert provided.find(request, home) is None
    build = provided.provide(request, home, progress)
    assert (build.extensions, build.manifest.extensions[0].commit) == (("tiny",), commit)
    assert build.manifest.server == postgres_17.key, "a whole server, as extensions need it"
    assert (home.builds / ".used" / build.prefix.name).exists(), "pruning goes by the last use"
    assert provided.find(request, home) == build
    tiny.tagged("v2", factor=2)
    other = replace(request, extensions=(parse_extension(f"tiny={tiny.path}@v2"),))
    assert provided.find(other, home) is None


def test_what_is_installed_replaces_links_and_never_writes_through_them(
    tmp_path: Path, server_folder: Path, postgres_17: Build
) -> None:
    tiny, home = TinyExtension(tmp_path / "tiny"), Home(server_folder)
    tiny.tagged("v1")
    copy = made(postgres_17, home, f"tiny={tiny.path}@v1")
    makefile = (tiny.path / "Makefile").read_text()
    # What cp does to a file that is there: it writes into it.
    target = "$(DESTDIR)$(datadir)/extension"
    more = (
        f"\ninstall: over\nover: installdirs\n\tmkdir -p {target}; cp tiny.control {target}/plpgsql.control\n"
    )
    tiny.without("Makefile", "v2", text=makefile + more)
    control = Path("share/extension/plpgsql.control")
    original = (copy.prefix / control).read_text()
    replaced = made(copy, home, f"tiny={tiny.path}@v2")
    assert (replaced.prefix / control).read_text() != original
    assert (copy.prefix / control).read_text() == original


def test_it_is_compiled_for_any_processor_whatever_its_makefile_says(
    tmp_path: Path, server_folder: Path, postgres_17: Build
) -> None:
    tiny, home = TinyExtension(tmp_path / "tiny"), Home(server_folder)
    tiny.tagged("v1")
    makefile = (tiny.path / "Makefile").read_text()
    tiny.without("Makefile", "v2", text=f"PG_CFLAGS = -march=native\n{makefile}")
    made(postgres_17, home, f"tiny={tiny.path}@v2")
    (log,) = home.logs.glob("build-extension-*.log")
    (compiled,) = [
        line for line in log.read_text().splitlines() if line.startswith("gcc") and "tiny.c" in line
    ]
    flags = [word for word in compiled.split() if word.startswith("-march=")]
    assert flags == [BASELINES[architecture()]]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("Makefile", None, "has no Makefile"),
        ("Makefile", "all install:\n\ttrue\n", "does not use PGXS"),
        ("Makefile", "PG_CONFIG = x\nall install:\n\ttrue\n", "installs no control file"),
    ],
)
def test_what_is_no_extension_of_pgxs_is_refused(
    tmp_path: Path, server_folder: Path, postgres_17: Build, name: str, text: str | None, says: str
) -> None:
    tiny = TinyExtension(tmp_path / "tiny")
    tiny.tagged("v1")
    tiny.without(name, "v2", text=text)
    with pytest.raises(TidemarkError, match=says):
        made(postgres_17, Home(server_folder), f"tiny={tiny.path}@v2")
    assert not [path for path in (server_folder / "builds").iterdir() if path.name != ".locks"]


def test_one_that_does_not_compile_names_version_line_and_log(
    tmp_path: Path, server_folder: Path, postgres_17: Build
) -> None:
    tiny = TinyExtension(tmp_path / "tiny")
    tiny.tagged("v1", before=ONLY_SINCE_18)
    with pytest.raises(ExtensionCompileError) as raised:
        made(postgres_17, Home(server_folder), f"tiny={tiny.path}@v1")
    expected = "tiny v1 for postgres@17.11 does not compile: tiny.c:2:2: error: #error tiny needs Postgres 18"
    assert raised.value.what == expected
    assert Path(raised.value.where).is_file()
    assert "supports postgres@17.11" in raised.value.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to drop")
def test_its_makefile_has_no_rights_of_root(tmp_path: Path, server_folder: Path, postgres_17: Build) -> None:
    tiny, home, said = TinyExtension(tmp_path / "tiny"), Home(server_folder), server_folder / "said"
    said.mkdir()
    said.chmod(0o777)
    makefile = (tiny.path / "Makefile").read_text()
    stages = f"\n$(shell id -u >{said}/read)\ninstall: who\nwho:\n\tid -u >{said}/install\n"
    tiny.tagged("v1")
    tiny.without("Makefile", "v2", text=f"# -march=native\n{makefile}{stages}")
    build = made(postgres_17, home, f"tiny={tiny.path}@v2")
    user = str(pwd.getpwnam(COMPILE_USER).pw_uid)
    assert {(said / stage).read_text().strip() for stage in ("read", "install")} == {user}
    assert {path.lstat().st_uid for path in build.prefix.rglob("*")} == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to drop")
def test_a_makefile_that_is_a_link_changes_no_file_of_roots(
    tmp_path: Path, server_folder: Path, postgres_17: Build
) -> None:
    tiny, victim = TinyExtension(tmp_path / "tiny"), server_folder / "victim"
    victim.write_text(f"PG_CFLAGS = -march=native\n{(tiny.path / 'Makefile').read_text()}")
    before = victim.read_text()
    (tiny.path / "Makefile").unlink()
    (tiny.path / "Makefile").symlink_to(victim)
    tiny.tagged("v1")
    made(postgres_17, Home(server_folder), f"tiny={tiny.path}@v1")
    assert victim.read_text() == before
