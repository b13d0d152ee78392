"""A repository on this machine, such as a developer's clone, which is only read: nothing is written to it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from build.sources import git_command
from build.sources.git_command import GitError

# What is compiled is code of the repository, so that whoever names it trusts it, whoever its owner is.
_DISCOVER = ("-c", "safe.directory=*")
_FACTS = ("--path-format=absolute", "--absolute-git-dir", "--git-path", "objects", "--git-path", "shallow")
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

    root: Path
    """The top of its work tree; the repository itself if it is bare."""

    def commit(self, name: str) -> str | None:
        """Return the commit, 40 hex digits, of a full ref such as `refs/tags/v1`; None if there is none."""
        try:
            return git_command.run(*_VERIFY, f"{name}^{{commit}}", git_dir=self.git_dir).strip()
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
        listed = git_command.run("for-each-ref", "--format=%(refname)", git_dir=self.git_dir).split()
        kinds = ("refs/heads/", "refs/tags/", "refs/remotes/origin/", "refs/remotes/")
        found = (name.removeprefix(kind) for kind in kinds for name in listed if name.startswith(kind))
        return list(dict.fromkeys(found))

    @property
    def has_tree(self) -> bool:
        """Whether files are checked out."""
        return self.root != self.git_dir

    def read(self, *arguments: str) -> str:
        """Return the output of a git command that only reads. Raises GitError."""
        return git_command.run(*arguments, git_dir=self.git_dir)

    def read_tree(self, *arguments: str) -> str:
        """Return the output of a git command that reads the work tree, and leaves the index as it is.

        Raises GitError.
        """
        return git_command.run(*arguments, git_dir=self.git_dir, work_tree=self.root)

    def names_in(self, ref: str) -> set[str]:
        """Return the names at the top of the tree of a ref; empty if there is no such ref."""
        try:
            return set(git_command.run("ls-tree", "--name-only", ref, git_dir=self.git_dir).splitlines())
        except GitError:
            return set()

    def is_published(self, commit: str) -> bool:
        """Return whether a branch or tag leads to a commit."""
        search = ("for-each-ref", "--count=1", f"--contains={commit}", "refs/heads", "refs/tags")
        return bool(git_command.run(*search, git_dir=self.git_dir).strip())

    @cached_property
    def is_partial(self) -> bool:
        """Whether objects are missing that its remote would give."""
        try:
            asked = ("config", "--get", "extensions.partialClone")
            return bool(git_command.run(*asked, git_dir=self.git_dir).strip())
        except GitError:
            return False


def clone_at(folder: Path, *, is_root: bool = True) -> Clone | None:
    """Return the repository at `folder`, bare or with a work tree; None if there is none.

    With `is_root` False, `folder` may also lie somewhere in a work tree.
    """
    if not folder.is_dir():
        return None
    above = [place for place in (folder.resolve(), *folder.resolve().parents) if (place / ".git").exists()]
    if not is_root and not above:
        return None  # without asking git, which gets the caller's variables
    try:
        told = git_command.run(*_DISCOVER, "-C", str(folder), "rev-parse", *_FACTS, git_dir=None)
    except GitError:
        return None
    git_dir, objects, shallow = map(Path, told.splitlines()[:3])
    root = next(iter(above), git_dir)
    if is_root and folder.resolve() not in (git_dir, root):
        return None
    return Clone(git_dir, objects, shallow, root)
