"""Checks of profiling: whether perf may be used, and whether its counters are free."""

from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.finding import FIX, NOT_VISIBLE, Reading, note, ok
from runners.fitness.kernel import Kernel

PARANOID = "/proc/sys/kernel/perf_event_paranoid"
POINTERS = "/proc/sys/kernel/kptr_restrict"
NMI_WATCHDOG = "/proc/sys/kernel/nmi_watchdog"
HARDWARE = ("cpu", "cpu_core", "armv*")
"""The folders of CPU counters below event_source/devices: uniform x86, hybrid Intel, Arm."""

MAX_PARANOID = 0
"""The highest value with which an unprivileged user may sample whole cores: perf_event_open(2)."""


def counters(kernel: Kernel) -> str:
    """Return the kind of events that perf can sample by."""
    found = [device for name in HARDWARE for device in kernel.names(f"/sys/bus/event_source/devices/{name}")]
    return "hardware counters" if found else "cpu-clock only"


def profiler(machine: CheckedMachine) -> Reading:
    """Check that perf may be used. Never unfit: a measurement needs no profile."""
    kernel = machine.kernel
    paranoid, pointers = kernel.number(PARANOID), kernel.number(POINTERS)
    text = f"perf_event_paranoid {paranoid}, kptr_restrict {pointers}, {counters(kernel)}"
    if machine.which("perf") is None:
        return note(f"no perf program; {text}", "./tidemark setup")
    if paranoid is None:
        return note(f"perf is installed; {text}: the kernel has no perf support")
    # Root may always profile, but kptr_restrict 2 hides kernel addresses from root too.
    barred = not machine.is_root and paranoid > MAX_PARANOID
    hidden = pointers is None or pointers > (1 if machine.is_root else 0)
    if barred or hidden:
        return note(f"perf is installed; {text}", FIX)
    if counters(kernel) == "cpu-clock only":
        return note(f"perf is installed; {text}: no cycles, no cache misses (virtual?)")
    return ok(f"perf is installed; {text}")


def nmi_watchdog(machine: CheckedMachine) -> Reading:
    """Check that the NMI watchdog is off: it occupies a hardware counter and interrupts every core."""
    found = machine.kernel.read(NMI_WATCHDOG)
    if found is None:
        return note(NOT_VISIBLE)
    return note("on", FIX) if found != "0" else ok("off")
