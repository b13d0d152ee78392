"""Whether people are reached: the token of the tracker and its rights, and the URL of each route."""

from collections.abc import Iterator
from datetime import UTC, datetime

from build.errors import TidemarkError
from runners.alerting.notices.sending import send_test
from runners.alerting.tokens import STORE, credential
from runners.alerting.tracker import MissingTokenError, TrackerError
from runners.alerting.tracker_check import EXPIRY_DAYS, send_test_alert
from runners.alerting.tracker_registry import open_tracker
from runners.initializing.needs import Need, NeedState
from runners.nightly.plan import Alerts, Plan


def reach(plan: Plan, box: str, *, sends: bool) -> Iterator[Need]:
    """Yield how it is with tracker and routes; `sends`: an issue is opened and closed, and messages are sent.

    Without that, what a token may do is known as far as the tracker says so when it is asked.
    """
    if plan.alerts.repository is None and not plan.notify:
        yield Need("alerts", NeedState.NOTE, "nobody is told: the plan names no repository and no route")
    if plan.alerts.repository is not None:
        yield _issues(plan.alerts, plan.alerts.repository, box, sends=sends)
    missing = []
    for route in plan.notify:
        try:
            route.address()
        except TidemarkError as error:
            missing.append(route)
            state = NeedState.LEFT if route.needs_credential else NeedState.WRONG
            to_do = _storing(route.credential) if route.needs_credential else error.hint
            yield Need(f"route {route.name}", state, error.what, to_do, secret="its URL")
    ready = [route for route in plan.notify if route not in missing]
    if not sends:
        yield from (Need(f"route {route.name}", NeedState.OK, "its URL is there") for route in ready)
        return
    for name, failure in send_test(ready, box, datetime.now(UTC)).items():
        if failure is None:
            yield Need(f"route {name}", NeedState.OK, "a test message arrived")
        else:
            yield Need(f"route {name}", NeedState.WRONG, failure.what, failure.hint)


def _issues(alerts: Alerts, repository: str, box: str, *, sends: bool) -> Need:
    try:
        tracker = open_tracker(alerts.tracker, repository, alerts.url)
        expires_at = tracker.check()
        if not sends:
            text = f"{repository} answers, and says nothing against issues by this token"
        else:
            sent = send_test_alert(tracker, alerts.labels, box, datetime.now(UTC))
            where = sent.issue.address or f"{repository}#{sent.issue.number}"
            text = f"a test alert was opened and closed: {where}"
            if sent.without_labels:
                return Need("issues", NeedState.NOTE, f"{text}; {sent.without_labels}")
    except MissingTokenError as error:
        return Need("issues", NeedState.LEFT, error.what, _storing(credential(alerts.tracker)), "the token")
    except TrackerError as error:
        return Need("issues", NeedState.WRONG, f"{error.what} ({error.where})", error.hint)
    if expires_at is not None and (expires_at - datetime.now(UTC)).days < EXPIRY_DAYS:
        soon = f"the token expires at {expires_at:%Y-%m-%d %H:%M} UTC"
        return Need("issues", NeedState.NOTE, f"{text}; {soon}", "renew it before")
    return Need("issues", NeedState.OK, text)


def _storing(name: str) -> str:
    """Return the command that stores a secret, which is typed and ended by Ctrl-D."""
    return f"sudo install -D -m 600 /dev/stdin {STORE}/{name}"
