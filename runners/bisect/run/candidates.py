"""The candidates between good and bad: commits of a git source, or known releases without one."""

from collections.abc import Callable
from dataclasses import replace

from build.addresses import without_secrets
from build.home import Home
from build.progress import Progress
from build.sources.commits import CommitInfo, CommitRange, RangeError, commit_range
from build.sources.git import Mirror, mirror
from build.sources.releases import known_releases
from build.sources.repository import git_address, repository_address
from build.version import Engine, Version, is_release, release_numbers
from runners.bisect.domain.question import BisectPoint, CandidateRange

LONGEST_MESSAGE = 4_000
"""The most characters of a commit message that the history stores."""

DIGITS = 12
"""The hex digits of a commit in the name of a version."""


def git_source_of(engine: Engine, good: str, bad: str, given: str | None) -> str | None:
    """Return the address of the git source to search; None for a list of releases.

    It is the one that was given or is in the environment; else, unless good and bad are releases, the clone
    of the engine around the current folder, or upstream's.
    """
    chosen = git_address(engine, given)
    if chosen is not None:
        return chosen
    releases = all(is_release(ref) for ref in (good, bad))
    return None if releases else repository_address(engine, None)


def candidate_range(
    engine: Engine,
    good: str,
    bad: str,
    address: str | None,
    home: Home,
    progress: Progress | None = None,
    *,
    is_published: bool = False,
) -> CandidateRange:
    """Return good, the candidates and bad; fetch the git source where needed, as `progress` shows.

    Raises GitError and RangeError for a range that cannot be searched, and with `is_published` for one to
    which no branch or tag of the git source leads.
    """
    if address is None:
        return _releases(engine, good, bad, home)
    source = mirror(address, engine, home, progress)
    commits = commit_range(source, engine, good, bad, is_published=is_published)
    return _range_of(commits, lambda commit: Version(engine, f"git:{commit[:DIGITS]}"))


def extension_range(server: Version, source: Mirror, good: str, bad: str) -> CandidateRange:
    """Return good, the candidates and bad of an extension, as variants of the server it is compiled for.

    Raises GitError and RangeError for a range that cannot be searched.
    """
    commits = commit_range(source, None, good, bad)
    return _range_of(commits, lambda commit: replace(server, variant=commit[:DIGITS]))


def shown_address(address: str | None) -> str | None:
    """Return the address as history and reports show it: without passwords and tokens."""
    return None if address is None else without_secrets(address)


def _collapsed_bad(commits: CommitRange) -> str:
    return "" if commits.candidates[-1].commit == commits.bad.commit else commits.bad.commit


def _range_of(commits: CommitRange, version_of: Callable[[str], Version]) -> CandidateRange:
    points = (commits.good, *commits.candidates)
    collapsed = [
        {"commit": commit.commit, "subject": commit.subject, "reason": commit.reason}
        for commit in commits.collapsed
    ]
    return CandidateRange(
        tuple(_point(version_of(point.commit), point) for point in points),
        tuple(collapsed),
        _collapsed_bad(commits),
        commits.parents,
        commits.merged_by,
    )


def _point(version: Version, commit: CommitInfo) -> BisectPoint:
    message = commit.message[:LONGEST_MESSAGE]
    return BisectPoint(str(version), commit.commit, commit.author, commit.date, commit.subject, message)


def _releases(engine: Engine, good: str, bad: str, home: Home) -> CandidateRange:
    first, last = release_numbers(good), release_numbers(bad)
    if first == last:
        raise RangeError(
            "good and bad are the same release", where=good, hint="choose two different releases"
        )
    if first > last:
        raise RangeError(
            "good and bad are swapped: bad is the older release",
            where=f"{good}, {bad}",
            hint=f"--good {bad} --bad {good}; for something that became faster add --direction better",
        )
    known = {*known_releases(engine, home), good, bad}
    between = sorted((ref for ref in known if first <= release_numbers(ref) <= last), key=release_numbers)
    return CandidateRange(tuple(BisectPoint(str(Version(engine, ref))) for ref in between))
