"""The mirror of a home that another user may write: what it names as programs is not started."""

import os
from pathlib import Path

import pytest

from build.sources.git import GitError, Mirror
from tests.build.stand import Repository

HOSTILE = """[core]
\trepositoryformatversion = 1
[extensions]
\tpartialClone = elsewhere
[remote "elsewhere"]
\turl = {path}
\tpromisor = true
\tuploadpack = touch {mark};
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a repository of another user needs root")
def test_its_commits_are_read_and_its_configuration_is_not(repository: Repository, tmp_path: Path) -> None:
    """git would fetch an object that is missing, by the program that the configuration names."""
    commit, mark = repository.commit("one"), tmp_path / "mark"
    path = repository.path / ".git"
    with (path / "config").open("a") as file:
        file.write(HOSTILE.format(path=repository.path, mark=mark))
    os.chown(path, 40001, 40001)
    mirror = Mirror(str(path), path)
    assert mirror.query("log", "--format=%s", commit).strip() == "one"
    with pytest.raises(GitError):
        mirror.query("cat-file", "-e", "1" * 40)
    assert not mark.exists()
