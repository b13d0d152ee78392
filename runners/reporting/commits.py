"""The commits between two nights for the site, from the local mirrors of git sources."""

import time
from collections.abc import Callable

from build.engines import ENGINES
from build.errors import TidemarkError
from build.home import Home
from build.sources.commits import SHORT, CommitInfo, RecentCommits, collapsed_reason, recent_commits
from build.sources.git import local_mirrors
from build.version import Engine
from history.changes.report import ChangeReport
from history.errors import stored_version
from report.values.commits import (
    MAX_COMMITS,
    MAX_FILES,
    Commits,
    CommitsBetween,
    CommitsOf,
    ListedCommit,
    NoCommits,
)

MAX_QUERY_SECONDS = 20.0
"""The most seconds of one git command."""

MAX_SECONDS = 60.0
"""The seconds after which a site lists no further commits; the next renewal continues."""


def commits_in(home: Home, clock: Callable[[], float] = time.monotonic) -> CommitsOf:
    """Return what lists the commits between the nights of a change, from the mirrors of a home.

    Nothing is ever fetched: a mirror has what was measured there. `clock` gives seconds.
    """
    end = clock() + MAX_SECONDS

    def commits_of(report: ChangeReport) -> Commits:
        old, new = report.commits
        if old is None or new is None:
            return NoCommits("the nights did not both measure a commit from git")
        if old == new:
            return NoCommits(f"both nights measured the commit {new[:SHORT]}")
        if clock() > end:
            return NoCommits(
                f"git took longer than {MAX_SECONDS:g} s; the next time the site is written continues"
            )
        engine = stored_version(report.change.first_after.version).engine
        return _between(engine, home, old, new)

    return commits_of


def _between(engine: Engine, home: Home, old: str, new: str) -> Commits:
    upstream, here = ENGINES[engine].upstream.git, "on the machine that wrote this page"
    mirrors = local_mirrors(engine, home, upstream)
    if not mirrors:
        return NoCommits(
            f"there is no git mirror of {ENGINES[engine].title} on the machine that wrote this page"
        )
    reason = f"no git mirror {here} has both {old[:SHORT]} and {new[:SHORT]}"
    for mirror in mirrors:
        try:
            found = recent_commits(mirror, old, new, MAX_COMMITS, MAX_QUERY_SECONDS)
        except TidemarkError as error:
            reason = f"the git mirror cannot be read: {error.what}"
            continue
        if found is not None:
            return _listed(found, engine, is_upstream=mirror.url == upstream)
    return NoCommits(reason)


def _listed(found: RecentCommits, engine: Engine, *, is_upstream: bool) -> Commits:
    if not found.total:
        return NoCommits("the later night measured an older commit than the night before")
    rows = tuple(_row(commit, engine) for commit in found.newest)
    return CommitsBetween(rows, found.total, found.is_one_line, is_upstream)


def _row(commit: CommitInfo, engine: Engine) -> ListedCommit:
    return ListedCommit(
        commit.commit,
        commit.subject,
        commit.author,
        commit.date,
        commit.paths[:MAX_FILES],
        len(commit.paths),
        collapsed_reason(commit, engine),
        f"{ENGINES[engine].commit_page}{commit.commit}",
        len(commit.parents) > 1,
    )
