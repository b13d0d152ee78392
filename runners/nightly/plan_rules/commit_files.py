"""The files that the commit of a change touches, from the local mirrors of the git source."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from build.errors import TidemarkError
from build.sources.commits import recent_commits
from build.sources.git import Mirror
from history.changes.repository import Change
from history.store.bisects import of_change
from runners.bisect.report.state import BisectState
from runners.bisect.run.event_log import answered

MAX_QUERY_SECONDS = 20.0
"""The most seconds of one git command."""


@dataclass(frozen=True)
class TouchedFiles:
    """The files of the one commit that a change comes from."""

    paths: tuple[str, ...] | None
    """None while it is not known which commit it is, or where no mirror has it."""

    is_settled: bool = True
    """Whether another box could not know more: False where the mirrors here lack the commits."""


def touched_files(connection: Connection, change: Change, mirrors: Sequence[Mirror]) -> TouchedFiles:
    """Return the files of the commit that a bisect found, or of the only one between the nights of a change.

    Nothing is fetched: a mirror has what was measured on its box.
    """
    span = _blamed(connection, change) or _between(change)
    if span is None:
        return TouchedFiles(None)
    for mirror in mirrors:
        try:
            found = recent_commits(mirror, *span, 1, MAX_QUERY_SECONDS)
        except TidemarkError:  # another mirror may have them
            continue
        if found is not None:
            return TouchedFiles(found.newest[0].paths if found.total == 1 else None)
    return TouchedFiles(None, is_settled=False)


def _between(change: Change) -> tuple[str, str] | None:
    before, after = change.last_before.commit, change.first_after.commit
    return (before, after) if before and after else None


def _blamed(connection: Connection, change: Change) -> tuple[str, str] | None:
    """Return the commit that a bisect of a change found, behind its parent; None if there is not one."""
    found = next(iter(of_change(connection, change.fingerprint)), None)
    blamed = [] if found is None else BisectState(answered(found)).blamed()
    commit = blamed[0].commit if len(blamed) == 1 else ""
    return (f"{commit}~1", commit) if commit else None
