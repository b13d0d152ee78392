"""Whether an alert would reach the tracker: checked in every night, and by a test alert."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from build.errors import TidemarkError
from build.files import write_atomically
from history.escaping.markdown import Markdown, md
from history.store.alert_outbox import IssueState
from history.timestamps import now, to_text
from runners.alerting.tracker import Issue, IssueEdit, LabelsRefusedError, Tracker, TrackerError

EXPIRY_DAYS = 7
"""How long before a token expires every check says so."""


@dataclass(frozen=True)
class TrackerCheck:
    """What the latest check of the way to the tracker found."""

    checked_at: str
    """ISO-8601 in UTC."""

    repository: str
    problem: str
    """Why an alert would not reach it, or not for much longer; empty when all is well."""


def check_tracker(tracker: Tracker, path: Path) -> TrackerCheck:
    """Ask the tracker whether issues can be opened, and keep the answer in the file at `path`.

    One request or two, which change nothing. What a token may do is known as far as the tracker says so when
    the repository is read: of a fine-grained token, GitHub does not.
    """
    moment = now()
    try:
        expires_at = tracker.check()
        is_soon = expires_at is not None and expires_at - moment < timedelta(days=EXPIRY_DAYS)
        problem = f"the token expires at {expires_at:%Y-%m-%d %H:%M} UTC: renew it before" if is_soon else ""
    except TrackerError as error:
        problem = str(error)
    return keep_check(TrackerCheck(to_text(moment), tracker.repository, problem), path)


def keep_check(check: TrackerCheck, path: Path) -> TrackerCheck:
    """Write a check to the file at `path`, for `status`. A disk that is full is no reason to fail."""
    try:
        write_atomically(path, json.dumps(asdict(check)))
    except OSError:
        path.unlink(missing_ok=True)
    return check


@dataclass(frozen=True)
class SentAlert:
    """A test alert that reached the tracker."""

    issue: Issue
    without_labels: str
    """Why it was opened without the labels of the plan; empty when it has them."""


def send_test_alert(tracker: Tracker, labels: Sequence[str], box: str, moment: datetime) -> SentAlert:
    """Open an issue and close it again, as an alert does. Raises TrackerError that says what to do.

    If it was opened and cannot be closed, the error has its address.
    """
    tracker.check()
    title, text = f"Test alert of box {box}", _text(box, moment)
    lacking = ""
    try:
        issue = tracker.create(title, text, tuple(labels))
        known = {label.casefold() for label in issue.labels}
        lost = [label for label in labels if label.casefold() not in known]
        if lost:
            lacking = f"the token's account may not set labels in {tracker.repository}: {', '.join(lost)}"
    except LabelsRefusedError as error:
        lacking = error.what
        issue = tracker.create(title, text, ())
    try:
        tracker.edit(issue, IssueEdit(state=IssueState.CLOSED))
    except TidemarkError as error:
        raise TrackerError(
            f"the test alert was opened and could not be closed: {error.what}",
            where=issue.address or f"{tracker.repository}#{issue.number}",
            hint=f"close it there; {error.hint}",
        ) from error
    return SentAlert(issue, lacking)


def _text(box: str, moment: datetime) -> Markdown:
    return md(
        "Sent by `./tidemark service test-alert` on box **{}** at {:%Y-%m-%d %H:%M} UTC, and closed again at"
        " once.\n\nAlerts of the nightly service reach this repository.\n",
        box,
        moment,
    )
