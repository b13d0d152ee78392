"""`./tidemark service`: set up, pause and update this machine as a box of the nightly service."""

import argparse
import platform
import sys
from datetime import UTC, datetime

from build.home import locate_for_writing
from runners.alerting.notices.sending import send_test
from runners.alerting.tracker import TrackerError
from runners.alerting.tracker_check import send_test_alert
from runners.alerting.tracker_registry import open_tracker
from runners.measuring.machine_lock import current_holder
from runners.nightly.heartbeat import night_elsewhere, process_of, read
from runners.nightly.plan import Alerts, find_box, load_plan
from runners.occupancy.pause import begin as begin_pause
from runners.occupancy.pause import end as end_pause
from runners.occupancy.pause import interrupt
from runners.service.install import install
from runners.service.installed import installed_variables, plan_in_use
from runners.service.update import update


def main(arguments: argparse.Namespace) -> int:
    """Carry out a subcommand, and return its exit code."""
    subcommands = {
        "install": install,
        "update": update,
        "pause": pause,
        "resume": resume,
        "test-alert": test_alert,
    }
    return subcommands[arguments.what](arguments)


def test_alert(arguments: argparse.Namespace) -> int:
    """Send a message to each route, open an issue and close it again, as far as the plan has them.

    Return 0; 1 when the issue lacks its labels; 2 when a message did not arrive. Raises TrackerError.
    """
    file = plan_in_use(arguments.plan)
    plan, chosen = load_plan(file), arguments.box or installed_variables().get("TIDEMARK_BOX")
    box, now = find_box(plan, chosen, platform.node()), datetime.now(UTC)
    lost = False
    for name, error in send_test(plan.notify, box, now).items():
        lost = lost or error is not None
        if error is None:
            print(f"arrived: route {name}", flush=True)
        else:
            print(f"tidemark: {error}", file=sys.stderr)
    if plan.alerts.repository is None and not plan.notify:
        raise TrackerError(
            "the plan names no repository and no route, so that alerts stay in the history",
            where=str(file),
            hint='add repository = "owner/name" to its [alerts], or a [[notify]]',
        )
    code = 0 if plan.alerts.repository is None else _test_issue(plan.alerts, plan.alerts.repository, box, now)
    return 2 if lost else code


def _test_issue(alerts: Alerts, repository: str, box: str, now: datetime) -> int:
    tracker = open_tracker(alerts.tracker, repository, alerts.url)
    sent = send_test_alert(tracker, alerts.labels, box, now)
    print(f"opened, and closed again: {sent.issue.address or sent.issue.number}")
    if sent.without_labels:
        print(f"tidemark: {sent.without_labels}", file=sys.stderr)
    return 1 if sent.without_labels else 0


def pause(arguments: argparse.Namespace) -> int:
    """Pause this box; return 0. Raises PauseError for a time that cannot be meant."""
    home, now = locate_for_writing(), datetime.now(UTC)
    print(begin_pause(home, arguments.until, arguments.why, now))
    running = night_elsewhere(home.heartbeat, now)
    if running is None:
        holder = current_holder(home)
        if holder is not None:
            print(f"The machine is held by {holder}, which is not a night of this box, and goes on.")
    elif arguments.interrupt:
        print(f"Interrupting the night of process {running.process_id}: {running.what}.", flush=True)
        interrupt(process_of(running))
        print("It has ended. The next night continues it.")
    else:
        print(f"A night is running ({running.what}): its session goes on, and the night ends after it.")
        print("With --interrupt it ends now, and the next night continues it.")
    if read(home.heartbeat) is None:
        print(
            f"note: no night has begun with this output folder; is it the box's (TIDEMARK_HOME)? {home.path}"
        )
    return 0


def resume(arguments: argparse.Namespace) -> int:
    """End the pause of this box; return 0."""
    del arguments
    ended = end_pause(locate_for_writing(), datetime.now(UTC))
    print("this box is not paused" if ended is None else f"ended: {ended}")
    return 0
