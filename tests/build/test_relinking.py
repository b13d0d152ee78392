"""Layouts: what a build keeps of its link, and servers linked again with their functions in another order."""

import os
import subprocess
from pathlib import Path

import pytest

from build.cache import store
from build.errors import TidemarkError
from build.finished_build import Build
from build.home import Home
from build.host import HostError
from build.progress import Silent
from build.provide import provide
from build.recipes import postgres
from build.recipes.recipe import RecipeError
from build.relink import RelinkError, can_relink, relink, relinkable, require_linker
from build.request import RECIPES, BuildRequest, build_spec
from build.sources.source import Source
from build.version import Engine, parse_version
from tests.build.stand import Pins, Stand
from tests.manifests import a_manifest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to drop")

RELEASE = parse_version("postgres@18.99")
FUNCTIONS = 30
SOURCE = (
    "#include <stdio.h>\n"
    + "".join(
        f"__attribute__((noinline)) int work{n}(int x) {{ return x * {n + 3} + 1; }}\n"
        for n in range(FUNCTIONS)
    )
    + "int main(void) { int x = 1;\n"
    + "".join(f"x = work{n}(x) & 0xffff;\n" for n in range(FUNCTIONS))
    + 'printf("%d\\n", x); return 0; }\n'
)
MAKEFILE = "postgres: main.o\n\tgcc -fuse-ld=lld -o postgres main.o\n"


@pytest.fixture
def build(server_folder: Path) -> Build:
    """A server of thirty functions, linked as the recipe of Postgres says."""
    source, staging = server_folder / "source", server_folder / "staging"
    backend = source / "src/backend"
    backend.mkdir(parents=True)
    (backend / "main.c").write_text(SOURCE)
    (backend / "Makefile").write_text(MAKEFILE)
    words = ["gcc", "-O2", "-ffunction-sections", "-c", "main.c"]
    subprocess.run(words, cwd=backend, check=True)
    recipe = relinkable(postgres.recipe("18.6", lambda name: False), postgres.LINK)
    keep = [word.replace("{staging}", str(staging)) for word in recipe.stages[-1].command]
    subprocess.run(keep, cwd=source, check=True)
    prefix = staging / recipe.prefix.lstrip("/")
    for folder in ("bin", "share"):
        (prefix / folder).mkdir()
    (backend / "postgres").rename(prefix / "bin/postgres")
    (prefix / "bin/psql").write_text("psql")
    (prefix / "share/errors.txt").write_text("errors")
    source.rename(server_folder / "gone")
    return Build(parse_version("postgres@18.6"), "18.6", "f" * 64, prefix, a_manifest())


def order(program: Path) -> list[str]:
    """The functions of a program by address."""
    said = subprocess.run(["nm", "-n", program], capture_output=True, text=True, check=True).stdout
    return [line.split()[-1] for line in said.splitlines() if " work" in line]


def test_a_layout_is_the_same_server_in_another_order(build: Build, server_folder: Path) -> None:
    before = build.program("postgres").read_bytes()
    layouts = relink(build, (7, 8), server_folder / "layouts")
    said = {
        subprocess.run([layout.program("postgres")], capture_output=True, check=True).stdout
        for layout in (build, *layouts)
    }
    assert len(said) == 1
    orders = [order(layout.program("postgres")) for layout in (build, *layouts)]
    assert all(sorted(listed) == sorted(orders[0]) and len(listed) == FUNCTIONS for listed in orders)
    assert len({tuple(listed) for listed in orders}) == 3
    assert [layout.key for layout in layouts] == [build.key] * 2
    assert (layouts[0].prefix / "share/errors.txt").read_text() == "errors"
    assert layouts[0].program("psql").read_text() == "psql"
    assert not layouts[0].program("postgres").is_symlink(), "it finds its files from where it lies"
    assert build.program("postgres").read_bytes() == before


def test_a_seed_gives_its_layout_again(build: Build, server_folder: Path) -> None:
    (first,) = relink(build, (7,), server_folder / "one")
    (again,) = relink(build, (7,), server_folder / "again")
    assert first.program("postgres").read_bytes() == again.program("postgres").read_bytes()


def test_a_build_that_kept_nothing_is_refused(build: Build, server_folder: Path) -> None:
    assert can_relink(build)
    (build.prefix / "relink").rename(server_folder / "relink")
    assert not can_relink(build)
    with pytest.raises(RelinkError, match=r"postgres@18.6 did not keep what its server is linked from"):
        relink(build, (7,), server_folder / "layouts")


def test_what_the_linker_says_is_passed_on(build: Build, server_folder: Path) -> None:
    next(build.prefix.glob("relink/inputs/**/main.o")).write_text("no object")
    with pytest.raises(RelinkError, match=r"(?s)cannot be linked again: .*main\.o"):
        relink(build, (7,), server_folder / "layouts")


@needs_root
def test_words_that_a_compile_has_left_for_the_linker_write_nothing_as_root(
    build: Build, server_folder: Path
) -> None:
    victim = server_folder / "victim"
    victim.write_text("root's")
    victim.chmod(0o600)
    (response,) = build.prefix.glob("relink/inputs/response.txt")
    response.write_text(f"{response.read_text()}\n-Map={victim}\n")
    with pytest.raises(RelinkError, match="cannot open map file"):
        relink(build, (7,), server_folder / "layouts")
    assert victim.read_text() == "root's"


def test_without_the_linker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match=r"layouts need ld\.lld.*: it is not installed") as error:
        require_linker()
    assert "tidemark setup" in error.value.hint
    broken = tmp_path / "ld.lld"
    broken.write_text("#!/bin/sh\necho no such toolchain; exit 1\n")
    broken.chmod(0o755)
    with pytest.raises(HostError, match="no such toolchain"):
        require_linker()


def test_an_engine_that_was_not_tried_is_refused() -> None:
    recipe = RECIPES[Engine.MYSQL].recipe("9.7.2", lambda name: False)
    with pytest.raises(RecipeError, match="MySQL once more has not been tried"):
        relinkable(recipe, RECIPES[Engine.MYSQL].LINK)


def test_a_build_that_can_be_linked_again_is_another_one(
    home: Home, progress: Silent, stand: Stand, versions: Pins
) -> None:
    versions(r18_99=stand.tarball(home.sources / "postgresql-18.99.tar.bz2"))
    plain = provide(BuildRequest(RELEASE), home, progress)
    source = Source(RELEASE, "tarball", "", plain.manifest.source.digest, None)
    spec = build_spec(source, BuildRequest(RELEASE, relinks=True))
    assert spec.key != plain.key
    configure = spec.recipe.stages[0].command
    assert any(word.endswith("-g -ffunction-sections") for word in configure)
    assert "LDFLAGS=-fuse-ld=lld" in configure
    with pytest.raises(TidemarkError, match="keep what the server is linked from"):
        provide(BuildRequest(RELEASE, relinks=True), home, progress)  # the stand-in has no server to link
    assert [all_build.key for all_build in store.all_builds(home)] == [plain.key]
