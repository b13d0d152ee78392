"""`./tidemark runner`: set up a box, take that away again, and what its units and hooks call."""

import argparse
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from build.home import locate
from history.open import open_store
from runners import jobs
from runners.commands.run import history_of
from runners.commands.status import told
from runners.fitness.kernel import Kernel
from runners.fitness.place import Place
from runners.installing import agent, record, steps
from runners.installing.escaping import InstallError
from runners.installing.machine import TargetMachine
from runners.installing.site import Site, require_reachable, site
from runners.installing.steps import Steps
from runners.nightly.heartbeat import WELL, Status, status
from runners.nightly.plan import find_box, load_plan
from runners.nightly.report import deliver, plan_history
from runners.nightly.watch import judged, tell

KEPT = 1


def main(arguments: argparse.Namespace) -> int:
    """Do what is asked; each of the words says what its exit code means."""
    words = {"install": install, "uninstall": uninstall, "show": show, "watch": watch, "hook": hook}
    return words[arguments.what](arguments)


def install(arguments: argparse.Namespace) -> int:
    """0 when the box is set up; 1 when a file that a person has changed was kept. Raises InstallError."""
    found = site(
        Path(arguments.plan),
        arguments.box,
        platform.node(),
        home=Path(arguments.home) if arguments.home else None,
        user=arguments.user,
        at=arguments.at,
        agent=Path(arguments.actions_runner) if arguments.actions_runner else None,
    )
    machine = _machine(arguments)
    left = steps.to_install(found, machine, force=arguments.force)
    if arguments.dry_run:
        _tell(left, machine, dry=True)
    _require_able(machine, found)
    if not arguments.dry_run:
        _tell(left, machine, dry=False)
    _advise(found, left)
    return KEPT if left.kept else 0


def uninstall(arguments: argparse.Namespace) -> int:
    """0 when nothing of it is left; 1 when a file that a person has changed was kept."""
    machine = _machine(arguments)
    left = steps.to_uninstall(machine, force=arguments.force)
    if left.actions and not machine.is_ours and not arguments.dry_run:
        raise _not_root()
    _tell(left, machine, dry=arguments.dry_run)
    if left.actions and not arguments.dry_run:
        print("The user, the history and the builds are still there.")
    return KEPT if left.kept else 0


def show(arguments: argparse.Namespace) -> int:
    """0 when everything is as it was installed; 1 when something was changed, is gone, or failed."""
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
        for unit, state in steps.installed_units(machine).items():
            well = well and state != "failed"
            print(f"{state:<10}  {unit}")
    print(f"installed {known.installed_at}")
    return 0 if well else 1


def watch(arguments: argparse.Namespace) -> int:
    """0 when the box is well; 1 when its night hangs, died, or was missed: said, and an alert once."""
    plan, now = load_plan(Path(arguments.plan)), datetime.now(UTC)
    box = find_box(plan, arguments.box, platform.node())
    home = locate()
    found = status(home.heartbeat, now)
    known = record.load(TargetMachine()).installed_at
    state = judged(found, datetime.fromisoformat(known) if known else None, now)
    said = told(Status(state, found.beat), now)
    print(said if state in WELL else f"{said}\nwhat to do: docs/hardware.md", flush=True)
    problems: list[str] = []
    with open_store(history_of(str(plan_history(plan, home)), home)) as store:
        tell(store, box, found, state, now)
        deliver(plan, home, store, problems)
    for problem in problems:
        print(f"tidemark: {problem}", file=sys.stderr)
    return 0 if state in WELL else 1


def hook(arguments: argparse.Namespace) -> int:
    """What GitHub's runner calls before and after a job; 1 when the job may not begin."""
    home = locate()
    if arguments.when == "completed":
        return jobs.completed(home, print, jobs.by_sudo)
    return jobs.started(home, lambda: Place(home.path, Kernel()), print, jobs.by_sudo)


# --- what people read


def _machine(arguments: argparse.Namespace) -> TargetMachine:
    return TargetMachine(Path(arguments.root).absolute()) if arguments.root else TargetMachine()


def _require_able(machine: TargetMachine, found: Site) -> None:
    if not machine.is_real:
        return
    if not machine.has_systemd:
        raise InstallError(
            "this machine was not started by systemd",
            where="/run/systemd/system is missing",
            hint="docs/hardware.md has lines for cron; --root FOLDER writes the files for another machine",
        )
    if not machine.is_ours:
        raise _not_root()
    require_reachable(found)


def _not_root() -> InstallError:
    return InstallError(
        "only root may set up this machine",
        where="/etc/systemd/system",
        hint="sudo ./tidemark runner ..., or --dry-run to see what it would do, or --root FOLDER",
    )


def _tell(left: Steps, machine: TargetMachine, *, dry: bool) -> None:
    """Say what is done, and do it unless this is a rehearsal."""
    for action in left.actions:
        print(f"would {action.told}" if dry else action.told, flush=True)
        if not dry:
            action.carry_out(machine)
        if dry and action.content:
            print("".join(f"    {line}\n" for line in action.content.splitlines()))
    for name, difference in left.kept.items():
        print(f"kept as it is, --force replaces or removes it: {name}")
        print("".join(f"    {line}\n" for line in difference.splitlines()))
    if not left.actions and not left.kept:
        print("nothing to do")


def _advise(found: Site, left: Steps) -> None:
    for note in left.notes:
        print(f"note: {note}")
    if found.repository is not None:
        name = "/etc/credstore/tidemark-github-token"
        print(f"The token that opens issues in {found.repository} is read from {name}, root's alone:")
        print(f"  install -D -m 600 /dev/stdin {name}    # then type it, and Ctrl-D")
    print(f"Label of the box's runner: {found.label}. To register it with GitHub:")
    for line in agent.registration(found):
        print(f"  {line}")
