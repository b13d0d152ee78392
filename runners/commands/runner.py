"""`./tidemark runner`: set up or remove a box; its units and hooks call the other subcommands."""

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath

from build.home import locate_for_writing
from runners import jobs
from runners.alerting.notices.sending import send_test
from runners.alerting.tokens import STORE, credential
from runners.alerting.tracker import TrackerError
from runners.alerting.tracker_check import send_test_alert
from runners.alerting.tracker_registry import open_tracker
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.kernel import Kernel
from runners.initializing.command import init
from runners.initializing.space import night_bytes
from runners.installing import agent, record, steps
from runners.installing.escaping import InstallError
from runners.installing.machine import TargetMachine
from runners.installing.site import Site, require_reachable, site
from runners.installing.steps import Steps
from runners.installing.units import installed_units, plan_in_use
from runners.measuring.machine_lock import current_holder
from runners.nightly.heartbeat import night_elsewhere, process_of, read
from runners.nightly.plan import Alerts, find_box, load_plan
from runners.occupancy.pause import begin as begin_pause
from runners.occupancy.pause import end as end_pause
from runners.occupancy.pause import interrupt

KEPT = 1


def main(arguments: argparse.Namespace) -> int:
    """Carry out a subcommand, and return its exit code."""
    subcommands = {
        "init": init,
        "install": install,
        "uninstall": uninstall,
        "show": show,
        "pause": pause,
        "resume": resume,
        "test-alert": test_alert,
        "hook": hook,
    }
    return subcommands[arguments.what](arguments)


def install(arguments: argparse.Namespace) -> int:
    """Set up a box; return 0, or 1 when a modified file was kept. Raises InstallError."""
    machine = _machine(arguments)
    found = site(
        plan_in_use(arguments.plan, machine),
        arguments.box,
        platform.node(),
        home=Path(arguments.home) if arguments.home else None,
        user=arguments.user,
        at=arguments.at,
        agent=Path(arguments.actions_runner) if arguments.actions_runner else None,
    )
    left = steps.to_install(found, machine, force=arguments.force)
    if arguments.dry_run:
        _carry_out(left, machine, dry=True)
    _require_able(machine, found)
    if not arguments.dry_run:
        _carry_out(left, machine, dry=False)
    _advise(found, left)
    return KEPT if left.kept else 0


def uninstall(arguments: argparse.Namespace) -> int:
    """Remove what install wrote; return 0, or 1 when a modified file was kept. Raises InstallError."""
    machine = _machine(arguments)
    left = steps.to_uninstall(machine, force=arguments.force)
    if left.actions and not machine.is_writable and not arguments.dry_run:
        raise _not_root()
    _carry_out(left, machine, dry=arguments.dry_run)
    if left.actions and not arguments.dry_run:
        print("The user, the history and the builds are kept.")
    return KEPT if left.kept else 0


def show(arguments: argparse.Namespace) -> int:
    """Print the state of what was installed; return 1 when anything is modified, missing or failed."""
    machine = _machine(arguments)
    known = record.load(machine)
    if not known.digests:
        print("nothing is installed: ./tidemark runner install")
        return 1
    well = True
    for name in map(PurePosixPath, known.digests):
        text = machine.read(name)
        state = "gone" if text is None else "as written" if known.wrote(name, text) else "changed"
        well = well and state == "as written"
        print(f"{state:<10}  {machine.path(name)}")
    for line in known.agent_lines:
        there = line in (machine.read(PurePosixPath(known.agent_file)) or "").splitlines()
        well = well and there
        where = machine.path(PurePosixPath(known.agent_file))
        print(f"{'as written' if there else 'gone':<10}  {where}: {line}")
    if machine.is_real and machine.has_systemd:
        for unit, state in steps.unit_states(machine).items():
            well = well and state != "failed"
            print(f"{state:<10}  {unit}")
    print(f"installed {known.installed_at}")
    return 0 if well else 1


def test_alert(arguments: argparse.Namespace) -> int:
    """Send a message to each route, open an issue and close it again, as far as the plan has them.

    Return 0; 1 when the issue lacks its labels; 2 when a message did not arrive. Raises TrackerError.
    """
    file = plan_in_use(arguments.plan, TargetMachine())
    plan = load_plan(file)
    box, now = find_box(plan, arguments.box, platform.node()), datetime.now(UTC)
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


def hook(arguments: argparse.Namespace) -> int:
    """Prepare for a job of GitHub's runner, or clean up after it; return 1 when the job may not start."""
    home = locate_for_writing()
    if arguments.when == "completed":
        return jobs.completed(home, print, jobs.by_sudo)
    if os.environ.get("GITHUB_JOB") == jobs.REPORTS:
        return 0
    installed, needed = installed_units(TargetMachine()), 0
    if installed.plan is not None:
        needed = night_bytes(load_plan(installed.plan), installed.variables["TIDEMARK_BOX"])
    machine = partial(CheckedMachine, home.path, Kernel())
    return jobs.started(home, machine, print, jobs.by_sudo, needed)


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


# --- output


def _machine(arguments: argparse.Namespace) -> TargetMachine:
    return TargetMachine(Path(arguments.root).absolute()) if arguments.root else TargetMachine()


def _require_able(machine: TargetMachine, found: Site) -> None:
    if not machine.is_real:
        return
    if not machine.has_systemd:
        raise InstallError(
            "systemd is not the init of this machine",
            where="/run/systemd/system is missing",
            hint="docs/hardware.md has crontab lines; --root FOLDER writes the files for another machine",
        )
    if not machine.is_writable:
        raise _not_root()
    require_reachable(found)


def _not_root() -> InstallError:
    return InstallError(
        "setting up this machine needs root",
        where="/etc/systemd/system",
        hint="use sudo ./tidemark runner ..., --dry-run to see what it would do, or --root FOLDER",
    )


def _carry_out(left: Steps, machine: TargetMachine, *, dry: bool) -> None:
    """Print every action, and carry it out unless this is a dry run."""
    for action in left.actions:
        print(f"would {action.description}" if dry else action.description, flush=True)
        if not dry:
            action.carry_out(machine)
        if dry and action.content:
            print("".join(f"    {line}\n" for line in action.content.splitlines()))
    for name, difference in left.kept.items():
        print(f"kept, because it was modified; --force replaces or removes it: {name}")
        print("".join(f"    {line}\n" for line in difference.splitlines()))
    if not left.actions and not left.kept:
        print("nothing to do")


def _advise(found: Site, left: Steps) -> None:
    for note in left.notes:
        print(f"note: {note}")
    if found.repository is not None:
        name = f"{STORE}/{credential(found.tracker)}"
        print(
            f"The token that opens issues in {found.repository} is read from {name}, readable by root only:"
        )
        print(f"  install -D -m 600 /dev/stdin {name}    # then type the token and Ctrl-D")
    for route in found.route_credentials:
        print(f"The URL of a route is read from {STORE}/{route}, in the same way:")
        print(f"  install -D -m 600 /dev/stdin {STORE}/{route}")
    print(f"Label of the box's runner: {found.label}. To register it with GitHub:")
    for line in agent.registration(found):
        print(f"  {line}")
