"""The commits between two others, merged branches included, and which of them can change the server."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from build.engines import git_ref
from build.errors import TidemarkError, shell_line
from build.sources.git import Commit, GitError, Mirror
from build.version import Engine, Version

IMMATERIAL = Path(__file__).with_name("immaterial.toml")

SHORT = 12
"""Number of digits of a commit that are displayed."""

MAX_NAMED_PATHS = 3
"""The most paths of a commit that a reason names."""

_MISSING = re.compile(r"nvalid revision range|bad (object|revision)|unknown revision")
"""What git says of commits that a repository does not have."""

_FIELDS = ("%H", "%P", "%an", "%aI", "%s", "%B")


class RangeError(TidemarkError):
    """There are no commits to search between good and bad."""


@dataclass(frozen=True)
class CommitInfo:
    """One commit as git describes it. All texts were written by others and are untrusted."""

    commit: str
    """40 hex digits."""

    author: str
    date: str
    """The author date in ISO 8601."""

    subject: str
    message: str
    """The whole message, including the subject."""

    parents: tuple[str, ...]
    paths: tuple[str, ...]
    """The paths that differ from the first parent."""

    @property
    def short(self) -> str:
        """The abbreviated commit, as it is displayed."""
        return self.commit[:SHORT]


@dataclass(frozen=True)
class Lineage:
    """A commit after good with its parents."""

    commit: str
    parents: tuple[str, ...]
    """In git's order; those that are not after good have good's server, as far as the search knows."""

    same: str | None
    """The parent whose server the commit has, when it differs from that one in nothing that can matter."""


@dataclass(frozen=True)
class Collapsed:
    """A commit that cannot be the culprit, with the reason."""

    commit: str
    subject: str
    reason: str


@dataclass(frozen=True)
class CommitRange:
    """The commits between good and bad."""

    good: CommitInfo
    bad: CommitInfo
    candidates: tuple[CommitInfo, ...]
    """The commits after good that can matter, ancestors first. The last one is bad, or the last one that can
    matter if bad cannot."""

    collapsed: tuple[Collapsed, ...]

    parents: tuple[tuple[int, ...], ...] = ()
    """The parents of each candidate, as in `CommitGraph`; empty when each descends from the one before it."""

    merged_by: Mapping[str, str] = field(default_factory=dict)
    """Candidate -> the merge among bad's first parents that brought it, for those that are not among them."""


def commit_range(
    mirror: Mirror, engine: Engine | None, good: str, bad: str, *, is_published: bool = False
) -> CommitRange:
    """Return the commits that `bad` has and `good` has not, whatever merges lie between; both are refs as in
    `Version`.

    Without an engine they are refs of an extension, as git knows them.

    Raises GitError if a ref does not exist or the source is a shallow clone; with `is_published` also if no
    branch or tag of the source leads to it. Raises RangeError if good and bad are the same, swapped, or on
    different branches, or if no commit between them can matter.
    """
    first, last = _resolve_both(mirror, engine, (good, bad), is_published)
    _require_whole(mirror)
    _require_order(mirror, first, last, (good, bad))
    commits = read_commits(mirror, f"{first.commit}..{last.commit}", whole=True)
    ends = [read_commits(mirror, f"--max-count=1 {end.commit}")[0] for end in (first, last)]
    patterns = immaterial(engine)
    lineages = [
        Lineage(commit.commit, commit.parents, _same_server(mirror, commit, patterns)) for commit in commits
    ]
    graph = simplify(lineages, last.commit)
    known, kept = {commit.commit: commit for commit in commits}, set(graph.commits)
    collapsed = [
        Collapsed(commit.commit, commit.subject, _reason(commit, lineage))
        for commit, lineage in zip(commits, lineages, strict=True)
        if commit.commit not in kept
    ]
    if not kept:
        what = "server" if engine else "extension"
        raise RangeError(
            f"none of the {len(commits)} commits between good and bad can change the {what}",
            where=f"{mirror.shown}: {collapsed[0].reason}",
            hint="check what else differed: settings, machine, suite",
        )
    brought = {commit: merge for commit, merge in merged_by(lineages, last.commit).items() if commit in kept}
    return CommitRange(
        ends[0],
        ends[1],
        tuple(known[commit] for commit in graph.commits),
        tuple(collapsed),
        () if graph.is_linear else graph.parents,
        brought,
    )


