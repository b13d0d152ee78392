"""Check of what this machine starts by itself in the next hours: systemd timers and cron jobs."""

import re
from collections.abc import Iterator
from datetime import datetime

from build.files import json_value
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.cron import jobs
from runners.fitness.finding import Reading, ok, unfit
from suites.accounting.proc import processes

HOURS = 4.0
"""The hours to look ahead: longer than a session of the short profile."""

HARMLESS = {"systemd-tmpfiles-clean.timer", "tidemark-nightly.timer"}
"""Timers with milliseconds of work; a night that finds the lock held ends at once."""

CRON_PROGRAMS = {"cron", "crond", "fcron", "anacron"}
MAX_NAMED = 6

LATEST = 32_503_680_000 * 10**6
"""The year 3000, in µs since 1970: later times do not fit into Python's."""

LIST_TIMERS = ("systemctl", "list-timers", "--no-pager", "--output=json")


def timers(machine: CheckedMachine) -> Reading:
    """Check that nothing will start during a session.

    Raises OSError or ValueError when systemd does not list its timers.
    """
    units = sorted(_timers_due(machine)) if machine.has_systemd else []
    cron = sorted(_jobs_due(machine)) if _cron_runs(machine) else []
    if not units and not cron:
        return ok(f"nothing in the next {HOURS:.0f} hours")
    due = [f"{name} at {at:%H:%M}" for at, name in sorted([*units, *cron])]
    more = f" and {len(due) - MAX_NAMED} more" if len(due) > MAX_NAMED else ""
    text = f"in the next {HOURS:.0f} hours: {', '.join(due[:MAX_NAMED])}{more}"
    return unfit(text, look="systemctl list-timers" if units else "")


def next_timers(listed: str) -> dict[str, datetime]:
    """Return when timers elapse next, in local time, from `systemctl list-timers --output=json`.

    Raises ValueError for other input. `next` is in µs since 1970; timers that will not elapse have none.
    """
    rows = json_value(listed)
    if not isinstance(rows, list):
        raise ValueError("not a list of timers")
    found = {}
    for row in rows:
        elapses = row.get("next") if isinstance(row, dict) else None
        if isinstance(elapses, int) and 0 < elapses < LATEST:
            found[str(row.get("unit"))] = datetime.fromtimestamp(elapses / 1e6)
    return found


def _timers_due(machine: CheckedMachine) -> Iterator[tuple[datetime, str]]:
    now = machine.now()
    for name, at in next_timers(machine.run_program(LIST_TIMERS)).items():
        if name not in HARMLESS and (at - now).total_seconds() <= HOURS * 3600:
            yield at, name


def _cron_runs(machine: CheckedMachine) -> bool:
    found = processes(machine.kernel.path("/proc")).values()
    return any(process.name in CRON_PROGRAMS for process in found)


def _jobs_due(machine: CheckedMachine) -> Iterator[tuple[datetime, str]]:
    """Yield the due jobs of the system's tables, and of users' tables where they are readable."""
    kernel = machine.kernel
    tables = [("/etc/crontab", True), *((name, True) for name in kernel.names("/etc/cron.d/[!.]*"))]
    for folder in ("/var/spool/cron/crontabs", "/var/spool/cron"):
        tables += [(name, False) for name in kernel.names(f"{folder}/*") if kernel.path(name).is_file()]
    for name, names_user in tables:
        for job in jobs(kernel.read(name) or "", names_user=names_user):
            at = job.first_within(machine.now(), HOURS)
            if at is not None and not _does_nothing(job.command, machine):
                yield at, f"{name} ({job.command.split()[0]})"


def _does_nothing(command: str, machine: CheckedMachine) -> bool:
    """Return whether a job leaves its work to a systemd timer, or runs the scripts of an empty folder."""
    if machine.has_systemd and re.search(r"(test|\[) -[ed] /run/systemd/system", command):
        return True
    folder = re.search(r"run-parts .*?(/etc/cron\.\w+)", command)
    return bool(folder) and not machine.kernel.names(f"{folder[1]}/[!.]*") if folder else False
