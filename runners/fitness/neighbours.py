"""Who else is on this machine: its host, its load, other database servers."""

from collections import Counter

from build.engines import ENGINES
from runners.fitness.finding import Reading, note, ok, unfit
from runners.fitness.place import Place
from suites.accounting.disturbance import DisturbanceLimits
from suites.accounting.proc import processes

SERVICES = {
    **{description.server_program: description.service for description in ENGINES.values()},
    "mariadbd": "mariadb",
    "mongod": "mongod",
    "redis-server": "redis-server",
    "valkey-server": "valkey-server",
}
"""Program of a database server, as the kernel names it, and its usual service."""

MOST_LOAD = 0.5
"""Runnable processes to a core in the last minute."""


def steal(place: Place) -> Reading:
    """A host that gives what is wanted."""
    share, limit = place.sample.steal_share, DisturbanceLimits().steal_share
    text = f"{share:.1%} of the CPU time wanted in {place.sample.seconds:.1f} s (limit {limit:.0%})"
    return unfit(text) if share > limit else ok(text)


def load(place: Place) -> Reading:
    """Nobody else at work. Raises ValueError when there is no load average."""
    share, limit = place.sample.others_share, DisturbanceLimits().others_share
    average = float((place.kernel.read("/proc/loadavg") or "").partition(" ")[0])
    text = f"others used {share:.1%} of a core (limit {limit:.0%}); load of the last minute {average:.2f}"
    if share > limit:
        names = ", ".join(place.sample.culprits) or "many small ones"
        return unfit(f"{text}; most used by {names}", "top")
    cores = len(place.kernel.names("/sys/devices/system/cpu/cpu[0-9]*")) or 1
    return note(f"{text}: wait until that is over", "uptime") if average > MOST_LOAD * cores else ok(text)


def databases(place: Place) -> Reading:
    """No database server; while this is asked none of ours can run."""
    found = processes(place.kernel.path("/proc")).values()
    running = Counter(each.name for each in found if each.name in SERVICES)
    if not running:
        return ok("none")
    text = ", ".join(f"{name} ({count} processes)" for name, count in sorted(running.items()))
    if place.has_systemd:
        return unfit(text, "systemctl stop " + " ".join(SERVICES[name] for name in sorted(running)))
    return unfit(text, "pkill " + "; pkill ".join(f"-x {name}" for name in sorted(running)))
