"""The commits of a branch with their places in its series: what a backfill can measure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from build.sources.commits import collapse, immaterial, read_commits
from build.sources.git import GitError, Mirror
from build.version import Engine
from history.series.series import Night
from runners.nightly.past.filling import PastCommit
from runners.nightly.work import COMMIT_DIGITS

APART = timedelta(milliseconds=1)
"""The least time between the places of two commits: the history keeps no shorter one."""


def past_commits(source: Mirror, engine: Engine, branch: str, since: datetime) -> tuple[PastCommit, ...]:
    """Return the commits of a branch from the one that was current at `since` on, along first parents.

    Without those that cannot change the server, but with the first one. Raises GitError when the source
    cannot be reached, has no such branch, or is a shallow clone.
    """
    tip = source.fetch(branch).commit
    placed = list(in_order(_dated(source, tip)))
    first = max((number for number, each in enumerate(placed) if each.stands_at <= since), default=0)
    if (source.path / "shallow").exists():
        raise GitError("the git source is a shallow clone: past commits are missing", where=source.shown)
    kept = placed[first:]
    matter, _ = collapse(read_commits(source, f"{kept[0].commit}..{tip}"), immaterial(engine))
    wanted = {kept[0].commit, *(each.commit for each in matter)}
    return tuple(each for each in kept if each.commit in wanted)


def in_order(dated: Iterable[tuple[str, datetime]]) -> Iterator[PastCommit]:
    """Yield commits, oldest first, at their dates; one dated before its parent stands just after it."""
    last: datetime | None = None
    for commit, date in dated:
        last = date if last is None else max(date, last + APART)
        yield PastCommit(commit, last)


def measurable(commits: Sequence[PastCommit], nights: Iterable[Night]) -> tuple[PastCommit, ...]:
    """Return the commits whose place among nights is the one they have on the branch.

    A night stands where it was measured, later than its commit's date. A commit that it measured is left out,
    and so are others whose date lies on the other side of the night than they themselves lie of its commit.
    """
    number_of = {each.commit[:COMMIT_DIGITS]: number for number, each in enumerate(commits)}
    left = set(range(len(commits)))
    for night in nights:
        number = number_of.get(_digits(night.version))
        if number is None or night.measured_at is not None:
            continue
        left -= {
            other
            for other in left
            if other == number or (commits[other].stands_at > night.started_at) != (other > number)
        }
    return tuple(commits[number] for number in sorted(left))


def _digits(version: str) -> str:
    return version.partition("#")[0].rpartition(":")[2][:COMMIT_DIGITS]


def _dated(source: Mirror, tip: str) -> Iterator[tuple[str, datetime]]:
    """Yield the commits along first parents, oldest first, with the dates on which they were committed."""
    lines = source.query("log", "--first-parent", "--reverse", "--format=%H %ct", tip, "--").splitlines()
    for line in lines:
        commit, seconds = line.split()
        yield commit, datetime.fromtimestamp(int(seconds), UTC)
