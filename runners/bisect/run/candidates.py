"""The points between good and bad: commits of a git source, or known releases where there is none."""

from build.engines import ENGINES
from build.home import Home
from build.sources.commits import CommitRange, Described, RangeError, commit_range
from build.sources.git import mirror, without_credentials
from build.sources.releases import known_releases
from build.sources.source import git_address
from build.version import Engine, Version, is_release, release_numbers
from runners.bisect.domain.question import BisectPoint, CandidateRange

LONGEST_MESSAGE = 4_000
"""Characters of a commit's message that the history keeps."""

DIGITS = 12
"""Of a commit in the name of a version."""


def git_of(engine: Engine, good: str, bad: str, given: str | None) -> str | None:
    """The git source to search; None for a list of releases.

    What was given or is in the environment; else, unless good and bad are both releases, upstream's.
    """
    chosen = git_address(engine, given)
    if chosen is not None:
        return chosen
    releases = all(is_release(ref) for ref in (good, bad))
    return None if releases else ENGINES[engine].upstream.git


def span_of(engine: Engine, good: str, bad: str, address: str | None, home: Home) -> CandidateRange:
    """Raises GitError and RangeError for what cannot be searched; fetches the git source where it must."""
    if address is None:
        return _releases(engine, good, bad, home)
    found = commit_range(mirror(address, engine, home), engine, good, bad)
    points = (found.good, *found.candidates)
    collapsed = [
        {"commit": each.commit, "subject": each.subject, "reason": each.reason} for each in found.collapsed
    ]
    return CandidateRange(
        tuple(_point(engine, each) for each in points), tuple(collapsed), _collapsed_bad(found)
    )


def shown_address(address: str | None) -> str | None:
    """As the history and reports have it."""
    return None if address is None else without_credentials(address)


def _collapsed_bad(found: CommitRange) -> str:
    return "" if found.candidates[-1].commit == found.bad.commit else found.bad.commit


def _point(engine: Engine, commit: Described) -> BisectPoint:
    version = Version(engine, f"git:{commit.commit[:DIGITS]}")
    message = commit.message[:LONGEST_MESSAGE]
    return BisectPoint(str(version), commit.commit, commit.author, commit.date, commit.subject, message)


def _releases(engine: Engine, good: str, bad: str, home: Home) -> CandidateRange:
    first, last = release_numbers(good), release_numbers(bad)
    if first == last:
        raise RangeError("good and bad are the same release", where=good, hint="name two different ones")
    if first > last:
        raise RangeError(
            "good and bad are swapped: bad is the older release",
            where=f"{good}, {bad}",
            hint=f"--good {bad} --bad {good}; of something that became faster: --direction better",
        )
    known = {*known_releases(engine, home), good, bad}
    between = sorted((each for each in known if first <= release_numbers(each) <= last), key=release_numbers)
    return CandidateRange(tuple(BisectPoint(str(Version(engine, each))) for each in between))
