"""What this machine will start by itself in the next hours: timers of systemd, and jobs of cron."""

import json
import re
from collections.abc import Iterator
from datetime import datetime

from runners.fitness.cron import jobs
from runners.fitness.finding import Reading, ok, unfit
from runners.fitness.place import Place
from suites.accounting.proc import processes

HOURS = 4.0
"""How far is looked ahead: longer than a session of the short profile takes."""

HARMLESS = {"systemd-tmpfiles-clean.timer", "tidemark-nightly.timer", "tidemark-watch.timer"}
"""Milliseconds of work; a night finds the lock held and ends."""

CRON_PROGRAMS = {"cron", "crond", "fcron", "anacron"}
MOST_NAMED = 6

LIST_TIMERS = ("systemctl", "list-timers", "--no-pager", "--output=json")


def timers(place: Place) -> Reading:
    """Nothing that will begin in the middle of a session.

    Raises OSError and ValueError when systemd does not say what it will do.
    """
    units = sorted(_timers_due(place)) if place.has_systemd else []
    cron = sorted(_jobs_due(place)) if _cron_runs(place) else []
    if not units and not cron:
        return ok(f"nothing in the next {HOURS:.0f} hours")
    due = [f"{name} at {at:%H:%M}" for at, name in sorted([*units, *cron])]
    more = f" and {len(due) - MOST_NAMED} more" if len(due) > MOST_NAMED else ""
    text = f"in the next {HOURS:.0f} hours: {', '.join(due[:MOST_NAMED])}{more}"
    stops = sorted({name for _, name in units}) + (["cron"] if cron else [])
    return unfit(text, f"{'systemctl stop' if place.has_systemd else 'service stop'} {' '.join(stops)}")


def next_timers(listed: str) -> dict[str, datetime]:
    """When each timer elapses next, from `systemctl list-timers --output=json`, in local time.

    Raises ValueError when it is not that. `next` is in µs since 1970; timers that will not elapse have none.
    """
    rows = json.loads(listed)
    if not isinstance(rows, list):
        raise ValueError("not a list of timers")
    found = {}
    for row in rows:
        elapses = row.get("next") if isinstance(row, dict) else None
        if isinstance(elapses, int) and 0 < elapses < 2**62:
            found[str(row.get("unit"))] = datetime.fromtimestamp(elapses / 1e6)
    return found


def _timers_due(place: Place) -> Iterator[tuple[datetime, str]]:
    now = place.now()
    for name, at in next_timers(place.said_by(LIST_TIMERS)).items():
        if name not in HARMLESS and (at - now).total_seconds() <= HOURS * 3600:
            yield at, name


def _cron_runs(place: Place) -> bool:
    found = processes(place.kernel.path("/proc")).values()
    return any(each.name in CRON_PROGRAMS for each in found)


def _jobs_due(place: Place) -> Iterator[tuple[datetime, str]]:
    """Jobs of the system's tables, and of the users' as far as they may be read."""
    kernel = place.kernel
    tables = [("/etc/crontab", True), *((name, True) for name in kernel.names("/etc/cron.d/[!.]*"))]
    for folder in ("/var/spool/cron/crontabs", "/var/spool/cron"):
        tables += [(name, False) for name in kernel.names(f"{folder}/*") if kernel.path(name).is_file()]
    for name, names_user in tables:
        for job in jobs(kernel.read(name) or "", names_user=names_user):
            at = job.first_within(place.now(), HOURS)
            if at is not None and not _does_nothing(job.command, place):
                yield at, f"{name} ({job.command.split()[0]})"


def _does_nothing(command: str, place: Place) -> bool:
    """Jobs that leave their work to a timer of systemd, and those that run an empty folder."""
    if place.has_systemd and re.search(r"(test|\[) -[ed] /run/systemd/system", command):
        return True
    folder = re.search(r"run-parts .*?(/etc/cron\.\w+)", command)
    return bool(folder) and not place.kernel.names(f"{folder[1]}/[!.]*") if folder else False
