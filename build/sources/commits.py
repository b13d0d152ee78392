"""The commits between two of a git source, along first parents, and which of them can matter at all."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from build.engines import git_ref
from build.errors import TidemarkError
from build.sources.git import Commit, GitError, Mirror
from build.version import Engine, Version

IMMATERIAL = Path(__file__).with_name("immaterial.toml")

SHORT = 12
"""Digits of a commit that people are shown."""

MOST_NAMED = 3
"""Paths of a commit that a reason names."""

_FIELDS = ("%H", "%P", "%an", "%aI", "%s", "%B")


class RangeError(TidemarkError):
    """There are no commits to search between good and bad."""


@dataclass(frozen=True)
class Described:
    """One commit, as its author left it: every text is somebody else's."""

    commit: str
    """40 hex digits."""

    author: str
    date: str
    """Of the author, ISO-8601."""

    subject: str
    message: str
    """Whole, the subject included."""

    parents: tuple[str, ...]
    paths: tuple[str, ...]
    """What differs from the first parent."""

    @property
    def short(self) -> str:
        """As people are shown it."""
        return self.commit[:SHORT]


@dataclass(frozen=True)
class Collapsed:
    """A commit that cannot be the culprit, and why not."""

    commit: str
    subject: str
    reason: str


@dataclass(frozen=True)
class CommitRange:
    """What lies between good and bad."""

    good: Described
    bad: Described
    candidates: tuple[Described, ...]
    """After good, oldest first; the last one is bad, or what bad does not differ from."""

    collapsed: tuple[Collapsed, ...]


def commit_range(mirror: Mirror, engine: Engine, good: str, bad: str) -> CommitRange:
    """The commits from `good` (exclusive) to `bad` along first parents; refs as `Version` has them.

    Raises GitError for a ref that there is not and for a shallow source; RangeError when good and bad are the
    same, swapped, or on different branches, and when nothing between them can matter.
    """
    first, last = (_found(mirror, engine, ref) for ref in (good, bad))
    _require_whole(mirror)
    _require_order(mirror, first, last, (good, bad))
    rest = described(mirror, f"{first.commit}..{last.commit}")
    ends = [described(mirror, f"--max-count=1 {each.commit}")[0] for each in (first, last)]
    candidates, collapsed = collapse(rest, immaterial(engine))
    collapsed = [*collapsed, *_side_branches(mirror, rest)]
    if not candidates:
        raise RangeError(
            f"none of the {len(rest)} commits between good and bad can change the server",
            where=f"{mirror.shown}: {collapsed[0].reason}",
            hint="look at what else differed: settings, machine, suite",
        )
    return CommitRange(ends[0], ends[1], tuple(candidates), tuple(collapsed))


def collapse(
    commits: Iterable[Described], patterns: Sequence[str]
) -> tuple[list[Described], list[Collapsed]]:
    """Those that can matter, and those that cannot: each is in one of the two lists, in the old order.

    A merge is judged as any commit, by what it brings to its first parent: one that brings nothing, or
    documentation only, cannot matter.
    """
    candidates, collapsed = [], []
    for each in commits:
        if any(not is_immaterial(path, patterns) for path in each.paths):
            candidates.append(each)
        else:
            collapsed.append(Collapsed(each.commit, each.subject, _why(each)))
    return candidates, collapsed


