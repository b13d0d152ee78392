"""Whether CPU profiles can be taken here, and whether anything else takes the counters they need."""

from runners.fitness.finding import FIX, NOT_VISIBLE, Reading, note, ok
from runners.fitness.kernel import Kernel
from runners.fitness.place import Place

PARANOID = "/proc/sys/kernel/perf_event_paranoid"
POINTERS = "/proc/sys/kernel/kptr_restrict"
NMI_WATCHDOG = "/proc/sys/kernel/nmi_watchdog"
HARDWARE = ("cpu", "cpu_core", "armv*")
"""Folders below event_source/devices: one core design, Intel's hybrids, Arm."""

MOST_PARANOID = 0
"""Up to which an unprivileged user may sample the cores of the machine: perf_event_open(2)."""


def counters(kernel: Kernel) -> str:
    """What perf can sample by."""
    found = [each for name in HARDWARE for each in kernel.names(f"/sys/bus/event_source/devices/{name}")]
    return "hardware counters" if found else "cpu-clock only"


def profiler(place: Place) -> Reading:
    """A perf that may be used. Never unfit: a measurement needs no profile."""
    kernel = place.kernel
    paranoid, pointers = kernel.number(PARANOID), kernel.number(POINTERS)
    text = f"perf_event_paranoid {paranoid}, kptr_restrict {pointers}, {counters(kernel)}"
    if place.which("perf") is None:
        return note(f"no perf program; {text}", "apt-get install linux-perf")
    if paranoid is None:
        return note(f"perf is there; {text}: a kernel without perf")
    # Root may profile whatever it says, but kptr_restrict 2 hides the kernel's addresses from root too.
    barred = not place.is_root and paranoid > MOST_PARANOID
    hidden = pointers is None or pointers > (1 if place.is_root else 0)
    if barred or hidden:
        return note(f"perf is there; {text}", FIX)
    if counters(kernel) == "cpu-clock only":
        return note(f"perf is there; {text}: no cycles, no cache misses (virtual?)")
    return ok(f"perf is there; {text}")


def nmi_watchdog(place: Place) -> Reading:
    """Off: it holds a hardware counter and interrupts every core."""
    found = place.kernel.read(NMI_WATCHDOG)
    if found is None:
        return note(NOT_VISIBLE)
    return note("on", FIX) if found != "0" else ok("off")