def _same_server(mirror: Mirror, commit: CommitInfo, patterns: Sequence[str]) -> str | None:
    """Return the first parent from which a commit differs in nothing that can matter; None without one."""
    for parent in commit.parents:
        paths = commit.paths if parent == commit.parents[0] else _changed(mirror, parent, commit.commit)
        if all(is_immaterial(path, patterns) for path in paths):
            return parent
    return None


def _changed(mirror: Mirror, old: str, new: str) -> list[str]:
    return mirror.query("diff-tree", "-r", "--no-renames", "--name-only", old, new).splitlines()


@dataclass(frozen=True)
class RecentCommits:
    """The commits that one commit has and another has not, as a mirror knows them."""

    newest: tuple[CommitInfo, ...]
    """The newest ones along first parents, newest first."""

    total: int
    """All of them along first parents."""

    is_one_line: bool
    """Whether the other commit is among the first parents; otherwise the branch left its line."""


def recent_commits(mirror: Mirror, good: str, bad: str, most: int, seconds: float) -> RecentCommits | None:
    """Return at most `most` of the commits after `good` up to `bad`, both 40 hex digits, without fetching.

    Return None if the mirror lacks either. Raises GitError if git fails, or a command takes longer than
    `seconds`.
    """
    span = f"{good}..{bad}"
    try:
        listed = mirror.query("rev-list", "--first-parent", "--parents", span, "--", seconds=seconds)
    except GitError as error:
        if _MISSING.search(error.where):
            return None
        raise
    lines = [line.split() for line in listed.splitlines()]
    if not lines:
        return RecentCommits((), 0, is_one_line=False)
    newest = read_commits(mirror, f"--max-count={most} {span}", seconds)
    return RecentCommits(tuple(reversed(newest)), len(lines), lines[-1][1:2] == [good])


def collapsed_reason(commit: CommitInfo, engine: Engine) -> str:
    """Return why a commit cannot change the server of an engine; empty for one that can."""
    _, collapsed = collapse([commit], immaterial(engine))
    return collapsed[0].reason if collapsed else ""


def merge_base(
    mirror: Mirror,
    engine: Engine | None,
    tip: str,
    other: str,
    *,
    is_published: bool = False,
    pull: int | None = None,
) -> tuple[str, str]:
    """Return the commits, 40 hex digits, of `tip` and of where it left the line of `other`; both are refs.

    Without an engine they are refs of an extension. Raises GitError if a ref does not exist, the source is a
    shallow clone, or they have no common ancestor;
    with `is_published` also if no branch or tag of the source leads to a ref; with `pull`, the number of a
    pull request of the source, if that does not lead to `tip`.
    """
    if pull is None:
        new, old = _resolve_both(mirror, engine, (tip, other), is_published)
    else:
        old = _resolve(mirror, engine, other, is_published)
        new = mirror.fetch_pull(_name(engine, tip), pull)
    _require_whole(mirror)
    base = _merge_base(mirror, new.commit, old.commit)
    if base is None:
        raise GitError(
            f"{tip} and {other} have no common ancestor",
            where=mirror.shown,
            hint="check the repository given with --git",
        )
    return new.commit, base


def collapse(
    commits: Iterable[CommitInfo], patterns: Sequence[str]
) -> tuple[list[CommitInfo], list[Collapsed]]:
    """Split commits into those that can change the server and those that cannot, both in the given order.

    A merge is treated as any other commit, by its difference from its first parent. If that is empty, or
    only documentation, the merge cannot change the server.
    """
    candidates, collapsed = [], []
    for commit in commits:
        if any(not is_immaterial(path, patterns) for path in commit.paths):
            candidates.append(commit)
        else:
            collapsed.append(Collapsed(commit.commit, commit.subject, _reason(commit)))
    return candidates, collapsed