def is_immaterial(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path cannot change the server; patterns as `immaterial.toml` explains them."""
    for pattern in patterns:
        if "/" not in pattern:
            found = fnmatchcase(path.rpartition("/")[2], pattern)
        else:
            found = fnmatchcase(path, f"{pattern}*" if pattern.endswith("/") else pattern)
        if found:
            return True
    return False


@cache
def immaterial(engine: Engine) -> tuple[str, ...]:
    """The patterns of an engine."""
    return tuple(tomllib.loads(IMMATERIAL.read_text(encoding="utf-8"))[engine]["paths"])


def described(mirror: Mirror, span: str) -> list[Described]:
    """Commits of a span along first parents, oldest first; `span` is words of git log."""
    walk = ("--first-parent", "-m", "--reverse", "--no-renames", "--encoding=UTF-8", *span.split(), "--")
    told = mirror.ask("log", "-z", f"--format={'%x00'.join(_FIELDS)}", *walk)
    named = mirror.ask("log", "--format=%x00%H", "--name-only", *walk)
    paths = dict(map(_paths, named.split("\0")[1:]))
    texts = told.split("\0")
    width = len(_FIELDS)
    found = []
    for start in range(0, len(texts) - width + 1, width):
        commit, parents, author, date, subject, message = texts[start : start + width]
        its = paths.get(commit.strip(), ())
        its_parents = tuple(parents.split())
        found.append(Described(commit.strip(), author, date, subject, message.strip(), its_parents, its))
    return found


def _paths(text: str) -> tuple[str, tuple[str, ...]]:
    commit, *lines = text.splitlines()
    # Names with strange characters are quoted, and so match no folder: they matter.
    return commit, tuple(line for line in lines if line)


def _why(commit: Described) -> str:
    merge = "a merge that " if len(commit.parents) > 1 else ""
    if not commit.paths:
        return f"{merge}changes nothing"
    names = ", ".join(commit.paths[:MOST_NAMED])
    more = len(commit.paths) - MOST_NAMED
    return f"{merge}touches only {names}" + (f" and {more} more" if more > 0 else "")


def _side_branches(mirror: Mirror, commits: Iterable[Described]) -> Iterator[Collapsed]:
    """What merges brought: it is measured in one piece, as the merge."""
    for each in commits:
        if len(each.parents) < 2:
            continue
        span = (f"^{each.parents[0]}", *each.parents[1:])
        walk = ("--topo-order", "--reverse", *span, "--")
        told = mirror.ask("log", "-z", "--format=%H%x00%s", *walk).split("\0")
        for commit, subject in zip(told[::2], told[1::2], strict=False):
            yield Collapsed(commit.strip(), subject, f"came with the merge {each.short}")


# --- what is asked for


def _found(mirror: Mirror, engine: Engine, ref: str) -> Commit:
    """A release, tag, branch or commit. Raises GitError when there is none."""
    wanted = git_ref(Version(engine, ref))
    found = mirror.find(wanted)
    if found is not None:
        return found
    try:
        return mirror.fetch(wanted)
    except GitError as error:
        if re.search(r"shallow", error.where):
            raise _shallow(mirror) from error
        hint = error.hint or f"tags and branches: git ls-remote {mirror.shown}"
        raise GitError(error.what, where=error.where, hint=hint) from error


def _require_whole(mirror: Mirror) -> None:
    """Raises GitError for a source, or a mirror of one, that has no past."""
    if (mirror.path / "shallow").exists():
        raise _shallow(mirror)
    for folder in (Path(mirror.url), Path(mirror.url) / ".git"):
        if (folder / "shallow").is_file():
            raise _shallow(mirror)


def _shallow(mirror: Mirror) -> GitError:
    return GitError(
        "the git source is a shallow clone: commits between good and bad are missing",
        where=mirror.shown,
        hint=f"git -C {mirror.shown} fetch --unshallow --tags, or name a whole repository with --git",
    )


def _require_order(mirror: Mirror, good: Commit, bad: Commit, refs: tuple[str, str]) -> None:
    """Raises RangeError unless good comes before bad."""
    names = f"{refs[0]} is {good.commit[:SHORT]}, {refs[1]} is {bad.commit[:SHORT]}"
    if good.commit == bad.commit:
        raise RangeError("good and bad are the same commit", where=names, hint="name two different ones")
    if _is_ancestor(mirror, good.commit, bad.commit):
        if good.commit not in mirror.ask("rev-list", "--first-parent", bad.commit):
            raise RangeError(
                "good came to bad's branch by a merge: no way of first parents leads from one to the other",
                where=names,
                hint=f"begin with a commit of bad's own line: --good {_branching(mirror, good, bad)}",
            )
        return
    if _is_ancestor(mirror, bad.commit, good.commit):
        raise RangeError(
            "good and bad are swapped: bad comes before good",
            where=names,
            hint=f"--good {refs[1]} --bad {refs[0]}; of something that became faster: --direction better",
        )
    base = _merge_base(mirror, good.commit, bad.commit)
    if base is None:
        raise RangeError("good and bad have no commit in common", where=names, hint="check --git")
    raise RangeError(
        f"good and bad are on different branches, which part at {base[:SHORT]}",
        where=names,
        hint=f"search bad's own branch from there: --good {base[:SHORT]} --bad {refs[1]}",
    )


def _branching(mirror: Mirror, good: Commit, bad: Commit) -> str:
    """The last commit of bad's first parents that comes before good."""
    line = set(mirror.ask("rev-list", "--first-parent", bad.commit).split())
    for commit in mirror.ask("rev-list", "--topo-order", good.commit).split():
        if commit in line:
            return commit[:SHORT]
    return bad.commit[:SHORT]


def _is_ancestor(mirror: Mirror, one: str, other: str) -> bool:
    return _merge_base(mirror, one, other) == one


def _merge_base(mirror: Mirror, one: str, other: str) -> str | None:
    try:
        return mirror.ask("merge-base", one, other).strip()
    except GitError as error:
        if not error.where:
            return None  # git says nothing, and fails, when there is none
        raise
