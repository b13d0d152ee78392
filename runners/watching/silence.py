"""Which boxes are silent, by the jobs that were asked of them, and the issue of each."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from history.escaping.characters import one_line
from history.escaping.markdown import Markdown, document, escaped, joined, link, md
from runners.alerting.direct_issues import DirectAlert
from runners.alerting.issues.box_names import box_prefix
from runners.nightly.heartbeat import MISSED_HOURS
from runners.watching.jobs import WORKFLOW, AskedBox, BoxSigns, WorkflowRun
from runners.watching.telling import WatchVerdict

NO_RUN_HOURS = 2 * MISSED_HOURS
"""How long ago the latest run may be: GitHub may drop one, and ends the schedules of quiet repositories."""

MAX_SHOWN = 5
"""The most runs that an issue lists."""


def verdicts(signs: Iterable[BoxSigns], runs: Sequence[WorkflowRun], now: datetime) -> list[WatchVerdict]:
    """Judge all boxes, and whether the workflow runs at all.

    A box is silent when something was asked of it MISSED_HOURS ago, and no job of it has succeeded since.
    That GitHub does not run the workflow says nothing of a box.
    """
    return [_workflow(runs, now), *(_box(sign, now) for sign in signs)]


def _workflow(runs: Sequence[WorkflowRun], now: datetime) -> WatchVerdict:
    subject, settled = f"workflow-{_digest(WORKFLOW)}", "it runs again"
    advice = "look at Actions of the repository"
    if not runs:
        return WatchVerdict(f"{WORKFLOW}: it never ran", subject, None, settled, advice)
    last = runs[0]
    when = f"{last.created_at:%Y-%m-%d %H:%M} UTC"
    if now - last.created_at <= timedelta(hours=NO_RUN_HOURS):
        return WatchVerdict(f"{WORKFLOW}: ran {when}", subject, None, settled, advice)
    text = document(
        [
            md("GitHub has not run {} since {}, {}.", WORKFLOW, when, link(last.html_url)),
            "",
            "It switches schedules off in a repository that was quiet for 60 days: look at the list of"
            " workflows under Actions. Boxes with a timer of their own measure all the same.",
        ]
    )
    title = f"{WORKFLOW} has not run since {last.created_at:%Y-%m-%d}"
    alert = DirectAlert(subject, _digest(last.created_at.isoformat()), title, text)
    return WatchVerdict(f"{WORKFLOW}: no run since {when}", subject, alert, settled, advice)


def _box(signs: BoxSigns, now: datetime) -> WatchVerdict:
    # A box that still has its history tells of its nights itself, or another box does.
    told_by, last = box_prefix(signs.box), signs.last_success
    subject, settled = f"{told_by}jobs", "a job succeeded"
    advice = "is the box on, and its runner? docs/hardware.md"
    heard = f"last success {last:%Y-%m-%d %H:%M} UTC" if last else "no success yet"
    patience = timedelta(hours=MISSED_HOURS)
    if not any(now - asked.run.created_at > patience for asked in signs.unanswered):
        asked_for = "" if last or signs.unanswered else ", nothing was asked of it"
        return WatchVerdict(f"box {signs.box}: {heard}{asked_for}", subject, None, settled, advice, signs.box)
    since = last or min(asked.run.created_at for asked in signs.unanswered)
    fails = any(asked.has_run for asked in signs.unanswered)
    what = "its jobs fail" if fails else "it is silent"
    title = one_line(f"box {signs.box}: {what} since {since:%Y-%m-%d}")
    alert = DirectAlert(subject, _digest(last.isoformat() if last else ""), title, _text(signs, heard, fails))
    return WatchVerdict(
        f"box {signs.box}: {what}, {heard}", subject, alert, settled, advice, signs.box, told_by
    )


def _text(signs: BoxSigns, heard: str, fails: bool) -> Markdown:
    """The body of an issue, which stays the same from night to night."""
    asked = sorted(signs.unanswered, key=lambda asked_box: asked_box.run.created_at)[:MAX_SHOWN]
    does = "run on it, and none of them succeeds" if fails else "do not run on it"
    lines: list[str] = [
        md("Jobs of {} for box **{}** {}: {}. The first ones since:", WORKFLOW, signs.box, does, heard),
        "",
        *_rows(asked),
        "",
        "Is the box on, and its runner (Settings, Actions, Runners)? On the box:",
        "",
        md("    ./tidemark status\n    systemctl status 'actions.runner.*'"),
        "",
        "docs/hardware.md says what to do. The issue is closed when a job of the box succeeds.",
    ]
    return document(lines)


def _rows(asked: Iterable[AskedBox]) -> Iterator[Markdown]:
    for asked_box in asked:
        ended = (f"{part} {conclusion or 'not ended'}" for part, conclusion in asked_box.conclusions.items())
        when = f"{asked_box.run.created_at:%Y-%m-%d %H:%M} UTC"
        yield md("- {}: {} ({})", when, joined(map(escaped, ended), ", "), link(asked_box.run.html_url))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
