"""What people are to be told of the history as it is: changes, failed builds, servers that die."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select

from history.changes import confirmation, repository
from history.changes.level_shift import Direction
from history.changes.repository import Change, ChangeStatus
from history.comparison.profile_diff import FunctionChange, differential
from history.rendering.escaping import escaped
from history.series.series import Point, base_branch, read
from history.store.alert_outbox import AlertKind, IssueState, WantedIssue
from history.store.bisects import of_change
from history.store.profiles import profiles_of
from history.store.records import ALL_STEPS, RunStatus
from history.store.schema import gaps, nights, runs
from runners.alerting.issue_texts import Told, body, title, worst

NAMED_FUNCTIONS = 5
"""In the body of an issue."""

LONGEST_REASON = 2_000
"""Characters of a log in the body of an issue."""


def wanted_alerts(
    connection: Connection, smallest: float, known: Mapping[str, IssueState]
) -> list[WantedIssue]:
    """How all issues should be.

    `smallest` is the fraction below which a change is not worth a person's time; `known` are the alerts that
    there are, by fingerprint: what went away before it was told needs none.
    """
    found = [
        *_of_changes(connection, smallest, known),
        *_of_builds(connection, known),
        *_of_crashes(connection, known),
    ]
    return [each for each in found if each.state is IssueState.OPEN or each.fingerprint in known]


def _of_changes(
    connection: Connection, smallest: float, known: Mapping[str, IssueState]
) -> Iterator[WantedIssue]:
    for change in repository.load(connection):
        # An improvement is good news: the summary of a night has it, and nobody has to close it.
        told = change.direction in (Direction.REGRESSION, Direction.MIXED) and _is_large(change, smallest)
        if change.status is ChangeStatus.ACKNOWLEDGED or not (told or change.fingerprint in known):
            continue
        everything = _told(connection, change)
        state = IssueState.OPEN if change.status is ChangeStatus.OPEN else IssueState.CLOSED
        closing = "" if state is IssueState.OPEN else change.reason or "it is gone"
        yield WantedIssue(
            change.fingerprint, AlertKind.CHANGE, title(everything), body(everything), state, closing
        )


def _is_large(change: Change, smallest: float) -> bool:
    return any(abs(each.level_after / each.level_before - 1) >= smallest for each in change.members)


def _told(connection: Connection, change: Change) -> Told:
    commits = (
        repository.commit_of(connection, change.last_before),
        repository.commit_of(connection, change.first_after),
    )
    place = worst(change).key.place
    base = base_branch(connection, place)
    return Told(
        change,
        base or "its base",
        commits,
        gained=_gained(connection, change),
        later=_later(connection, change, base),
        bisected=_bisected(connection, change),
    )


def _later(connection: Connection, change: Change, base: str | None) -> Sequence[Point]:
    """The nights of its worst series behind the first with the change, without gaps."""
    member = worst(change)
    since = read(connection, member.key, base, member.first_after.started_at)
    return [each for each in since if each.relative is not None and each.night != member.first_after]


def _bisected(connection: Connection, change: Change) -> str:
    """What the latest bisect of a change that has a verdict came to; empty when there is none."""
    found = of_change(connection, change.fingerprint)
    if not found:
        return ""
    from runners.bisect.report.render import result
    from runners.bisect.report.state import (
        BisectState,
    )  # its arithmetic takes a moment that other nights need not wait
    from runners.bisect.run.event_log import answered

    return result(BisectState(answered(found[0])))


def _gained(connection: Connection, change: Change) -> Sequence[FunctionChange]:
    """Of the branch before and after, side by side where that was confirmed, else each in its own night."""
    member = worst(change)
    step, both = member.key.step, (change.last_before, change.first_after)
    rounds = []
    if member.confirmed is not None:
        its = confirmation.session_id(connection, member.confirmed)
        rounds = [profiles_of(connection, its, step, night.version) for night in both]
    if not rounds or not all(rounds):
        rounds = [profiles_of(connection, night.session_id, step, night.version) for night in both]
    return differential(*rounds).gained(NAMED_FUNCTIONS) if all(rounds) else ()


def _of_builds(connection: Connection, known: Mapping[str, IssueState]) -> Iterator[WantedIssue]:
    """One for each branch on each box, as of its last night."""
    for row in _last_nights(connection):
        name = _fingerprint("build", row.box, row.branch)
        if row.build_id is None:
            reason = _reason(connection, row.session_id, row.branch)
            if reason.startswith("not built"):
                text = f"`{row.version}` could not be built on {escaped(row.box)}:\n\n{_quoted(reason)}\n"
                headline = f"{row.branch.replace('@', ' ')} cannot be built"
                yield WantedIssue(name, AlertKind.BUILD, headline, text, IssueState.OPEN)
        elif name in known:
            text = f"`{row.version}` was built again on {escaped(row.box)}.\n"
            headline = f"{row.branch.replace('@', ' ')} cannot be built"
            yield WantedIssue(
                name, AlertKind.BUILD, headline, text, IssueState.CLOSED, f"{row.version} was built"
            )


def _of_crashes(connection: Connection, known: Mapping[str, IssueState]) -> Iterator[WantedIssue]:
    """One for each branch on each box whose server died, or whose step failed, in its last night."""
    for row in _last_nights(connection):
        if row.build_id is None:
            continue
        name = _fingerprint("crash", row.box, row.branch)
        failed = _failures(connection, row.session_id, row.version)
        headline = f"{row.branch.replace('@', ' ')} fails while it is measured"
        if failed:
            said = "\n\n".join(f"{escaped(step)}:\n\n{_quoted(why)}" for step, why in failed.items())
            text = f"`{row.version}` on {escaped(row.box)}:\n\n{said}\n"
            yield WantedIssue(name, AlertKind.CRASH, headline, text, IssueState.OPEN)
        elif name in known:
            text = f"`{row.version}` ran to its end on {escaped(row.box)}.\n"
            yield WantedIssue(
                name, AlertKind.CRASH, headline, text, IssueState.CLOSED, f"{row.version} ran to its end"
            )


def _last_nights(connection: Connection) -> Sequence[Row[Any]]:
    """The last night of each branch on each box."""
    last = (
        select(nights.c.box, nights.c.branch, func.max(nights.c.started_at).label("started_at"))
        .group_by(nights.c.box, nights.c.branch)
        .subquery()
    )
    query = select(nights).join(
        last,
        (nights.c.box == last.c.box)
        & (nights.c.branch == last.c.branch)
        & (nights.c.started_at == last.c.started_at),
    )
    return connection.execute(query.order_by(nights.c.box, nights.c.branch)).all()


def _reason(connection: Connection, session_id: int, branch: str) -> str:
    query = select(gaps.c.reason).where(
        gaps.c.session_id == session_id, gaps.c.branch == branch, gaps.c.step == ALL_STEPS
    )
    return connection.execute(query).scalar() or ""


def _failures(connection: Connection, session_id: int, version: str) -> dict[str, str]:
    """Step -> why it failed, of a version in a session."""
    query = (
        select(runs.c.step, runs.c.failure)
        .where(runs.c.session_id == session_id, runs.c.version == version, runs.c.status == RunStatus.FAILED)
        .order_by(runs.c.position.desc())
    )
    found = {step: failure or "no reason recorded" for step, failure in connection.execute(query)}
    return dict(sorted(found.items()))


def _quoted(text: str) -> str:
    """A log as it is: indented, so that nothing in it is markup."""
    short = text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}\n(and more)"
    return "\n".join(f"    {line}" for line in short.splitlines())


def _fingerprint(kind: str, *parts: str) -> str:
    return f"{kind}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:12]}"
