"""A repository that another user owns: taken only where a person names it, and no program of it runs then."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from build import environment
from build.compile import apply_patches
from build.compile_commands import CompileCommands
from build.engines import ENGINES
from build.home import Home
from build.progress import Silent
from build.request import Patch
from build.sources import git
from build.sources.git import GitError, clone_at
from build.sources.repository import clone_around, engine_of, known_address
from build.sources.source import obtain
from build.version import Engine, parse_version
from runners import own_version
from runners.cli import main
from runners.trying.sides import sides_of
from tests.build.stand import Repository
from tests.plain_repository import PlainRepository

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def give(path: Path) -> None:
    """Give a folder and what is in it to nobody."""
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(path)], check=True)


@pytest.fixture
def foreign(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Nobody's repository with source of Postgres, around a folder of root's in which commands start."""
    for name in ENGINES[Engine.POSTGRES].tree_files:
        (repository.path / name / "x").parent.mkdir(parents=True, exist_ok=True)
        (repository.path / name / "x").write_text(name)
    repository.commit("one")
    repository.commit("two")
    repository.git("branch", "master")
    give(repository.path)
    (repository.path / "mine").mkdir()
    monkeypatch.chdir(repository.path / "mine")
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("SUDO_UID", raising=False)
    return repository


@pytest.mark.parametrize(
    "words",
    [
        ["build", "postgres@master"],
        ["run", "postgres@master", "postgres@master~1", "--profile", "smoke"],
        ["calibrate", "postgres@master"],
        ["bisect", "--good", "master~1", "--bad", "master", "--step", "insert"],
        ["try"],
        ["try", "master"],
        ["compare", "postgres@HEAD~1", "postgres@HEAD"],
        ["profile", "show", "postgres@HEAD~1", "--step", "insert"],
    ],
    ids=" ".join,
)
def test_no_command_takes_it_because_it_is_around(
    words: list[str], foreign: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"{foreign.path}/.git, of user id {NOBODY}" in said
    assert f"--git {foreign.path}" in said
    assert foreign.stand.times_configured() == 0


def test_it_is_taken_when_it_is_named_or_git_takes_it(
    foreign: Repository, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = obtain(parse_version("postgres@master"), home, Silent(), str(foreign.path))
    assert named.commit is not None
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    assert known_address(Engine.POSTGRES, None) == str(foreign.path)
    monkeypatch.delenv("SUDO_UID")
    with pytest.raises(GitError, match="is not yours"):
        known_address(Engine.POSTGRES, None)
    (tmp_path / "gitconfig").write_text(f"[safe]\n\tdirectory = {foreign.path}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    assert known_address(Engine.POSTGRES, None) == str(foreign.path)


def test_one_of_something_else_is_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = PlainRepository(tmp_path / "other")
    other.commit("x")
    give(other.path)
    monkeypatch.chdir(other.path)
    assert clone_around() is None


def test_files_that_others_put_into_a_shared_folder_are_no_repository(
    foreign: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git takes HEAD, objects and refs for a bare repository of the owner of their folder, as of /tmp."""
    shared = tmp_path / "shared"
    (shared / "mine").mkdir(parents=True)
    subprocess.run(["cp", "-r", *map(str, (foreign.path / ".git").iterdir()), str(shared)], check=True)
    (shared / ".git").mkdir()
    for path in shared.iterdir():
        give(path)
    for name in ENGINES[Engine.POSTGRES].tree_files:
        (shared / name).mkdir()
    monkeypatch.chdir(shared / "mine")
    with pytest.raises(GitError, match="is not yours, or is damaged"):
        known_address(Engine.POSTGRES, None)


def planted(repository: Path, ran: Path) -> None:
    """Have every setting of a repository that can name a program name one that notes that it ran."""
    program = repository / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >>{ran}\ncase $1 in clean | smudge) cat ;; esac\n')
    program.chmod(0o755)
    settings = {
        **{f"filter.x.{name}": f"{program} {name}" for name in ("clean", "smudge")},
        **{f"diff.x.{name}": f"{program} {name}" for name in ("command", "textconv")},
        **dict.fromkeys(("core.fsmonitor", "core.sshCommand", "core.alternateRefsCommand"), str(program)),
        **dict.fromkeys(("diff.external", "gpg.program", "core.pager", "core.editor"), str(program)),
        "protocol.ext.allow": "always",
        "log.showSignature": "true",
        "status.submoduleSummary": "true",
        "core.hooksPath": str(repository / "hooks"),
        "core.attributesFile": str(repository / "attributes"),
        "remote.x.promisor": "true",
        "remote.x.url": str(repository),
        "remote.x.uploadpack": str(program),
    }
    git_dir = repository / ".git" if (repository / ".git").is_dir() else repository
    for name, value in settings.items():
        command = ["git", "config", "--file", str(git_dir / "config"), name, value]
        subprocess.run(command, check=True)
    (git_dir / "info").mkdir(exist_ok=True)
    for path in (repository / "attributes", git_dir / "info/attributes"):
        path.write_text("* filter=x diff=x\n")
    (repository / "hooks").mkdir(exist_ok=True)
    for hook in ("post-index-change", "reference-transaction", "post-checkout"):
        (repository / "hooks" / hook).symlink_to(program)


def test_no_program_that_it_names_is_started(foreign: Repository, home: Home, tmp_path: Path) -> None:
    module = PlainRepository(tmp_path / "module")
    module.commit("m")
    allow = ("-c", "protocol.file.allow=always", "-c", "safe.directory=*")
    foreign.git(*allow, "submodule", "--quiet", "add", str(module.path), "module")
    foreign.git(*allow, "commit", "--quiet", "--message", "a module")
    ran = tmp_path / "ran"
    for name in (foreign.path, foreign.path / ".git/modules/module"):
        planted(name, ran)
    (foreign.path / "module/m").write_text("changed\n")
    (foreign.path / "message").write_text("changed\n")
    give(foreign.path)
    sides = sides_of([], "master", Engine.POSTGRES, str(foreign.path), home)
    (patch,) = sides.variants["try"].patches
    assert "-two\n" in patch.read_text().replace("\\ No newline at end of file\n", "")
    assert "+changed\n" in patch.read_text()
    obtain(parse_version("postgres@master"), home, Silent(), str(foreign.path))
    assert not ran.exists(), ran.read_text()


def test_what_it_lacks_is_not_fetched(foreign: Repository, tmp_path: Path) -> None:
    """Git fetches a missing object by the program that the settings of a remote name."""
    planted(foreign.path, tmp_path / "ran")
    tree = foreign.git("-c", "safe.directory=*", "rev-parse", "HEAD^{tree}")
    (foreign.path / ".git/objects" / tree[:2] / tree[2:]).unlink()
    clone = clone_at(foreign.path)
    assert clone is not None
    assert engine_of(clone) is None
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_a_patch_is_applied_without_the_repository_around(
    foreign: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bare, in a folder of root's, so that git itself takes it."""
    shared = tmp_path / "shared"
    subprocess.run(["git", "init", "--quiet", "--bare", str(shared)], check=True)
    planted(shared, tmp_path / "ran")
    tree = shared / "scratch"
    tree.mkdir()
    (tree / "part.c").write_text("int part;\n")
    patch = tmp_path / "part.patch"
    patch.write_text("--- a/part.c\n+++ b/part.c\n@@ -1 +1 @@\n-int part;\n+int other;\n")
    log = tmp_path / "log"
    log.touch()
    work = CompileCommands("postgres@18.99", log, environment.compiling(), counted=re.compile(b"$^"))
    version = parse_version("postgres@18.99")
    apply_patches((Patch(patch, "0" * 64),), tree, work, version)
    assert (tree / "part.c").read_text() == "int other;\n"
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_a_list_of_refs_is_asked_for_outside_of_any_repository(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = PlainRepository(tmp_path / "other")
    other.commit("x")
    shared = tmp_path / "shared"
    subprocess.run(["git", "init", "--quiet", "--bare", str(shared)], check=True)
    name = f"url.{other.path}.insteadOf"
    subprocess.run(["git", "-C", str(shared), "config", name, "https://127.0.0.1:1/pg"], check=True)
    monkeypatch.chdir(shared)
    with pytest.raises(GitError, match="ls-remote failed"):
        git.mirror("https://127.0.0.1:1/pg", Engine.POSTGRES, home).names()


def test_a_checkout_without_git_has_no_version_of_what_is_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PlainRepository(tmp_path / "other").commit("x")
    (tmp_path / "other/tidemark").mkdir()
    monkeypatch.setattr(own_version, "ROOT", tmp_path / "other/tidemark")
    assert own_version.own_version() == "unknown"
