"""How fast the processors run and who shares them: governor, turbo, SMT, clock."""

import re
from collections import Counter

from runners.fitness.finding import FIX, NOT_VISIBLE, Reading, note, ok, unfit
from runners.fitness.kernel import Kernel
from runners.fitness.place import Place

GOVERNORS = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
NO_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo"
BOOST = "/sys/devices/system/cpu/cpufreq/boost"
SMT_ACTIVE = "/sys/devices/system/cpu/smt/active"
SMT_CONTROL = "/sys/devices/system/cpu/smt/control"
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"

CHEAP_CLOCKS = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}
"""Read in user space; the others cost a system call, of which servers make several per query."""

HOT_CELSIUS = 75.0
"""A processor that does nothing is at 30 to 60 °C; from 90 to 100 °C on it slows down."""

LOOK_AT_HEAT = "cat /sys/class/hwmon/hwmon*/temp*_input    # dust, fans, the room"

PROCESSOR_CHIPS = {"coretemp", "k10temp", "zenpower", "cpu_thermal"}
PROCESSOR_ZONE = re.compile(r"x86_pkg_temp|cpu|soc", re.IGNORECASE)


def governor_setting(kernel: Kernel) -> str:
    """`performance`, or `powersave, schedutil` where processors differ; else NOT_VISIBLE."""
    found = {kernel.read(name) or "?" for name in kernel.names(GOVERNORS)}
    return ", ".join(sorted(found)) or NOT_VISIBLE


def turbo_setting(kernel: Kernel) -> str:
    """`on` or `off`, of Intel's driver or of the others'; else NOT_VISIBLE."""
    no_turbo, boost = kernel.read(NO_TURBO), kernel.read(BOOST)
    if no_turbo is not None:
        return "off" if no_turbo == "1" else "on"
    if boost is not None:
        return "on" if boost == "1" else "off"
    return NOT_VISIBLE


def smt_setting(kernel: Kernel) -> str:
    """`on` or `off`; else NOT_VISIBLE."""
    return {"1": "on", "0": "off"}.get(kernel.read(SMT_ACTIVE) or "", NOT_VISIBLE)


def clock_setting(kernel: Kernel) -> str:
    """Name of the clock that the kernel reads time from; else NOT_VISIBLE."""
    return kernel.read(CLOCK) or NOT_VISIBLE


def governor(place: Place) -> Reading:
    """All processors at their full clock."""
    found = Counter(place.kernel.read(name) or "?" for name in place.kernel.names(GOVERNORS))
    if not found:
        return note(NOT_VISIBLE)
    text = ", ".join(f"{name} on {count} processors" for name, count in sorted(found.items()))
    return ok(text) if set(found) == {"performance"} else unfit(text, FIX)


def turbo(place: Place) -> Reading:
    """One clock, however warm it is and however many cores work."""
    found = turbo_setting(place.kernel)
    if found == NOT_VISIBLE:
        return note(found)
    return unfit(found, FIX) if found == "on" else ok(found)


def smt(place: Place) -> Reading:
    """One thread to a core. A note, because a host may share the core out of sight anyway."""
    found = smt_setting(place.kernel)
    if found == NOT_VISIBLE:
        return note(found)
    return note(found, f"echo off > {SMT_CONTROL}") if found == "on" else ok(found)


def temperature(place: Place) -> Reading:
    """Cool before any work: what is warm now is throttled under load. A note where no sensor is seen."""
    found = temperatures(place.kernel)
    if not found:
        return note(NOT_VISIBLE)
    name, hottest = max(found.items(), key=lambda each: each[1])
    text = f"{hottest:.0f} °C at {name} (limit {HOT_CELSIUS:.0f} °C)"
    return unfit(text, LOOK_AT_HEAT) if hottest > HOT_CELSIUS else ok(text)


def temperatures(kernel: Kernel) -> dict[str, float]:
    """Celsius by sensor: of processors only, by the driver's name or the zone's kind."""
    found: dict[str, float] = {}
    for chip in kernel.names("/sys/class/hwmon/hwmon*/name"):
        if (kernel.read(chip) or "") in PROCESSOR_CHIPS:
            for name in kernel.names(f"{chip.removesuffix('/name')}/temp*_input"):
                _add(found, kernel, name)
    for kind in kernel.names("/sys/class/thermal/thermal_zone*/type"):
        if PROCESSOR_ZONE.search(kernel.read(kind) or ""):
            _add(found, kernel, f"{kind.removesuffix('/type')}/temp")
    return found


def _add(found: dict[str, float], kernel: Kernel, name: str) -> None:
    """Sensors tell thousandths of a degree; one that is broken says 0 or less."""
    value = kernel.number(name)
    if value is not None and value > 0:
        found[name.removeprefix("/sys/class/")] = value / 1000


def clock(place: Place) -> Reading:
    """A clock that is read without a system call."""
    found = clock_setting(place.kernel)
    if found == NOT_VISIBLE:
        return note(found)
    if found in CHEAP_CLOCKS:
        return ok(found)
    others = (place.kernel.read(CLOCKS) or "").split()
    better = next((name for name in others if name in CHEAP_CLOCKS), None)
    return unfit(found, f"echo {better} > {CLOCK}" if better else "")
