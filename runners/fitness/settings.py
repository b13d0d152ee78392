"""The settings of a machine that change results: with another value it counts as another machine."""

import re
from collections.abc import Mapping
from pathlib import Path

from runners.fitness.finding import NOT_VISIBLE
from runners.fitness.kernel import Kernel
from runners.fitness.memory import swap_setting, thp_setting
from runners.fitness.processor import clock_setting, governor_setting, smt_setting, turbo_setting
from runners.fitness.profiling import PARANOID, POINTERS, counters
from runners.fitness.storage import home_mount

CPUINFO = "/proc/cpuinfo"
VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities/*"


def settings(kernel: Kernel, home: Path) -> dict[str, str]:
    """Return the settings by name; every name is always present, so that a missing value is a change too.

    Properties that vary by themselves are left out, such as free memory, load, or the order of devices.
    """
    mount = home_mount(kernel, home)
    return {
        "governor": governor_setting(kernel),
        "turbo": turbo_setting(kernel),
        "SMT": smt_setting(kernel),
        "huge pages": thp_setting(kernel),
        "swap": swap_setting(kernel),
        "clock source": clock_setting(kernel),
        "file system": mount.kind if mount else NOT_VISIBLE,
        "microcode": _microcode(kernel),
        "mitigations": _mitigations(kernel),
    }


def surroundings(kernel: Kernel, home: Path) -> Mapping[str, object]:
    """Return facts that do not change results: the mount of the home, and how perf may be used."""
    mount = home_mount(kernel, home)
    return {
        "mount": vars(mount) if mount else None,
        "perf": {
            "paranoid": kernel.number(PARANOID),
            "kptr_restrict": kernel.number(POINTERS),
            "samples_by": counters(kernel),
        },
    }


def _microcode(kernel: Kernel) -> str:
    found = set(re.findall(r"^microcode\s*: (\S+)$", kernel.read(CPUINFO) or "", re.MULTILINE))
    return ", ".join(sorted(found)) or NOT_VISIBLE


def _mitigations(kernel: Kernel) -> str:
    """Return the mitigations of the processor vulnerabilities that the kernel reports."""
    reported = {Path(name).name: kernel.read(name) or "?" for name in kernel.names(VULNERABILITIES)}
    affected = [f"{name}: {text}" for name, text in reported.items() if text != "Not affected"]
    return "; ".join(affected) if affected else ("none needed" if reported else NOT_VISIBLE)
