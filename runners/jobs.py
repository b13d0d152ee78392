"""Around a job of GitHub's runner: nothing is left from the last one, and the machine is fit for this one."""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence

from build.home import Home
from runners.fitness.checks import CHECKS
from runners.fitness.finding import Finding, Level
from runners.fitness.place import Place
from runners.installing.files import RESTORE, SYSTEMCTL, TUNE
from runners.measuring.cleanup import sweep
from runners.measuring.machine_lock import BusyError, measuring_alone

WATCHED = ("load", "free disk", "temperature")
"""Checks that a job has to pass."""

PASSING = ("load", "temperature")
"""Those that mend themselves: they are waited for."""

PATIENCE_SECONDS = 600.0
PAUSE_SECONDS = 15.0

ROOT_SECONDS = 660
"""For what root does for a job: longer than systemd gives its unit."""

Say = Callable[[str], None]
AsRoot = Callable[[Sequence[str]], str | None]
"""Runs a command as root; None, or why it failed."""


def started(
    home: Home,
    place: Callable[[], Place],
    say: Say,
    as_root: AsRoot,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Before a job: 0 when it may begin, 1 when the machine is not fit for it.

    While something measures nothing is touched, and the job finds that out by itself.
    """
    try:
        _sweep(home, say)
        _as_root(TUNE, say, as_root)
        deadline = clock() + PATIENCE_SECONDS
        while True:
            with measuring_alone(home):
                unfit = list(_unfit(place()))
            names = {each.check.name for each in unfit}
            if not names or not names <= set(PASSING) or clock() > deadline:
                break
            say(f"waits for {', '.join(sorted(names))} to pass: {unfit[0].found.text}")
            sleep(PAUSE_SECONDS)
    except BusyError as error:
        say(f"nothing is touched: {error}")
        return 0
    for each in unfit:
        say(f"{each.check.name}: {each.found.text}")
    return 1 if unfit else 0


def completed(home: Home, say: Say, as_root: AsRoot) -> int:
    """After a job: nothing of it is left, and settings are as they were. Never fails the job."""
    try:
        _sweep(home, say)
        _as_root(RESTORE, say, as_root)
    except BusyError as error:
        say(f"nothing is touched: {error}")
    return 0


def by_sudo(command: Sequence[str]) -> str | None:
    """As root, if sudo allows it without a password."""
    try:
        done = subprocess.run(
            ["sudo", "-n", *command], capture_output=True, text=True, timeout=ROOT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")


def _sweep(home: Home, say: Say) -> None:
    with measuring_alone(home):
        for name in sweep(home):
            say(f"swept what a dead session left: {name}")


def _as_root(unit: str, say: Say, as_root: AsRoot) -> None:
    failure = as_root([SYSTEMCTL, "start", unit])
    if failure is not None:
        say(f"{unit} could not be carried out: {failure}; see journalctl -u {unit}")


def _unfit(place: Place) -> Iterator[Finding]:
    for check in CHECKS:
        if check.name not in WATCHED:
            continue
        try:
            found = check.look(place)
        except (OSError, ValueError):
            continue  # what cannot be known does not keep a night from being measured
        if found.level is Level.UNFIT:
            yield Finding(check, found)
