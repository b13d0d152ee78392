"""The checkout as git sees it: what is new, whether it may be changed, and changing it."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from build.errors import TidemarkError
from build.files import make_folder
from build.progress import Progress
from build.sources.git import GitError, run
from history.counts import counted

FETCH_SECONDS = 7200.0
MAX_SHOWN = 20
"""The most commits, files or packages that a message lists."""

_MIGRATIONS = "history/store/migrations/"
_PACKAGES = "runners/packages*.txt"


class UpdateError(TidemarkError):
    """An update is refused, or failed and left everything as it was."""


@dataclass(frozen=True)
class News:
    """What another commit brings."""

    old: str
    """The whole name of the commit in use."""

    new: str
    commits: tuple[str, ...]
    """The commits that `new` has and `old` lacks, newest first, one line each."""

    left: int
    """How many commits `old` has that `new` lacks: it is an older one, or of another branch."""

    schemas: tuple[int, int]
    """The schema of the history, in both."""

    packages: bool
    """Whether the lists of system packages differ."""

    def lines(self) -> list[str]:
        """Return what is new, for people."""
        if self.old == self.new:
            return [f"{self.old[:12]}: nothing is new"]
        lines = [f"{self.old[:12]} to {self.new[:12]}: {counted(len(self.commits), 'new commit')}"]
        lines += [f"  {line}" for line in shortened(self.commits)]
        if self.left:
            lines.append(f"  {counted(self.left, 'commit')} of this checkout will be gone from it")
        before, after = self.schemas
        if before != after:
            lines.append(f"  schema of the history: {before} to {after}")
        if self.packages:
            lines.append("  other system packages: sudo ./tidemark setup installs them after the update")
        return lines


@dataclass(frozen=True)
class Checkout:
    """The folder with this Tidemark."""

    root: Path

    @property
    def folder(self) -> Path:
        """What an update keeps here: its lock, its logs, the files of the new commit."""
        return self.root / ".update"

    @property
    def lock(self) -> Path:
        """Held while an update is under way. The launcher knows this path."""
        return self.folder / "lock"

    @property
    def unfinished(self) -> Path:
        """Names the commit to return to while files are changed. The launcher knows this path."""
        return self.folder / "unfinished"

    def git(self, *arguments: str, seconds: float | None = None) -> str:
        """Return the output of a git command in the checkout. Raises GitError."""
        return run(*arguments, git_dir=self.root / ".git", work_tree=self.root, seconds=seconds)

    def require_unchanged(self) -> None:
        """Raise UpdateError for a folder that is no clone, and for files with local edits, which it names."""
        if not (self.root / ".git").exists():
            raise UpdateError(
                "this folder is no clone of a git repository, so it cannot be updated",
                where=str(self.root),
                hint="clone Tidemark, and move the folder of outputs (var/) there",
            )
        edited = self.git("status", "--porcelain", "--untracked-files=no").splitlines()
        if edited:
            raise UpdateError(
                "files of the checkout have local edits: "
                + ", ".join(shortened([line[3:] for line in edited])),
                where=str(self.root),
                hint="commit them in a fork that this checkout follows, or undo them: git restore FILE."
                " A plan can lie outside of the checkout (--plan)",
            )

    def fetch(self, progress: Progress) -> str:
        """Fetch branches and tags of the remote that this checkout follows, and return its name."""
        branch = self.branch()
        followed = self._configured(f"branch.{branch}.remote") if branch else ""
        remotes = self.git("remote").split()
        remote = followed or ("origin" if "origin" in remotes else next(iter(remotes), ""))
        if remote not in remotes:
            raise UpdateError(
                "this checkout has no remote repository to fetch from",
                where=str(self.root),
                hint="git remote add origin ADDRESS",
            )
        with progress.task(f"fetching from {remote}"):
            self.git("fetch", "--quiet", "--tags", remote, seconds=FETCH_SECONDS)
        return remote

    def branch(self) -> str:
        """Return the branch that is checked out; empty if a commit is."""
        return self._said("symbolic-ref", "--quiet", "--short", "HEAD")

    def news(self, wanted: str | None, remote: str) -> News:
        """Return what a ref brings, by default the tip of the branch. Raises UpdateError."""
        old = self.git("rev-parse", "HEAD").strip()
        new = self._commit(wanted or self._followed(remote), remote)
        commits = self.git("log", "--format=%h %s", f"{old}..{new}").splitlines()
        left = int(self.git("rev-list", "--count", f"{new}..{old}"))
        packages = self.git("diff", "--name-only", old, new, "--", _PACKAGES)
        return News(
            old, new, tuple(commits), left, (self._schema(old), self._schema(new)), bool(packages.strip())
        )

    def require_replaceable(self, news: News, remote: str) -> None:
        """Raise UpdateError if the change would lose commits, or files that git does not know."""
        own = self.git(
            "log", "--format=%h %s", news.old, "--not", f"--remotes={remote}", "--tags"
        ).splitlines()
        if own:
            raise UpdateError(
                f"this checkout has {counted(len(own), 'commit')} that {remote} lacks: "
                + "; ".join(shortened(own)),
                where=str(self.root),
                hint=f"push them to {remote}, merged with what is new there; then update to that",
            )
        listed = self.git("diff", "--name-only", "--no-renames", "--diff-filter=A", "-z", news.old, news.new)
        present = [name for name in listed.split("\0") if name and (self.root / name).exists()]
        if present:
            raise UpdateError(
                "the new commit has files where this checkout has others that git does not know: "
                + ", ".join(shortened(present)),
                where=str(self.root),
                hint="move them elsewhere",
            )

    def extract(self, commit: str, folder: Path) -> None:
        """Write the files of a commit into a new folder."""
        make_folder(folder)
        archive = folder.with_suffix(".tar")
        self.git("archive", "--output", str(archive), commit)
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
        archive.unlink()

    def change_to(self, commit: str) -> None:
        """Give all files the content of a commit, and move the branch there. Raises GitError."""
        self.git("reset", "--quiet", "--hard", commit)

    def _followed(self, remote: str) -> str:
        """Return the branch of the remote that this checkout follows."""
        followed = self._said("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
        followed = followed or self._said("rev-parse", "--abbrev-ref", f"refs/remotes/{remote}/HEAD")
        if not followed:
            raise UpdateError(
                "this checkout follows no branch", where=str(self.root), hint="name what to update to by --to"
            )
        return followed

    def _commit(self, ref: str, remote: str) -> str:
        for name in (f"refs/remotes/{remote}/{ref}", ref):
            if found := self._said(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
            ):
                return found
        raise UpdateError(f"{remote} has no tag, branch or commit {ref!r}", where="--to")

    def _schema(self, commit: str) -> int:
        names = self.git("ls-tree", "--name-only", commit, "--", _MIGRATIONS).splitlines()
        return sum(name.endswith(".sql") for name in names)

    def _configured(self, key: str) -> str:
        return self._said("config", "--get", key)

    def _said(self, *arguments: str) -> str:
        """Return what git says; empty if it says that there is nothing."""
        try:
            return self.git(*arguments).strip()
        except GitError:
            return ""


def shortened(names: Sequence[str]) -> list[str]:
    """Return the first MAX_SHOWN names, and how many more there are."""
    more = len(names) - MAX_SHOWN
    return [*names[:MAX_SHOWN], *([f"and {more} more"] if more > 0 else [])]
