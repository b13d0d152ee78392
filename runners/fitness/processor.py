"""Checks of the processors: governor, turbo, SMT, temperature, clock source."""

import re
from collections import Counter

from runners.fitness.checked_machine import CheckedMachine
from runners.fitness.finding import FIX, NOT_VISIBLE, Reading, note, ok, unfit
from runners.fitness.kernel import Kernel

GOVERNORS = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"
NO_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo"
BOOST = "/sys/devices/system/cpu/cpufreq/boost"
SMT_ACTIVE = "/sys/devices/system/cpu/smt/active"
SMT_CONTROL = "/sys/devices/system/cpu/smt/control"
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"

CHEAP_CLOCKS = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"}
"""The clock sources that are read in user space; others cost a system call, several times per query."""

HOT_CELSIUS = 75.0
"""The limit for an idle processor: it is normally at 30 to 60 °C, and throttled from 90 to 100 °C."""

LOOK_AT_HEAT = "cat /sys/class/hwmon/hwmon*/temp*_input    # check dust, fans, room"

PROCESSOR_CHIPS = {"coretemp", "k10temp", "zenpower", "cpu_thermal"}
PROCESSOR_ZONE = re.compile(r"x86_pkg_temp|cpu|soc", re.IGNORECASE)


def governor_setting(kernel: Kernel) -> str:
    """Return `performance`, or `powersave, schedutil` when processors differ, or NOT_VISIBLE."""
    governors = {kernel.read(name) or "?" for name in kernel.names(GOVERNORS)}
    return ", ".join(sorted(governors)) or NOT_VISIBLE


def turbo_setting(kernel: Kernel) -> str:
    """Return `on` or `off`, by Intel's driver or the generic one, or NOT_VISIBLE."""
    no_turbo, boost = kernel.read(NO_TURBO), kernel.read(BOOST)
    if no_turbo is not None:
        return "off" if no_turbo == "1" else "on"
    if boost is not None:
        return "on" if boost == "1" else "off"
    return NOT_VISIBLE


def smt_setting(kernel: Kernel) -> str:
    """Return `on` or `off`, or NOT_VISIBLE."""
    return {"1": "on", "0": "off"}.get(kernel.read(SMT_ACTIVE) or "", NOT_VISIBLE)


def clock_setting(kernel: Kernel) -> str:
    """Return the name of the clock source of the kernel, or NOT_VISIBLE."""
    return kernel.read(CLOCK) or NOT_VISIBLE


def governor(machine: CheckedMachine) -> Reading:
    """Check that all processors use the governor `performance`."""
    found = Counter(machine.kernel.read(name) or "?" for name in machine.kernel.names(GOVERNORS))
    if not found:
        return note(NOT_VISIBLE)
    text = ", ".join(f"{name} on {count} processors" for name, count in sorted(found.items()))
    return ok(text) if set(found) == {"performance"} else unfit(text, FIX)


def turbo(machine: CheckedMachine) -> Reading:
    """Check that turbo is off, so that the frequency does not depend on temperature and busy cores."""
    found = turbo_setting(machine.kernel)
    if found == NOT_VISIBLE:
        return note(found)
    return unfit(found, FIX) if found == "on" else ok(found)


def smt(machine: CheckedMachine) -> Reading:
    """Check for one thread per core. Only a note: a host may share the core invisibly anyway."""
    found = smt_setting(machine.kernel)
    if found == NOT_VISIBLE:
        return note(found)
    return note(found, f"echo off > {SMT_CONTROL}") if found == "on" else ok(found)


def temperature(machine: CheckedMachine) -> Reading:
    """Check that the idle processor is cool: a warm one is throttled under load. A note without sensors."""
    found = temperatures(machine.kernel)
    if not found:
        return note(NOT_VISIBLE)
    name, hottest = max(found.items(), key=lambda sensor: sensor[1])
    text = f"{hottest:.0f} °C at {name} (limit {HOT_CELSIUS:.0f} °C)"
    return unfit(text, LOOK_AT_HEAT) if hottest > HOT_CELSIUS else ok(text)


def temperatures(kernel: Kernel) -> dict[str, float]:
    """Return degrees Celsius by sensor, of processors only, recognised by driver or thermal zone."""
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
    """Add the value of a sensor, which is in thousandths of a degree; broken sensors report 0 or less."""
    value = kernel.number(name)
    if value is not None and value > 0:
        found[name.removeprefix("/sys/class/")] = value / 1000


def clock(machine: CheckedMachine) -> Reading:
    """Check that the clock is read without a system call."""
    found = clock_setting(machine.kernel)
    if found == NOT_VISIBLE:
        return note(found)
    if found in CHEAP_CLOCKS:
        return ok(found)
    others = (machine.kernel.read(CLOCKS) or "").split()
    better = next((name for name in others if name in CHEAP_CLOCKS), None)
    return unfit(found, f"echo {better} > {CLOCK}" if better else "")
