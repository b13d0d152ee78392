"""A repository on this machine, such as a developer's clone, which is only read: nothing is written to it.

Its settings belong to whoever owns it, and can name programs: filters, a monitor of files, what a fetch
starts. None of them runs: in the repository itself git is asked for refs, names and settings only, without a
transport, and its work tree is compared from the mirror.
"""

import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from build.programs.environment import NO_GIT_SETTINGS
from build.sources import git_command
from build.sources.git_command import GitError

_PATHS = ("--git-path", "objects", "--git-path", "shallow", "--git-path", "index")
_FACTS = ("rev-parse", "--path-format=absolute", "--absolute-git-dir", *_PATHS, "--show-prefix")

# A missing object would be fetched by programs that the settings name (git's promisor remotes).
_NO_TRANSPORT = {"GIT_ALLOW_PROTOCOL": "none"}

_OF_FILES = r"^core\.(autocrlf|eol|excludesfile|filemode|ignorecase|precomposeunicode|symlinks)$"
"""The settings that say how files are compared; none of them names a program."""

_VERIFY = ("rev-parse", "--verify", "--quiet", "--end-of-options")

HEAD = "HEAD"
"""What is checked out in a clone."""


@dataclass(frozen=True)
class Clone:
    """A repository on this machine."""

    git_dir: Path
    """That of its work tree, where it has one: HEAD is what is checked out there."""

    objects: Path
    """The folder of its objects, which work trees share."""

    shallow: Path
    """The file that exists if history is missing."""

    index: Path
    """The file with what is staged; there is none before something is."""

    root: Path
    """The top of its work tree; the repository itself if it is bare."""

    def commit(self, name: str) -> str | None:
        """Return the commit, 40 hex digits, of a full ref such as `refs/tags/v1`; None if there is none."""
        try:
            return self.read(*_VERIFY, f"{name}^{{commit}}").strip()
        except GitError:
            return None

    def branch(self, ref: str) -> str | None:
        """Return the commit of a branch by its name here, in a remote (`origin/topic`), or in `origin`.

        HEAD is what is checked out. Return None if there is no such branch.
        """
        places = ("refs/heads/", "refs/remotes/", "refs/remotes/origin/")
        names = [f"{place}{ref}" for place in places]
        if ref.startswith(HEAD):
            names.insert(0, ref)
        return next((found for name in names if (found := self.commit(name)) is not None), None)

    def names(self) -> list[str]:
        """Return the names of all branches and tags."""
        listed = self.read("for-each-ref", "--format=%(refname)").split()
        kinds = ("refs/heads/", "refs/tags/", "refs/remotes/origin/", "refs/remotes/")
        found = (name.removeprefix(kind) for kind in kinds for name in listed if name.startswith(kind))
        return list(dict.fromkeys(found))

    @property
    def has_tree(self) -> bool:
        """Whether files are checked out."""
        return self.root != self.git_dir

    def read(self, *arguments: str) -> str:
        """Return the output of a git command that reads refs, names or settings. Raises GitError."""
        return git_command.run(*arguments, git_dir=self.git_dir, variables=_NO_TRANSPORT)

    def read_tree(self, mirror: Path, *arguments: str) -> str:
        """Return the output of a git command that compares the work tree, in the repository `mirror`.

        That one has the objects of HEAD. Git gets a copy of the index, and of all settings only those that
        say how files are compared. Raises GitError.
        """
        variables = {
            **_NO_TRANSPORT,
            **NO_GIT_SETTINGS,
            **self._settings_of_files(),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.objects),  # of what is staged
        }
        with tempfile.TemporaryDirectory() as folder:
            variables["GIT_INDEX_FILE"] = f"{folder}/{self.index.name}"
            for file in (self.index, *self.index.parent.glob("sharedindex.*")):  # git-update-index(1)
                if file.is_file():
                    shutil.copy2(file, folder)  # with its time: git compares files that changed since
            return git_command.run(*arguments, git_dir=mirror, work_tree=self.root, variables=variables)

    def _settings_of_files(self) -> dict[str, str]:
        """Return variables with the settings of the clone, and of its user, by which files compare."""
        try:
            found = self.read("config", "-z", "--get-regexp", _OF_FILES).split("\0")[:-1]
        except GitError:  # there are none
            found = []
        variables = {"GIT_CONFIG_COUNT": str(len(found))}
        for number, setting in enumerate(found):
            key, has_value, value = setting.partition("\n")
            variables[f"GIT_CONFIG_KEY_{number}"] = key
            variables[f"GIT_CONFIG_VALUE_{number}"] = value if has_value else "true"
        return variables

    def names_in(self, ref: str) -> set[str]:
        """Return the names at the top of the tree of a ref; empty if there is no such ref."""
        try:
            return set(self.read("ls-tree", "--name-only", ref).splitlines())
        except GitError:
            return set()

    def is_published(self, commit: str) -> bool:
        """Return whether a branch or tag leads to a commit."""
        search = ("for-each-ref", "--count=1", f"--contains={commit}", "refs/heads", "refs/tags")
        return bool(self.read(*search).strip())

    @cached_property
    def is_partial(self) -> bool:
        """Whether objects are missing that its remote would give."""
        try:
            return bool(self.read("config", "--get", "extensions.partialClone").strip())
        except GitError:
            return False


def clone_at(folder: Path, *, is_named: bool = True) -> Clone | None:
    """Return the repository at `folder`, bare or with a work tree; None if there is none.

    What is compiled is code of the repository, so that whoever names it trusts it, whoever its owner is. One
    that nobody named has to be the caller's by git's own rule (safe.directory in git-config(1)), and is None
    otherwise.
    """
    if not folder.is_dir():
        return None
    trusting = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    try:
        told = git_command.run(
            *_FACTS, git_dir=None, folder=folder, variables=_NO_TRANSPORT | (trusting if is_named else {})
        )
    except GitError:
        return None
    *paths, prefix = told.split("\n")[:5]
    if prefix:
        return None  # it begins above
    git_dir, objects, shallow, index = map(Path, paths)
    above = (folder.resolve(), *folder.resolve().parents)
    root = next((place for place in above if (place / ".git").exists()), git_dir)
    if folder.resolve() not in (git_dir, root):
        return None
    return Clone(git_dir, objects, shallow, index, root)
