"""The issues that there should be: of changes, of versions that cannot be built, of servers that fail."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from history.changes.level_shift import Direction
from history.changes.report import ChangeReport
from history.changes.repository import Change
from history.escaping.characters import one_line
from history.escaping.markdown import Markdown, code_span, document, indented, md
from history.series.last_nights import LastNight
from history.series.night import NOT_BUILT
from history.store.alert_outbox import AlertKind, DesiredIssue, IssueState
from history.store.records import ChangeStatus
from report import addresses
from runners.alerting.issue_texts import PAGE, body, title
from suites.metrics import METRICS

LONGEST_REASON = 2_000
"""Characters of a log in the body of an issue."""


def needs_issue(change: Change, smallest: float, known: Mapping[str, IssueState]) -> bool:
    """Whether an issue says something of a change: it is known already, or a regression that is large enough.

    `smallest` is the fraction below which a change of what is timed is not worth a person's time; `known` has
    the desired state of all alerts, by fingerprint. An improvement is in the summary of a night, and has no
    issue that somebody would have to close.
    """
    if change.status is ChangeStatus.ACKNOWLEDGED:
        return False
    if change.fingerprint in known:
        return True
    is_worse = change.direction in (Direction.REGRESSION, Direction.MIXED)
    is_large = any(
        abs(member.ratio - 1) >= METRICS[member.key.metric].threshold(smallest) for member in change.members
    )
    return is_worse and is_large and change.status is ChangeStatus.OPEN


def issue_of_change(report: ChangeReport, site: str = "") -> DesiredIssue:
    """The issue of a change: open as long as the change is; `site` is the address of the report site."""
    change = report.change
    is_open = change.status is ChangeStatus.OPEN
    return DesiredIssue(
        change.fingerprint,
        AlertKind.CHANGE,
        title(report),
        body(report, site),
        IssueState.OPEN if is_open else IssueState.CLOSED,
        "" if is_open else change.reason or "it is gone",
    )


def linked_site(issue: DesiredIssue) -> str:
    """The address of the report site to which the issue of a change links; empty without a link."""
    end = f"/{addresses.change(issue.fingerprint)}>"
    lines = [line for line in issue.body.splitlines() if line.startswith(f"{PAGE}<") and line.endswith(end)]
    return lines[0].removeprefix(f"{PAGE}<").removesuffix(end) if lines else ""


def issues_of_builds(nights: Iterable[LastNight], known: Mapping[str, IssueState]) -> Iterator[DesiredIssue]:
    """The issues of branches whose last version cannot be built, and the end of those that can again.

    What the machine is to blame for says nothing of the branch: the state of the box tells it.
    """
    for night in nights:
        fingerprint = _fingerprint("build", night)
        if night.not_measured.startswith(NOT_BUILT) and night.is_own:
            yield _not_built(fingerprint, night)
        elif night.is_built and fingerprint in known:
            yield _built_again(fingerprint, night)


def issues_of_crashes(nights: Iterable[LastNight], known: Mapping[str, IssueState]) -> Iterator[DesiredIssue]:
    """The issues of branches that fail while they are measured, and the end of those that do no longer.

    What the machine is to blame for is left out, as in `issues_of_builds`.
    """
    for night in nights:
        fingerprint = _fingerprint("crash", night)
        if night.failures and night.is_own:
            yield _crashed(fingerprint, night)
        elif night.is_built and not night.failures and fingerprint in known:
            yield _ran_to_its_end(fingerprint, night)


def _not_built(fingerprint: str, night: LastNight) -> DesiredIssue:
    what = md("{} could not be built on {}", code_span(night.version), night.box)
    text = document([md("{}:", what), "", _quoted(night.not_measured)])
    return DesiredIssue(fingerprint, AlertKind.BUILD, _build_title(night), text, IssueState.OPEN)


def _built_again(fingerprint: str, night: LastNight) -> DesiredIssue:
    text = document([md("{} was built again on {}.", code_span(night.version), night.box)])
    closing = f"{night.version} was built"
    return DesiredIssue(fingerprint, AlertKind.BUILD, _build_title(night), text, IssueState.CLOSED, closing)


def _crashed(fingerprint: str, night: LastNight) -> DesiredIssue:
    logs = (md("\n{}:\n\n{}", step, _quoted(why)) for step, why in night.failures.items())
    text = document([md("{} on {}:", code_span(night.version), night.box), *logs])
    return DesiredIssue(fingerprint, AlertKind.CRASH, _crash_title(night), text, IssueState.OPEN)


def _ran_to_its_end(fingerprint: str, night: LastNight) -> DesiredIssue:
    text = document([md("{} ran to its end on {}.", code_span(night.version), night.box)])
    closing = f"{night.version} ran to its end"
    return DesiredIssue(fingerprint, AlertKind.CRASH, _crash_title(night), text, IssueState.CLOSED, closing)


def _build_title(night: LastNight) -> str:
    return one_line(f"{night.branch.replace('@', ' ')} cannot be built")


def _crash_title(night: LastNight) -> str:
    return one_line(f"{night.branch.replace('@', ' ')} fails while it is measured")


def _quoted(text: str) -> Markdown:
    """A log, in which nothing is markup."""
    return indented(text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]}\n(and more)")


def _fingerprint(kind: str, night: LastNight) -> str:
    return f"{kind}-{hashlib.sha256(chr(10).join((night.box, night.branch)).encode()).hexdigest()[:12]}"
