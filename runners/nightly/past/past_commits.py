"""The commits of a branch with their places in its series: what a backfill can measure."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from build.sources.commits import collapse, immaterial, read_commits
from build.sources.git import GitError, Mirror
from build.version import Engine
from history.series.series import Night
from history.timestamps import now
from runners.nightly.past.filling import PastCommit
from runners.nightly.work import COMMIT_DIGITS

APART = timedelta(milliseconds=1)
"""The least time between the places of two commits: the history keeps no shorter one."""

END_OF_TIME = datetime.max.replace(tzinfo=UTC)


def past_commits(source: Mirror, engine: Engine, branch: str, since: datetime) -> tuple[PastCommit, ...]:
    """Return the commits of a branch from the one that was current at `since` on, along first parents.

    Without those that cannot change the server, but with the first one. Raises GitError when the source
    cannot be reached, has no such branch, or is a shallow clone.
    """
    tip = source.fetch(branch).commit
    placed = list(in_order(_dated(source, tip), now()))
    first = max((number for number, past in enumerate(placed) if past.stands_at <= since), default=0)
    if (source.path / "shallow").exists():
        raise GitError("the git source is a shallow clone: past commits are missing", where=source.shown)
    kept = placed[first:]
    matter, _ = collapse(read_commits(source, f"{kept[0].commit}..{tip}"), immaterial(engine))
    wanted = {kept[0].commit, *(past.commit for past in matter)}
    return tuple(past for past in kept if past.commit in wanted)


def in_order(dated: Iterable[tuple[str, datetime]], present: datetime = END_OF_TIME) -> Iterator[PastCommit]:
    """Yield commits, oldest first, at their dates, as far as these agree with the order of the branch.

    The dates that are believed are the most that are in order, none of them later than the `present`: a
    single wrong clock moves no other commit. A commit with another date stands just after its parent.
    """
    listed = list(dated)
    believed = _in_order([date for _, date in listed], present)
    first = min(believed, default=0)
    start = min(listed[first][1], present) if listed else present
    last = start - (first + 1) * APART
    for number, (commit, date) in enumerate(listed):
        last = max(date, last + APART) if number in believed else last + APART
        yield PastCommit(commit, last)


def _in_order(dates: Sequence[datetime], present: datetime) -> set[int]:
    """Return the positions of the longest part of some dates that never falls; of several the latest dates.

    By patience sorting from the end, with the earliest date that each length can begin with (Fredman 1975).
    """
    begins: list[datetime] = []
    positions: list[int] = []
    following: dict[int, int | None] = {}
    for number in reversed(range(len(dates))):
        date = dates[number]
        if date > present:
            continue
        # `begins` falls: a part that begins later leaves more room for what is before it.
        length = bisect_left(begins, True, key=lambda begin: begin < date)
        following[number] = positions[length - 1] if length else None
        begins[length : length + 1] = [date]
        positions[length : length + 1] = [number]
    found: set[int] = set()
    at = positions[-1] if positions else None
    while at is not None:
        found.add(at)
        at = following[at]
    return found


def measurable(commits: Sequence[PastCommit], nights: Iterable[Night]) -> tuple[PastCommit, ...]:
    """Return the commits whose place among nights is the one they have on the branch.

    A night stands where it was measured, later than its commit's date. A commit that it measured is left out,
    and so are others whose date lies on the other side of the night than they themselves lie of its commit.
    """
    number_of = {commit.commit[:COMMIT_DIGITS]: number for number, commit in enumerate(commits)}
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
