"""The facts of this machine that decide whether measurements can be compared."""

import hashlib
import json
import platform
import re
from pathlib import Path

import psutil

from history.series.environment_changes import is_same_memory
from history.store.records import Machine
from runners.fitness.kernel import Kernel
from runners.fitness.settings import CPUINFO, settings, surroundings
from suites.sizing import this_machine

FACTS = ("cpu_model", "cores", "memory_bytes", "kernel", "operating_system")
"""The fields of a Machine whose changes are reported, in addition to its settings."""

GIBIBYTE = 2**30
"""To which memory is rounded for the fingerprint: what a kernel keeps for itself differs by boot."""


def describe(home: Path, kernel: Kernel | None = None) -> Machine:
    """Describe this machine. Measurements can be compared when the fingerprints are equal.

    The fingerprint covers host name, processor, cores, memory, kernel, operating system, and the settings
    that change results (runners.fitness.settings). After a change, such as an update of the kernel or another
    governor, the machine counts as another one.
    """
    kernel = kernel or Kernel()
    facts = this_machine()
    chosen = settings(kernel, home)
    parts: dict[str, object] = {
        "hostname": platform.node(),
        "cpu_model": _cpu_model(kernel),
        "cores": facts.cores,
        "memory_bytes": round(facts.memory_bytes / GIBIBYTE) * GIBIBYTE,
        "kernel": platform.release(),
        "operating_system": _operating_system(),
        "settings": chosen,
    }
    return Machine(
        fingerprint=hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16],
        hostname=str(parts["hostname"]),
        cpu_model=str(parts["cpu_model"]),
        cores=facts.cores,
        memory_bytes=facts.memory_bytes,
        kernel=str(parts["kernel"]),
        operating_system=str(parts["operating_system"]),
        details={
            "settings": chosen,
            "swap_bytes": psutil.swap_memory().total,
            "boot_time": psutil.boot_time(),
            **surroundings(kernel, home),
        },
    )


def changes(before: Machine | None, now: Machine) -> list[str]:
    """Return how `now` differs from `before`, as `governor: powersave -> performance`.

    Empty when the fingerprints are equal or there is no machine before. Settings that were not recorded
    before are listed together: a version of Tidemark that records more settings begins new series too.
    """
    if before is None or before.fingerprint == now.fingerprint:
        return []
    old, new = _known(before), _known(now)
    if is_same_memory(before.memory_bytes, now.memory_bytes):
        old["memory bytes"] = new["memory bytes"]
        if old == new and before.memory_bytes != now.memory_bytes:
            return []
    changed = [
        f"{name}: {old[name]} -> {new[name]}" for name in new if name in old and old[name] != new[name]
    ]
    added = [name for name in new if name not in old]
    if added:
        changed.append(f"not recorded before: {', '.join(added)}")
    return changed or ["its fingerprint"]


def _known(machine: Machine) -> dict[str, object]:
    facts: dict[str, object] = {name.replace("_", " "): getattr(machine, name) for name in FACTS}
    chosen = machine.details.get("settings")
    return facts | chosen if isinstance(chosen, dict) else facts


def _cpu_model(kernel: Kernel) -> str:
    match = re.search(r"^model name\s*: (.+)$", kernel.read(CPUINFO) or "", re.MULTILINE)
    return match[1] if match else platform.machine()


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"