def is_immaterial(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a path cannot change the server, by patterns as `immaterial.toml` explains them."""
    return any(_matches(path, pattern) for pattern in patterns)


def _matches(path: str, pattern: str) -> bool:
    if "/" not in pattern:
        return fnmatchcase(path.rpartition("/")[2], pattern)
    return fnmatchcase(path, f"{pattern}*" if pattern.endswith("/") else pattern)


@cache
def immaterial(engine: Engine | None) -> tuple[str, ...]:
    """Return the patterns of paths that cannot change the server of an engine; without one, an extension."""
    return tuple(tomllib.loads(IMMATERIAL.read_text(encoding="utf-8"))[engine or "extension"]["paths"])


def read_commits(
    mirror: Mirror, span: str, seconds: float | None = None, *, whole: bool = False
) -> list[CommitInfo]:
    """Return the commits of a span along first parents, or with `whole` all of them, ancestors first.

    `span` is arguments of git log.

    Raises GitError as `Mirror.query` does.
    """
    order = ("--topo-order",) if whole else ("--first-parent", "-m")
    walk = (*order, "--reverse", "--no-renames", "--encoding=UTF-8", *span.split(), "--")
    texts = mirror.query("log", "-z", f"--format={'%x00'.join(_FIELDS)}", *walk, seconds=seconds)
    # Of a merge, too, what differs from its first parent; this option alone would show patches.
    of_merges = ("--diff-merges=first-parent",) if whole else ()
    names = mirror.query("log", "--format=%x00%H", *of_merges, "--name-only", *walk, seconds=seconds)
    fields, path_lists = texts.split("\0"), names.split("\0")[1:]
    paths_by_commit = dict(map(_parse_paths, path_lists))
    width = len(_FIELDS)
    commits = []
    for start in range(0, len(fields) - width + 1, width):
        commit, parents, author, date, subject, message = fields[start : start + width]
        commits.append(
            CommitInfo(
                commit=commit.strip(),
                author=author,
                date=re.sub(r"Z$", "+00:00", date),  # which git 2.45 and newer writes
                subject=subject,
                message=message.strip(),
                parents=tuple(parents.split()),
                paths=paths_by_commit.get(commit.strip(), ()),
            )
        )
    return commits


def _parse_paths(text: str) -> tuple[str, tuple[str, ...]]:
    commit, *lines = text.splitlines()
    # git quotes names with unusual characters. They match no pattern, so that such a commit can matter.
    return commit, tuple(line for line in lines if line)


def _reason(commit: CommitInfo, lineage: Lineage | None = None) -> str:
    """Return why a commit cannot be the culprit; with its `lineage` also what becomes of it at merges."""
    if lineage is not None and lineage.same is None:
        return "came with a merge that keeps nothing of it"
    if lineage is not None and lineage.same != commit.parents[0]:
        return f"a merge that changes nothing but what {str(lineage.same)[:SHORT]} has"
    merge = "a merge that " if len(commit.parents) > 1 else ""
    if not commit.paths:
        return f"{merge}changes nothing"
    names = ", ".join(commit.paths[:MAX_NAMED_PATHS])
    more = len(commit.paths) - MAX_NAMED_PATHS
    return f"{merge}touches only {names}" + (f" and {more} more" if more > 0 else "")


# --- the two ends of the range


def _resolve_both(
    mirror: Mirror, engine: Engine | None, refs: tuple[str, str], is_published: bool
) -> tuple[Commit, Commit]:
    """Return the commits of two refs. Raises GitError for one that there is not before either is fetched."""
    for ref in refs:
        mirror.require(_name(engine, ref))
    first, second = (_resolve(mirror, engine, ref, is_published) for ref in refs)
    return first, second


def _resolve(mirror: Mirror, engine: Engine | None, ref: str, is_published: bool) -> Commit:
    """Return the commit of a release, tag, branch or commit name. Raises GitError if there is none."""
    name = _name(engine, ref)
    commit = None if is_published else mirror.find(name)
    if commit is not None:
        return commit
    try:
        return mirror.fetch_published(name) if is_published else mirror.fetch(name)
    except GitError as error:
        if re.search(r"shallow", error.where):
            raise _shallow(mirror) from error
        raise


def _name(engine: Engine | None, ref: str) -> str:
    return ref.removeprefix("git:") if engine is None else git_ref(Version(engine, ref))


def _require_whole(mirror: Mirror) -> None:
    """Raise GitError if the source, or its mirror, is a shallow clone."""
    of_clone = mirror.clone is not None and mirror.clone.shallow.exists()
    if of_clone or (mirror.path / "shallow").exists():
        raise _shallow(mirror)


def _shallow(mirror: Mirror) -> GitError:
    fetch = shell_line("git", "-C", mirror.shown, "fetch", "--unshallow", "--tags")
    return GitError(
        "the git source is a shallow clone: commits between good and bad are missing",
        where=mirror.shown,
        hint=f"run {fetch}, or give a complete repository with --git",
    )


def _require_order(mirror: Mirror, good: Commit, bad: Commit, refs: tuple[str, str]) -> None:
    """Raise RangeError unless good is an ancestor of bad."""
    names = f"{refs[0]} is {good.commit[:SHORT]}, {refs[1]} is {bad.commit[:SHORT]}"
    if good.commit == bad.commit:
        raise RangeError("good and bad are the same commit", where=names, hint="give two different commits")
    if _is_ancestor(mirror, good.commit, bad.commit):
        return
    if _is_ancestor(mirror, bad.commit, good.commit):
        raise RangeError(
            "good and bad are swapped: bad is before good",
            where=names,
            hint=f"give --good {refs[1]} --bad {refs[0]}; to find an improvement, add --direction better",
        )
    base = _merge_base(mirror, good.commit, bad.commit)
    if base is None:
        raise RangeError(
            "good and bad have no common ancestor", where=names, hint="check the repository given with --git"
        )
    raise RangeError(
        f"good and bad are on different branches, which diverge at {base[:SHORT]}",
        where=names,
        hint=f"search bad's own branch from there: --good {base[:SHORT]} --bad {refs[1]}",
    )


def _is_ancestor(mirror: Mirror, ancestor: str, other: str) -> bool:
    return _merge_base(mirror, ancestor, other) == ancestor


def _merge_base(mirror: Mirror, first: str, other: str) -> str | None:
    try:
        return mirror.query("merge-base", first, other).strip()
    except GitError as error:
        if not error.where:
            return None  # git fails without any message if there is none
        raise


@dataclass(frozen=True)
class CommitGraph:
    """The commits that can matter."""

    commits: tuple[str, ...]
    """Ancestors first; the last one is bad, or the commit whose server bad has."""

    parents: tuple[tuple[int, ...], ...]
    """The parents of each commit, in git's order, as places counted from 1; 0 is good, or older than good. A
    parent from which another parent descends is left out."""

    @property
    def is_linear(self) -> bool:
        """Whether every commit has the one before it as its only parent."""
        return all(ups == (place,) for place, ups in enumerate(self.parents))


def simplify(lineages: Sequence[Lineage], bad: str) -> CommitGraph:
    """Return the graph of the commits that can matter to `bad`; `lineages` have ancestors first.

    As in git's own simplified histories, a merge that has the server of one parent stands for that parent, so
    that what it does not take from the others is left out.
    """
    stands: dict[str, int] = {}
    names, parents, ancestors = [""], [()], [0]  # type: list[str], list[tuple[int, ...]], list[int]
    for lineage in lineages:
        if lineage.same is not None:
            stands[lineage.commit] = stands.get(lineage.same, 0)
            continue
        ups = tuple(dict.fromkeys(stands.get(parent, 0) for parent in lineage.parents))
        kept = tuple(
            up for up in ups if not any(_holds(ancestors[other], up) for other in ups if other != up)
        )
        place = stands[lineage.commit] = len(names)
        names.append(lineage.commit)
        parents.append(kept)
        ancestors.append(1 << place | _union(ancestors[up] for up in kept))
    needed = [place for place in range(1, len(names)) if ancestors[stands[bad]] >> place & 1]
    places = {0: 0} | {place: new for new, place in enumerate(needed, 1)}
    return CommitGraph(
        tuple(names[place] for place in needed),
        tuple(tuple(places[up] for up in parents[place]) for place in needed),
    )


def _union(sets: Iterator[int]) -> int:
    union = 0
    for commits in sets:
        union |= commits
    return union


def _holds(ancestors: int, place: int) -> bool:
    """Whether a place is among these ancestors; good is an ancestor of everything but itself."""
    return bool(ancestors >> place & 1) if place else bool(ancestors)


def merged_by(lineages: Sequence[Lineage], bad: str) -> Mapping[str, str]:
    """Return commit -> the merge among the first parents of `bad` that brought it, for all others."""
    ups = {lineage.commit: lineage.parents for lineage in lineages}
    line: list[str] = []
    at: str | None = bad
    while at in ups:
        line.append(at)
        at = next(iter(ups[at]), None)
    known, found = set(line), dict[str, str]()
    for merge in reversed(line):
        waiting = list(ups[merge][1:])
        while waiting:
            commit = waiting.pop()
            if commit in ups and commit not in known:
                known.add(commit)
                found[commit] = merge
                waiting += ups[commit]
    return found
