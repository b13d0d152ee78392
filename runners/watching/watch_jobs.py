"""`./tidemark runner watch --jobs`: all boxes of a plan, by the jobs that GitHub's workflow asked of them."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from history.escaping.characters import one_line
from history.escaping.markdown import document, md
from runners.alerting.direct_issues import OPENED, DirectIssues
from runners.alerting.notices.outbox import NoticeKind
from runners.alerting.notices.routes import About
from runners.alerting.notices.sending import send_directly
from runners.alerting.tracker import TrackerError
from runners.alerting.tracker_registry import open_tracker
from runners.console import add_to_job_summary
from runners.nightly.plan import Plan
from runners.watching.box_issues import box_prefix
from runners.watching.jobs import box_signs, connect
from runners.watching.silence import WatchVerdict, verdicts


def watch_jobs(plan: Plan) -> int:
    """Print what the workflow knows of each box; return 1 when one is silent, or no night was asked for.

    Each of these has one issue, which is closed when the box is heard of again. Return 2 when the issues
    could not be brought up to date, else 0. Raises TrackerError when GitHub does not say.
    """
    jobs, now = connect(plan), datetime.now(UTC)
    runs = jobs.runs()
    found = verdicts(box_signs(plan.boxes, runs, jobs.jobs), runs, now)
    for verdict in found:
        print(verdict.line)
    add_to_job_summary(document([md("- {}", verdict.line) for verdict in found]))
    problems = _tell(plan, found)
    for problem in problems:
        print(f"tidemark: {problem}", file=sys.stderr)
    if any(verdict.alert for verdict in found):
        return 1
    return 2 if problems else 0


def _tell(plan: Plan, found: Sequence[WatchVerdict]) -> list[str]:
    """Open and close the issues; return what went wrong."""
    if plan.alerts.repository is None:
        return []
    try:
        issues = DirectIssues(open_tracker(plan.alerts.tracker, plan.alerts.repository), plan.alerts.labels)
    except TrackerError as error:
        return [f"the issues cannot be read: {error}"]
    problems, boxes = [], {f"{box_prefix(box)}jobs": box for box in plan.boxes}
    for verdict in found:
        # A box that still has its history tells of its nights itself, or another box does.
        box = boxes.get(verdict.subject)
        try:
            if verdict.alert is not None:
                done = issues.tell(verdict.alert, "" if box is None else box_prefix(box))
            else:
                done = issues.settle(verdict.subject, "a job succeeded" if box else "it runs again")
        except TrackerError as error:
            problems.append(f"{verdict.line}: {error}")
            continue
        if done:
            print(done)
            problems += _told(plan, verdict, done, box)
    return problems


def _told(plan: Plan, verdict: WatchVerdict, done: str, box: str | None) -> list[str]:
    """Tell routes that an issue was opened or closed; return what went wrong."""
    about = About(boxes=[box] if box else [])
    if verdict.alert is None:
        kind, text = NoticeKind.OVER, f"Over: {verdict.line}; issue {done}"
    elif OPENED in done:
        advice = (
            "is the box on, and its runner? docs/hardware.md" if box else "look at Actions of the repository"
        )
        kind, text = NoticeKind.TROUBLE, f"Trouble: {verdict.alert.title}; issue {done}; to do: {advice}"
    else:
        return []
    sent = send_directly(plan.notify, kind, about, one_line(text))
    return [str(error) for error in sent.values() if error is not None]
