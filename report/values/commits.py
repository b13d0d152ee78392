"""The commits between the two nights of a change, as its page lists them."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from history.changes.report import ChangeReport

MAX_COMMITS = 40
"""The most commits of a range that are listed."""

MAX_FILES = 3
"""The most files of a commit that are named."""


@dataclass(frozen=True)
class ListedCommit:
    """One commit. All texts were written by others and are untrusted."""

    commit: str
    """40 hex digits."""

    subject: str
    author: str
    date: str
    """The author date in ISO 8601."""

    files: tuple[str, ...]
    """At most MAX_FILES of the files that differ from its first parent."""

    file_count: int
    """All of them."""

    immaterial: str
    """Why it cannot change the server; empty for a commit that can."""

    address: str
    """Upstream's page of the commit."""

    is_merge: bool = False


@dataclass(frozen=True)
class CommitsBetween:
    """The commits that the night after a change measured and the night before it did not."""

    newest: tuple[ListedCommit, ...]
    """At most MAX_COMMITS along first parents, newest first. A merge stands for what it brought."""

    total: int
    """All of them along first parents."""

    is_one_line: bool = True
    """Whether the later commit descends from the earlier one along first parents."""

    is_upstream: bool = False
    """Whether upstream's own repository has them, so that everybody may read them there."""

    @property
    def material(self) -> tuple[ListedCommit, ...]:
        """The listed commits that can change the server."""
        return tuple(commit for commit in self.newest if not commit.immaterial)


@dataclass(frozen=True)
class NoCommits:
    """No commits can be listed."""

    reason: str
    """Why, as the end of a sentence, without a full stop."""


Commits = CommitsBetween | NoCommits

CommitsOf = Callable[[ChangeReport], Commits]
"""Gives the commits between the nights of a change. It never fetches anything."""


def no_commits(report: ChangeReport) -> Commits:
    """Return that this site is written without commits."""
    return NoCommits("this site was written without a git mirror")


def to_json(commits: Commits) -> dict[str, Any] | None:
    """Return commits as JSON, to be kept; None where there are none, because the next try may find some."""
    return asdict(commits) if isinstance(commits, CommitsBetween) else None


def from_json(kept: Any) -> CommitsBetween | None:
    """Return what `to_json` made; None for anything else."""
    try:
        newest = tuple(ListedCommit(**{**row, "files": tuple(row["files"])}) for row in kept["newest"])
        return CommitsBetween(**{**kept, "newest": newest})
    except (KeyError, TypeError):
        return None


def as_text(commits: Commits) -> str:
    """Return commits as one text, for the signature of what shows them."""
    return json.dumps(asdict(commits), sort_keys=True)
