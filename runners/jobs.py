"""The hooks around a job of GitHub's runner: clean up after the last job, check the machine."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from build.home import Home
from runners.console import Lines
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.checks import CHECKS
from runners.fitness.finding import CheckFinding, Level
from runners.installing.files import RESTORE, SYSTEMCTL, TUNE
from runners.measuring.cleanup import sweep
from runners.measuring.machine_lock import BusyError, measuring_alone
from runners.occupancy.pause import current_pause
from runners.occupancy.waiting import machine_awaited

WATCHED = ("load", "temperature")
"""The checks that the machine has to pass before a job, which waits for them: they may pass by themselves."""

REPORTS = "report"
"""The id of the jobs of our workflows that measure nothing, and so need no fit machine."""

PATIENCE_SECONDS = 600.0
PAUSE_SECONDS = 15.0

ROOT_SECONDS = 960
"""The time limit of a command that runs as root: longer than that of its systemd unit."""

Say = Callable[[str], None]
AsRoot = Callable[[Sequence[str]], str | None]
"""Runs a command as root; returns None, or why it failed."""


def started(
    home: Home,
    machine: Callable[[], CheckedMachine],
    say: Say,
    as_root: AsRoot,
    needed_bytes: int,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Prepare the machine for a job; return 0 when the job may start, 1 when the machine is unfit.

    `needed_bytes` are those of the largest session of the box's nights. What holds the machine for a short
    time, such as a report, is waited for. Nothing is done while something measures for longer, or while the
    box is paused, which the job itself will notice.
    """
    if _is_paused(home, say):
        return 0
    try:
        with machine_awaited(home, PATIENCE_SECONDS, Lines(say), clock=clock, sleep=sleep):
            _sweep(home, say)
        _as_root(TUNE, say, as_root)
        deadline = clock() + PATIENCE_SECONDS
        while True:
            with measuring_alone(home):
                unfit = list(_unfit(machine()))
                full = _full_disk(home, needed_bytes)
            names = {finding.check.name for finding in unfit}
            if not names or full or clock() > deadline:
                break
            say(f"waiting for {', '.join(sorted(names))}: {unfit[0].reading.text}")
            sleep(PAUSE_SECONDS)
    except BusyError as error:
        say(f"nothing was changed: {error}")
        return 0
    for text in (*full, *(f"{finding.check.name}: {finding.reading.text}" for finding in unfit)):
        say(text)
    return 1 if unfit or full else 0


def completed(home: Home, say: Say, as_root: AsRoot) -> int:
    """Clean up after a job and restore the settings; return 0, so that the job never fails by it."""
    if _is_paused(home, say):
        return 0
    try:
        with measuring_alone(home):
            _sweep(home, say)
        _as_root(RESTORE, say, as_root)
    except BusyError as error:
        say(f"nothing was changed: {error}")
    return 0


def by_sudo(command: Sequence[str]) -> str | None:
    """Run a command as root, if sudo allows it without a password; return None, or why it failed."""
    try:
        done = subprocess.run(
            ["sudo", "-n", *command], capture_output=True, text=True, timeout=ROOT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")


def _is_paused(home: Home, say: Say) -> bool:
    """Return whether a person has the box, whose settings and processes are then left alone."""
    pause = current_pause(home, datetime.now(UTC))
    if pause is not None:
        say(f"nothing was changed: this box is {pause}")
    return pause is not None


def _sweep(home: Home, say: Say) -> None:
    for name in sweep(home):
        say(f"removed what a dead session left: {name}")


def _as_root(unit: str, say: Say, as_root: AsRoot) -> None:
    failure = as_root([SYSTEMCTL, "start", unit])
    if failure is not None:
        say(f"{unit} failed: {failure}; see journalctl -u {unit}")


def _full_disk(home: Home, needed_bytes: int) -> list[str]:
    usage = shutil.disk_usage(home.path)
    if usage.free >= needed_bytes:
        return []
    free, total, needed = (number / 1e9 for number in (usage.free, usage.total, needed_bytes))
    return [
        f"free disk: {free:.1f} GB of {total:.1f} GB free at {home.path}; a session takes up to "
        f"{needed:.1f} GB: ./tidemark build list shows what builds take, data list the copies of data"
    ]


def _unfit(machine: CheckedMachine) -> Iterator[CheckFinding]:
    for check in CHECKS:
        if check.name not in WATCHED:
            continue
        try:
            reading = check.look(machine)
        except (OSError, ValueError):
            continue  # a check that cannot be run does not prevent a night
        if reading.level is Level.UNFIT:
            yield CheckFinding(check, reading)
