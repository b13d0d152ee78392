"""A try without arguments: what a developer has in a clone, against where it left its upstream."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from build.engines import ENGINES
from build.errors import TidemarkError
from build.home import ROOT, Home
from build.version import Engine
from runners.trying.own_clone import engine_here
from runners.trying.sides import Sides, sides_of
from tests.build.sources.test_clone import files_of
from tests.plain_repository import PlainRepository


class Developer:
    """Upstream's repository, and a developer's clone of it."""

    def __init__(self, folder: Path) -> None:
        self.home = Home(folder / "home")
        self.upstream = PlainRepository(folder / "upstream")
        for name in ENGINES[Engine.POSTGRES].tree_files:
            self.base = self.upstream.commit(f"{name}/x")
        subprocess.run(["git", "clone", "-q", str(self.upstream.path), str(folder / "clone")], check=True)
        self.work = PlainRepository.__new__(PlainRepository)
        self.work.path = folder / "clone"

    def sides(self, against: str | None = None) -> Sides:
        return sides_of([], against, Engine.POSTGRES, None, self.home)


@pytest.fixture
def developer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Developer:
    made = Developer(tmp_path)
    monkeypatch.delenv("TIDEMARK_GIT_POSTGRES", raising=False)
    monkeypatch.chdir(made.work.path / "src")
    return made


def test_commits_and_what_is_uncommitted_are_tried(developer: Developer) -> None:
    work, base = developer.work, developer.base
    work.git("checkout", "-q", "-b", "topic")
    head = work.commit("src/y")
    (work.path / "src/x").write_bytes(b"caf\xe9, changed\n")
    work.git("add", "src/x")
    (work.path / "src/z").write_text("new, and added\n")
    work.git("add", "src/z")
    (work.path / "notes").write_text("mine\n")
    before = files_of(work.path)
    sides = developer.sides()
    assert (sides.base.ref, sides.tip.ref, sides.tip.variant) == (
        f"git:{base[:12]}",
        f"git:{head[:12]}",
        "try",
    )
    assert sides.described == (
        f"1 commit up to {head[:12]} and what is uncommitted in 2 files against {base[:12]}, where it leaves "
        "origin/main"
    )
    assert sides.notes == ("left out: 1 untracked file (notes); git add takes a file in",)
    (patch,) = sides.variants["try"].patches
    assert b"+caf\xe9, changed" in patch.read_bytes()
    assert b"+new, and added" in patch.read_bytes()
    assert files_of(work.path) == before
    work.git("commit", "-qam", "all")
    plain = developer.sides()
    assert (plain.base, plain.tip.variant, plain.variants) == (sides.base, "", {})


def test_on_the_main_branch_only_what_is_uncommitted_is_tried(developer: Developer) -> None:
    with pytest.raises(TidemarkError, match="origin/main contains HEAD, and no change of a tracked file"):
        developer.sides()
    (developer.work.path / "src/x").write_text("changed\n")
    sides = developer.sides()
    assert sides.base.ref == sides.tip.ref == f"git:{developer.base[:12]}"
    assert sides.described == f"what is uncommitted in 1 file against {developer.base[:12]}, the HEAD of main"


def test_the_upstream_branch_is_the_tracked_one_unless_that_is_its_own_copy(developer: Developer) -> None:
    developer.upstream.git("branch", "REL_18_STABLE")
    moved = developer.upstream.commit("src/later")
    developer.work.git("fetch", "-q")
    developer.work.git("checkout", "-q", "REL_18_STABLE")
    developer.work.commit("src/fix")
    assert developer.sides().described.endswith("where it leaves origin/REL_18_STABLE")
    developer.work.git("checkout", "-q", "-b", "topic", "origin/main")
    developer.work.commit("src/y")
    developer.work.git("push", "-q", "-u", "origin", "topic")
    sides = developer.sides()
    assert sides.base.ref == f"git:{moved[:12]}"
    assert sides.described.endswith("where it leaves origin/main")
    assert developer.sides("REL_18_STABLE").base.ref == f"git:{developer.base[:12]}"


def test_the_settings_by_which_files_compare_are_those_of_the_clone(developer: Developer) -> None:
    work = developer.work
    (work.path / "src/x").write_text("changed\n")
    work.git("config", "core.fileMode", "false")
    (work.path / "contrib/x").chmod(0o755)
    (work.path / ".git/info/exclude").write_text("mine\n")
    (work.path / "mine").write_text("x")
    work.git("update-index", "--split-index")
    sides = developer.sides()
    assert sides.described.startswith("what is uncommitted in 1 file against")
    assert sides.notes == ()


def test_a_submodule_is_said(developer: Developer, tmp_path: Path) -> None:
    PlainRepository(tmp_path / "module").commit("m")
    allow = ("-c", "protocol.file.allow=always")
    developer.work.git(*allow, "submodule", "--quiet", "add", str(tmp_path / "module"), "src/module")
    developer.work.git("commit", "-q", "-m", "a module")
    assert developer.sides().notes == ("left out: submodules (src/module), which no build has",)


def test_conflicts_are_named(developer: Developer) -> None:
    work = developer.work
    work.git("checkout", "-q", "-b", "topic")
    (work.path / "src/x").write_text("one\n")
    work.git("commit", "-qam", "one")
    work.git("checkout", "-q", "main")
    (work.path / "src/x").write_text("two\n")
    work.git("commit", "-qam", "two")
    with pytest.raises(subprocess.CalledProcessError):
        work.git("merge", "-q", "topic")
    with pytest.raises(TidemarkError, match="left conflicts") as caught:
        developer.sides()
    assert caught.value.where.endswith("/clone: src/x")


def test_the_engine_is_known_by_the_files(
    developer: Developer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engine_here(None) is Engine.POSTGRES
    other = PlainRepository(tmp_path / "other")
    other.commit(".gitmodules")
    for engine in (Engine.MYSQL, Engine.MARIADB):
        for name in ENGINES[engine].tree_files:
            other.commit(f"{name}/x")
        assert engine_here(str(other.path)) is engine
        other.git("rm", "-rq", "libmysql" if engine is Engine.MYSQL else "mysys")
    other.git("reset", "-q", "--hard", "HEAD")
    with pytest.raises(TidemarkError, match="MariaDB have submodules"):
        sides_of([], None, Engine.MARIADB, str(other.path), developer.home)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TidemarkError, match="no clone to look into") as caught:
        developer.sides()
    assert "Postgres, MySQL, MariaDB" in caught.value.hint


@pytest.mark.parametrize(
    "words", [["try", "mastr"], ["try", "HEAD", "--against", "mastr"], ["build", "postgres@mastr"]]
)
def test_a_ref_that_does_not_exist_is_refused_before_what_measures_is_loaded(
    developer: Developer, words: list[str]
) -> None:
    developer.work.git("branch", "-M", "master")
    program = (
        "import sys; from runners.cli import main; code = main(sys.argv[1:]);"
        "print(code, *({'numpy', 'sqlalchemy', 'pydantic'} & sys.modules.keys()))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TIDEMARK_HOME": str(developer.home.path)}
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout == "2\n"
    assert "no tag, branch or commit 'mastr'" in done.stderr
    assert "did you mean master?" in done.stderr
