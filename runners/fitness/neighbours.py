"""Checks of other users of this machine: steal by the host, load, other database servers."""

from collections import Counter

from build.engines import ENGINES
from history.counts import counted
from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.finding import Reading, note, ok, unfit
from suites.accounting.disturbance import DisturbanceLimits
from suites.accounting.proc import processes

DATABASES = {
    *(description.server_program for description in ENGINES.values()),
    "mongod",
    "redis-server",
    "valkey-server",
}
"""The programs of database servers, as the kernel names them."""

MAX_LOAD = 0.5
"""The limit of runnable processes per core, averaged over the last minute."""


def steal(machine: CheckedMachine) -> Reading:
    """Check that the host gives the CPU time that is requested."""
    share, limit = machine.sample.steal_share, DisturbanceLimits().steal_share
    text = f"{100 * share:.1f} % of the CPU time requested in {machine.sample.seconds:.1f} s"
    text += f" (limit {100 * limit:.0f} %)"
    return unfit(text) if share > limit else ok(text)


def load(machine: CheckedMachine) -> Reading:
    """Check that no other programs are active. Raises ValueError without a load average."""
    share, limit = machine.sample.others_share, DisturbanceLimits().others_share
    average = float((machine.kernel.read("/proc/loadavg") or "").partition(" ")[0])
    text = f"others used {100 * share:.1f} % of a core (limit {100 * limit:.0f} %)"
    text += f"; load of the last minute {average:.2f}"
    if share > limit:
        names = ", ".join(machine.sample.culprits) or "many small processes"
        return unfit(f"{text}; most used by {names}", look="top")
    cores = len(machine.kernel.names("/sys/devices/system/cpu/cpu[0-9]*")) or 1
    return note(f"{text}: wait until it is lower", look="uptime") if average > MAX_LOAD * cores else ok(text)


def databases(machine: CheckedMachine) -> Reading:
    """Check that no database server runs; none of ours can run at the same time as this check."""
    found = processes(machine.kernel.path("/proc")).values()
    running = Counter(process.name for process in found if process.name in DATABASES)
    if not running:
        return ok("none")
    text = ", ".join(f"{name} ({counted(count, 'process')})" for name, count in sorted(running.items()))
    look = f"ps -o pid,user,lstart,args -C {','.join(sorted(running))}"
    return unfit(f"{text}: measure when whoever runs them does not need them", look=look)
