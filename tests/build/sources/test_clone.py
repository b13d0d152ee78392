"""A clone on this machine: read in place, never written to; and refs that are checked before any fetch."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from build.home import Home
from build.sources import git
from build.sources.commits import merge_base
from build.sources.git import GitError, NoSuchRefError, clone_at
from build.sources.repository import clone_around
from build.version import Engine
from tests.build.stand import Repository


def mirror_of(address: object, home: Home) -> git.Mirror:
    return git.mirror(str(address), Engine.POSTGRES, home)


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_objects_are_borrowed_and_nothing_is_written(home: Home, repository: Repository) -> None:
    first = repository.commit("one", big="x" * 100_000)
    repository.git("tag", "v1")
    second = repository.commit("two")
    repository.git("checkout", "-q", "-b", "topic")
    before = files_of(repository.path)
    source = mirror_of(repository.path, home)
    for ref, commit in (("v1", first), ("main", second), ("main~1", first), ("HEAD", second)):
        source.require(ref)
        assert source.fetch(ref).commit == commit
    assert merge_base(source, Engine.POSTGRES, "topic", "v1") == (second, first)
    held = [path for path in (source.path / "objects").rglob("*") if path.is_file()]
    assert [path.name for path in held] == ["alternates"]
    assert files_of(repository.path) == before


def test_a_source_is_unpacked_from_borrowed_objects(home: Home, repository: Repository) -> None:
    repository.commit("one")
    with git.archive(mirror_of(repository.path, home).fetch("main")) as stream:
        assert stream.stdout is not None
        with tarfile.open(fileobj=stream.stdout, mode="r|") as tree:
            assert "message" in [member.name for member in tree]


def test_branches_that_only_the_remote_of_a_clone_has(
    home: Home, repository: Repository, tmp_path: Path
) -> None:
    repository.commit("one")
    repository.git("branch", "REL_18_STABLE")
    commit = repository.commit("two")
    subprocess.run(["git", "clone", "-q", str(repository.path), str(tmp_path / "clone")], check=True)
    source = mirror_of(tmp_path / "clone", home)
    assert source.fetch("origin/main").commit == commit
    assert source.fetch("REL_18_STABLE").commit == source.fetch("main~1").commit


def test_a_work_tree_has_a_head_of_its_own(home: Home, repository: Repository, tmp_path: Path) -> None:
    first = repository.commit("one")
    second = repository.commit("two")
    repository.git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), first)
    assert mirror_of(tmp_path / "tree", home).fetch("HEAD").commit == first
    assert mirror_of(repository.path, home).fetch("HEAD").commit == second


def test_what_a_clone_has_removed_breaks_nothing_else(home: Home, repository: Repository) -> None:
    repository.commit("one")
    repository.git("checkout", "-q", "-b", "topic")
    lost = repository.commit("two")
    source = mirror_of(repository.path, home)
    assert source.fetch("topic").commit == lost
    repository.git("checkout", "-q", "main")
    repository.git("branch", "-q", "-D", "topic")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "-q", "--prune=now")
    with pytest.raises(NoSuchRefError, match=lost):
        source.fetch(lost)
    assert source.fetch("main").commit == repository.git("rev-parse", "main")


@pytest.mark.parametrize("prefix", ["", "file://"], ids=["a path", "a server"])
def test_a_mistyped_ref_is_refused_before_anything_is_fetched(
    prefix: str, home: Home, repository: Repository
) -> None:
    repository.commit("one")
    repository.git("branch", "REL_18_STABLE")
    source = mirror_of(f"{prefix}{repository.path}", home)
    with pytest.raises(NoSuchRefError, match="'REL_18_STABEL'") as caught:
        merge_base(source, Engine.POSTGRES, "main", "REL_18_STABEL")
    assert caught.value.hint.startswith(
        "did you mean REL_18_STABLE? list tags and branches with: git ls-remote"
    )
    fetched = [path.name for path in source.path.rglob("*") if path.is_file() and "objects" in path.parts]
    assert set(fetched) <= {"alternates"}


def test_a_branch_that_has_not_moved_is_not_fetched_again(
    home: Home, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.commit("one")
    source = mirror_of(f"file://{repository.path}", home)
    source.fetch("main")
    monkeypatch.setattr(git, "FETCH_SECONDS", 0.0)
    assert source.fetch("main").commit == commit
    repository.commit("two")
    with pytest.raises(GitError, match="git fetch took longer"):
        source.fetch("main")


def test_a_folder_in_another_repository_is_no_clone(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("one")
    assert clone_at(repository.path / "src") is None
    assert clone_at(repository.path / ".git") is not None
    monkeypatch.chdir(repository.path / "src")
    assert clone_around() == clone_at(repository.path)
