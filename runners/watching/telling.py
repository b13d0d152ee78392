"""What a watch found of one thing, and its issue: opened, kept, and closed when all is well again."""

from collections.abc import Sequence
from dataclasses import dataclass

from history.escaping.characters import one_line
from runners.alerting.direct_issues import OPENED, DirectAlert, DirectIssues
from runners.alerting.notices.outbox import NoticeKind
from runners.alerting.notices.routes import About
from runners.alerting.notices.sending import send_directly
from runners.alerting.tracker import TrackerError
from runners.alerting.tracker_registry import open_tracker
from runners.nightly.plan import Plan


@dataclass(frozen=True)
class WatchVerdict:
    """Whether all is well with a box, a workflow or a runner."""

    line: str
    """One line for people."""

    subject: str
    """What its issues are found by."""

    alert: DirectAlert | None
    """The issue that it is to have; None when all is well."""

    settled: str
    """Why an issue is closed when all is well."""

    advice: str
    """What a person does first, in a line of a notice."""

    box: str = ""
    """The box that it is about; empty for the workflows of all."""

    told_by: str = ""
    """How the subjects begin of other issues that tell of the same; none when empty."""


def tell(plan: Plan, found: Sequence[WatchVerdict]) -> list[str]:
    """Open and close the issues, tell routes, and print what was done; return what went wrong."""
    if plan.alerts.repository is None:
        return []
    try:
        tracker = open_tracker(plan.alerts.tracker, plan.alerts.repository, plan.alerts.url)
        issues = DirectIssues(tracker, plan.alerts.labels)
    except TrackerError as error:
        return [f"the issues cannot be read: {error}"]
    problems = []
    for verdict in found:
        try:
            if verdict.alert is not None:
                done = issues.tell(verdict.alert, verdict.told_by)
            else:
                done = issues.settle(verdict.subject, verdict.settled)
        except TrackerError as error:
            problems.append(f"{verdict.line}: {error}")
            continue
        if done:
            print(done)
            problems += _notified(plan, verdict, done)
    return problems


def _notified(plan: Plan, verdict: WatchVerdict, done: str) -> list[str]:
    """Tell routes that an issue was opened or closed; return what went wrong."""
    about = About(boxes=[verdict.box] if verdict.box else [])
    if verdict.alert is None:
        kind, text = NoticeKind.OVER, f"Over: {verdict.line}; issue {done}"
    elif OPENED in done:
        text = f"Trouble: {verdict.alert.title}; issue {done}; to do: {verdict.advice}"
        kind = NoticeKind.TROUBLE
    else:
        return []
    sent = send_directly(plan.notify, kind, about, one_line(text))
    return [str(error) for error in sent.values() if error is not None]
