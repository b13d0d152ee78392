"""The issues of versions that cannot be built and of servers that fail: one for a branch and an error.

A branch, its variants and several boxes share an issue if they fail for the same reason.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from history.escaping.characters import one_line
from history.escaping.markdown import Markdown, code_span, document, indented, joined, md
from history.series.last_nights import LastNight
from history.store.alert_outbox import Alert, AlertKind, DesiredIssue, IssueState
from runners.alerting.issues.groups import Assigned, assign, superseded_issues

LONGEST_REASON = 2_000
"""Characters of a log in the body of an issue."""

MAX_NAMED = 20
"""Members of an issue that are named; all of them are counted."""

_ERROR = re.compile(r"\berror\b|\bfatal\b|\bpanic\b|undefined reference|assert|signal \d", re.IGNORECASE)
"""A line of a log that says what failed."""

_VARYING = re.compile(r"\x1b\[[0-9;]*m|(?:/[^\s:'\"]*)+/|0x[0-9a-f]+|\b[0-9a-f]{7,}\b|\d+", re.IGNORECASE)
"""What differs from box to box and from commit to commit in the same error: folders, addresses, numbers."""


@dataclass(frozen=True)
class _Kind:
    """One kind of failure."""

    alert: AlertKind
    title: str
    """Behind the name of the branch."""

    failed: str
    """What a version did, before the box."""

    all_failed: str
    """What several did, before a list of them."""

    ended: str
    """What a version did when that was over, before the box."""

    all_ended: str

    logs: Callable[[LastNight], Mapping[str, str]]
    """What went wrong, by step; empty if nothing did. Without a step where there is none."""

    is_over: Callable[[LastNight], bool]


_BUILD = _Kind(
    AlertKind.BUILD,
    "cannot be built",
    "could not be built",
    "These versions could not be built, all for the same reason:",
    "was built again",
    "All of these versions were built again:",
    lambda night: {"": night.not_measured} if night.build_error else {},
    lambda night: night.is_built,
)
_CRASH = _Kind(
    AlertKind.CRASH,
    "fails while it is measured",
    "failed",
    "These versions failed, all for the same reason:",
    "ran to its end",
    "All of these versions ran to their end:",
    lambda night: night.failures,
    lambda night: night.is_built and not night.failures,
)


def issues_of_failures(nights: Sequence[LastNight], alerts: Sequence[Alert]) -> Iterator[DesiredIssue]:
    """The issues of branches whose last version cannot be built or fails, and the end of those before.

    What the machine is to blame for says nothing of the branch: the state of the box tells it.
    """
    for kind in (_BUILD, _CRASH):
        yield from _issues(kind, nights, [alert for alert in alerts if alert.desired.kind is kind.alert])


def _issues(kind: _Kind, nights: Sequence[LastNight], alerts: Sequence[Alert]) -> Iterator[DesiredIssue]:
    by_cause: dict[tuple[str, ...], list[LastNight]] = {}
    for night in nights:
        if kind.logs(night) and night.is_own:
            by_cause.setdefault(_cause(kind, night), []).append(night)
    groups = list(by_cause.values())
    # One that was muted is over when it was built: the next failure is another matter.
    lasting = [alert for alert in alerts if alert.muted is None or alert.desired.state is IssueState.OPEN]
    assigned = assign([[_member(kind, night) for night in group] for group in groups], lasting)
    used = {alert.desired.fingerprint for alert in alerts}
    for group, telling in zip(groups, assigned, strict=True):
        issue = _failed(kind, group, telling, used)
        yield issue
        yield from superseded_issues(telling, issue)
    gone = {_member(kind, night): night for night in nights if kind.is_over(night)}
    telling_now = {
        alert.id for assignment in assigned for alert in (assignment.alert, *assignment.superseded) if alert
    }
    for alert in alerts:
        is_open = alert.desired.state is IssueState.OPEN
        if is_open and alert.id not in telling_now and gone.keys() >= set(alert.desired.told):
            yield _ended(kind, alert, [gone[member] for member in alert.desired.told])


def _failed(kind: _Kind, group: Sequence[LastNight], telling: Assigned, used: set[str]) -> DesiredIssue:
    members = tuple(_member(kind, night) for night in group)
    first = group[0]
    if telling.alert is not None:
        fingerprint = telling.alert.desired.fingerprint
    elif members[0] not in used:
        fingerprint = members[0]
    else:
        fingerprint = f"{kind.alert}-{_digest(members[0], first.version, first.at.isoformat())}"
    logs = [
        md("\n{}{}", md("{}:\n\n", step) if step else "", _quoted(why))
        for step, why in kind.logs(first).items()
    ]
    return DesiredIssue(
        fingerprint,
        kind.alert,
        _title(kind, group),
        document([_heading(group, kind.failed, kind.all_failed, md(":")), *logs]),
        IssueState.OPEN,
        seen_at=max(night.at for night in group),
        members=members,
    )


def _ended(kind: _Kind, alert: Alert, group: Sequence[LastNight]) -> DesiredIssue:
    versions = list(dict.fromkeys(night.version for night in group))
    said = versions[0] if len(versions) == 1 else f"each of {len(versions)} versions"
    return replace(
        alert.desired,
        body=document([_heading(group, kind.ended, kind.all_ended, md("."))]),
        state=IssueState.CLOSED,
        closing=f"{said} {kind.ended}",
        seen_at=None,
    )


def _heading(group: Sequence[LastNight], what: str, several: str, end: Markdown) -> Markdown:
    """What happened to which versions on which boxes: a sentence for one, a list for several."""
    if len(group) == 1:
        return md("{} {} on {}{}", code_span(group[0].version), what, group[0].box, end)
    listed = [md("- {} on {}", code_span(night.version), night.box) for night in group[:MAX_NAMED]]
    if len(group) > MAX_NAMED:
        listed.append(md("- and {} more", len(group) - MAX_NAMED))
    return joined([md("{}", several), "", *listed])


def _title(kind: _Kind, group: Sequence[LastNight]) -> str:
    branches = sorted({night.branch for night in group}, key=lambda branch: ("#" in branch, branch))
    more = f" and {len(branches) - 1} more" if len(branches) > 1 else ""
    return one_line(f"{branches[0].replace('@', ' ')}{more} {kind.title}")


def _cause(kind: _Kind, night: LastNight) -> tuple[str, ...]:
    """The same for a branch, its variants and all boxes if they fail for the same reason."""
    logs = kind.logs(night)
    return (night.branch.partition("#")[0], *(f"{step}: {_first_error(logs[step])}" for step in sorted(logs)))


def _first_error(text: str) -> str:
    """The line of a log that says what failed, without what differs from box to box."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next((line for line in lines if _ERROR.search(line)), lines[0] if lines else "")
    return " ".join(_VARYING.sub("#", said).split())


def _quoted(text: str) -> Markdown:
    """A log, in which nothing is markup."""
    return indented(text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}\n(and more)")


def _member(kind: _Kind, night: LastNight) -> str:
    """The fingerprint of a branch on a box, which is that of its issue unless another one tells it."""
    return f"{kind.alert}-{_digest(night.box, night.branch)}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
